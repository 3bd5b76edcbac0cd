"""Show the examples and formulas of docstrings as code.

Docstrings are written for `help()`: examples start with `>>>` and formulas are indented after `::`. Markdown would read
the first as nested quotes and print the second colon.
"""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^(?P<indent> *)>>>.*(?:\n(?P=indent)\S.*)*", re.MULTILINE)


def _as_code(found: re.Match[str]) -> str:
    indent = found["indent"]
    return f"{indent}```pycon\n{found[0]}\n{indent}```"


class CodeBlocks(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            text = EXAMPLE.sub(_as_code, obj.docstring.value)
            obj.docstring.value = text.replace("::\n", ":\n")

"""Links to files of the repository outside docs/ become plain text on the site, which does not contain those files."""

import logging
import re
from pathlib import Path

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+)(#[^)]*)?\)")
log = logging.getLogger("mkdocs.hooks.links")


def on_page_markdown(markdown, page, config, files):
    folder, docs = Path(page.file.abs_src_path).parent, Path(config["docs_dir"]).resolve()

    def replace(found):
        label, target = found[1], found[2]
        if "://" in target or target.startswith("/"):
            return found[0]
        path = (folder / target).resolve()
        if path.is_relative_to(docs):
            if path.is_dir():
                return f"[{label}]({target.rstrip('/')}/README.md{found[3] or ''})"
            return found[0]
        if not path.exists():
            log.warning("%s links to %s, which does not exist", page.file.src_path, target)
        return label

    return LINK.sub(replace, markdown)

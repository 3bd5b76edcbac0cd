"""One HTML page with everything inside it: no network, no script, no file beside it."""

from __future__ import annotations

import base64
import html
from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from ptncn.report.drawing import for_page
from ptncn.report.parts import Commands, Figure, Part, Picture, Points, Section, Table, Text
from ptncn.report.style import CSS
from ptncn.report.words import inline_html, is_number, plain, slug


def make_page(title: str, lead: str, sections: Sequence[Section], *, footer: str = "") -> str:
    """The page as text.

    >>> page = make_page("A title", "What it is.", [Section("First", [Text("Some `code`.")])])
    >>> '<h2 id="first">First</h2>' in page, "<p>Some <code>code</code>.</p>" in page, "https://" in page
    (True, True, False)
    """
    names = _Names()
    body = [_section(section, 2, names) for section in sections]
    links = [
        f'<li><a href="#{name}">{inline_html(section.title)}</a></li>'
        for section, (name, _) in zip(sections, body, strict=True)
    ]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<link rel="icon" href="data:,">',
            f"<title>{html.escape(plain(title))}</title>",
            f"<style>{CSS}</style>",
            "</head>",
            "<body>",
            '<a class="skip" href="#content">Skip to the content</a>',
            '<div class="frame">',
            "<header>",
            f"<h1>{inline_html(title)}</h1>",
            f'<p class="lead">{inline_html(lead)}</p>',
            "</header>",
            '<nav aria-labelledby="contents"><h2 id="contents">Contents</h2>',
            f"<ul>{''.join(links)}</ul></nav>",
            '<main id="content" tabindex="-1">',
            *(text for _, text in body),
            f"<footer>{inline_html(footer)}</footer>" if footer else "",
            "</main>",
            "</div>",
            "</body>",
            "</html>",
            "",
        ]
    )


class _Names:
    """Gives each name once: the second `results` is `results-2`."""

    def __init__(self) -> None:
        self._given = Counter(["content", "contents"])

    def __call__(self, title: str) -> str:
        name = slug(plain(title))
        self._given[name] += 1
        return name if self._given[name] == 1 else f"{name}-{self._given[name]}"


def _section(section: Section, level: int, names: _Names) -> tuple[str, str]:
    """Its name, and its HTML."""
    name, tag = names(section.title), f"h{min(level, 6)}"
    lines = [f'<{tag} id="{name}">{inline_html(section.title)}</{tag}>', *_parts(section.parts, names)]
    lines += [_section(each, level + 1, names)[1] for each in section.sections]
    return name, f'<section aria-labelledby="{name}">\n' + "\n".join(lines) + "\n</section>"


def _parts(parts: Sequence[Part], names: _Names) -> list[str]:
    """Figures that follow each other share rows where the screen is wide."""
    lines: list[str] = []
    for pictures, group in groupby(parts, lambda part: isinstance(part, Figure)):
        made = [_part(part, names) for part in group]
        lines += ['<div class="pictures">', *made, "</div>"] if pictures else made
    return lines


def _part(part: Part, names: _Names) -> str:
    match part:
        case Text(words):
            return f"<p>{inline_html(words)}</p>"
        case Points(items, numbered):
            tag = "ol" if numbered else "ul"
            return f"<{tag}>{''.join(f'<li>{inline_html(item)}</li>' for item in items)}</{tag}>"
        case Commands(lines):
            return f'<pre tabindex="0"><code>{html.escape(chr(10).join(lines))}</code></pre>'
        case Table():
            return _table(part, names)
        case Figure():
            return _figure(part, names)


def _table(table: Table, names: _Names) -> str:
    name = names(f"table {table.caption[:40]}")
    numeric = [all(is_number(row[place]) for row in table.rows) for place in range(len(table.headings))]
    kinds = [_kind(table, place, numeric=numeric[place]) for place in range(len(table.headings))]
    head = "".join(
        f'<th scope="col"{kind}>{inline_html(cell)}</th>' for cell, kind in zip(table.headings, kinds, strict=True)
    )
    rows = []
    for first, *rest in table.rows:
        cells = "".join(f"<td{kind}>{inline_html(cell)}</td>" for cell, kind in zip(rest, kinds[1:], strict=True))
        wraps = ' class="wraps"' if len(plain(first)) > 16 else ""
        rows.append(f'<tr><th scope="row"{wraps}>{inline_html(first)}</th>{cells}</tr>')
    made = " ".join(
        [inline_html(table.source), f"Made by <code>{html.escape(table.command)}</code>." if table.command else ""]
    ).strip()
    return "\n".join(
        [
            f'<figure class="table"><figcaption id="{name}">{inline_html(table.caption)}</figcaption>',
            f'<div class="scroll" role="region" aria-labelledby="{name}" tabindex="0">',
            f'<table aria-labelledby="{name}"><thead><tr>{head}</tr></thead>',
            "<tbody>",
            *rows,
            "</tbody></table></div>",
            f'<p class="source">{made}</p>' if made else "",
            "</figure>",
        ]
    )


def _kind(table: Table, place: int, *, numeric: bool) -> str:
    if numeric and any(row[place] for row in table.rows):
        return ' class="number"'
    long = any(len(plain(row[place])) > 48 for row in table.rows)
    return ' class="long"' if long else ""


def _figure(figure: Figure, names: _Names) -> str:
    picture = figure.picture
    size = f'width="{picture.width}" height="{picture.height}" alt="{html.escape(plain(figure.alt), quote=True)}"'
    scrolls = ' tabindex="0"' if figure.wide else ""
    if picture.gif is None:
        kind = "wide" if figure.wide else "drawing"
        inner = f'<div class="card"{scrolls}><img src="{_address(picture)}" {size}></div>'
    else:
        kind, still = "film wide" if figure.wide else "film", _data("image/png", picture.png)
        box = names(f"still {picture.name}")
        inner = (
            f'<div class="card"{scrolls}><picture class="moving">'
            f'<source media="(prefers-reduced-motion: reduce)" srcset="{still}">'
            f'<img src="{_data("image/gif", picture.gif)}" {size}></picture>'
            f'<img class="still" src="{still}" {size}></div>'
            f'<label for="{box}"><input type="checkbox" id="{box}"> Hold it still</label>'
        )
    return f'<figure class="{kind}">{inner}<figcaption>{inline_html(figure.caption)}</figcaption></figure>'


def _address(picture: Picture) -> str:
    if picture.svg is None:
        return _data("image/png", picture.png)
    return _data("image/svg+xml", for_page(picture.svg))


def _data(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"

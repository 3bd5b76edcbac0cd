"""Fill in the tables that are made from registries and records, and keep the site self-contained.

Links to files of the repository outside docs/ become plain text, and the script that lets search work from disk is
served by the site itself instead of a content delivery network.
"""

import logging
import re
from pathlib import Path

from _tables import fill

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+)(#[^)]*)?\)")
SHIM = "https://unpkg.com/iframe-worker/shim"
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

    return LINK.sub(replace, fill(markdown))


def on_post_page(output, page, config):
    return output.replace(SHIM, "../" * page.url.count("/") + "search-worker.js")


def on_post_template(output_content, template_name, config):
    return output_content.replace(SHIM, "search-worker.js")

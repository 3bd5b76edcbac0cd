"""Tables of the documentation that are made from registries, presets and records.

A page has such a table between `<!-- table: NAME -->` and `<!-- end of table -->`. The site always shows the current
table; `python docs/_tables.py` also writes it to the page, for readers of the repository.
"""

import dataclasses
import json
import re
from itertools import groupby
from pathlib import Path

from ptncn.data import DATASETS
from ptncn.distributions import DISTRIBUTIONS
from ptncn.experiments import EXPERIMENTS
from ptncn.learners import LEARNERS
from ptncn.learners.base import GRADIENT_OPTIMIZERS
from ptncn.learners.registry import LEARNS
from ptncn.metrics import METRICS
from ptncn.network import PRESETS, Config
from ptncn.network.config import FOR_OUTPUT, make_config
from ptncn.streaming.formats import FORMATS
from ptncn.updates.optimizers import OPTIMIZERS

DOCS = Path(__file__).parent
RECORDS = DOCS.parent / "results/learners"
BLOCK = re.compile(r"(<!-- table: ([a-z-]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def code(*names):
    return ", ".join(f"`{name}`" for name in names)


def learners():
    """A row per learning rule: cells that share a rule share a row."""

    def rule(name):
        entry = LEARNERS[name]
        return entry.where, entry.about.partition(", ")[2], entry.learns, entry.memory

    rows = []
    for _, group in groupby(LEARNERS, rule):
        names = list(group)
        entry = LEARNERS[names[0]]
        about = entry.about if len(names) == 1 else entry.about.partition(", ")[2]
        rows.append([code(*names), about, LEARNS[entry.learns], entry.memory])
    return table(["name", "what it is", "learns", "size of the state"], rows)


def tasks():
    records = [json.loads((RECORDS / f"{name}.json").read_text()) for name in ("tasks", "rivals")]
    errors = {name: found for record in records for name, found in record["errors"].items()}
    known = {"required": records[0]["stated"]} | {code(name): errors[name] for name in LEARNERS if name in errors}
    rows = [
        [name, f"{found['sines']:.3f}", f"{found['letters']:.2f}", f"{found['digits']:.1f}"]
        for name, found in known.items()
    ]
    return table(["", "sines", "letters", "bouncing digits"], rows)


def registries():
    kinds = {
        "learner": LEARNERS,
        "output distribution": DISTRIBUTIONS,
        "optimiser of the P-TNCN": OPTIMIZERS,
        "optimiser of gradient-based learners": GRADIENT_OPTIMIZERS,
        "dataset": DATASETS,
        "metric": METRICS,
        "experiment": EXPERIMENTS,
        "stream format": FORMATS,
    }
    rows = []
    for kind, registry in kinds.items():
        names = "[learners.md](learners.md)" if registry is LEARNERS else code(*registry)
        rows.append([kind, code(registry.group), names])
    return table(["what", "entry-point group", "names"], rows)


def datasets():
    rows = []
    for name, entry in DATASETS.items():
        source = f"{entry.megabytes} MB" if entry.files else "embedded"
        rows.append([code(name), entry.about, entry.kind, source, code(entry.stand_in) if entry.stand_in else ""])
    return table(["name", "what it is", "kind", "download", "stand-in"], rows)


def experiments():
    rows = []
    for name, entry in EXPERIMENTS.items():
        rows.append([code(name), entry.about, code(*entry.rows), ", ".join(entry.page.metric_labels.values())])
    return table(["experiment", "what it is", "data", "columns"], rows)


def metrics():
    rows = []
    for name, entry in METRICS.items():
        about = " ".join((entry.make.__doc__ or "").split("\n\n")[0].split())
        rows.append([code(name), code(entry.make.__name__), entry.label, about])
    return table(["name", "meter", "label", "what it is"], rows)


def presets():
    chosen = {code(name): make_config(name, {}) for name in PRESETS}
    chosen |= {f"{code(name)}, {output}": make_config(name, {}, output) for name, output in FOR_OUTPUT}
    configs = [config.to_json() for config in chosen.values()]
    rows = []
    for option in dataclasses.fields(Config):
        values = [repr(config[option.name]) for config in configs]
        rows.append([code(option.name), *(code(each) if each == values[0] else f"**{code(each)}**" for each in values)])
    return table(["option", *chosen], rows)


TABLES = {make.__name__: make for make in (learners, tasks, registries, datasets, experiments, metrics, presets)}


def fill(markdown):
    """The text of a page with its current tables."""
    return BLOCK.sub(lambda found: found[1] + TABLES[found[2]]() + found[3], markdown)


def main():
    for page in DOCS.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        if fill(text) != text:
            page.write_text(fill(text), encoding="utf-8")
            print(f"wrote {page.relative_to(DOCS.parent)}")


if __name__ == "__main__":
    main()

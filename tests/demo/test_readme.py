"""The animation and the tables of the README show the records; `python tests/demo/test_readme.py` updates them."""

import re
from pathlib import Path

from PIL import Image

from ptncn.demo import narrative
from ptncn.demo.page import animate, shots
from ptncn.demo.simulate import LSTM, NAMES, PTNCN, load_record
from ptncn.experiments import EXPERIMENTS
from ptncn.experiments.experiment import VARIANTS
from ptncn.records import read_record
from ptncn.report.assessment import TableCell, cells_of, number, place
from ptncn.report.model import learner_label
from ptncn.report.sources import gather

ROOT = Path(__file__).resolve().parents[2]
README, RECORD, FILM = ROOT / "README.md", ROOT / "results/demo/demo.json", ROOT / "docs/figures/demo.gif"
TABLE = re.compile(r"(<!-- demo:.*?-->\n)(.*)(<!-- end of demo -->)", re.DOTALL)
RESULTS = re.compile(r"(<!-- tables:.*?-->\n)(.*)(<!-- end of tables -->)", re.DOTALL)
TABLE_ROWS = (
    ("prediction", "test_se", "mnist"),
    ("prediction", "test_se", "notmnist"),
    ("prediction", "test_bpc", "ptb"),
    ("continual", "se", "mnist after fashion-mnist"),
    ("zero-shot", "se", "mnist-to-notmnist"),
    ("zero-shot", "se", "notmnist-to-mnist"),
)
COMPARED = ("ptncn", "lstm-bptt")


def recorded():
    return load_record(RECORD)


def table(record) -> str:
    frames = record["scenes"] * record["scene"]
    total = len(record["stream"]) * frames
    both = [record["learners"][name] for name in (PTNCN, LSTM)]
    head = [f"squared error, mean of {frames:,} frames each", *(NAMES[name] for name in (PTNCN, LSTM, "copy"))]
    rows = [
        head,
        ["---", "--:", "--:", "--:"],
        *(
            [name, *(f"{part['all'][each]:.1f}" for each in (PTNCN, LSTM, "copy"))]
            for name, part in zip(narrative.part_names(record), record["parts"], strict=True)
        ),
        ["weights", *(f"{each['weights']:,}" for each in both), ""],
        ["milliseconds per frame", *(f"{each['milliseconds']:.1f}" for each in both), ""],
    ]
    text = (
        f"A P-TNCN and an LSTM of equal size learn one stream of {total:,} frames, and see each frame once. The stream "
        "changes three times without notice. Each frame is predicted before it is learnt "
        f"([record](results/demo/demo.json) of `{record['command']}`, one seed)."
    )
    return f"{text}\n\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def results_table() -> str:
    """The paper's numbers and ours: at laptop scale, and first at the paper's size where the network has a record."""
    head = ["", "size", *(f"{learner_label(name)}, {source}" for name in COMPARED for source in ("paper", "ours"))]
    rows = [head, ["---", "---", *["--:"] * 4]]
    for name, metric, column in TABLE_ROWS:
        experiment = EXPERIMENTS.find(name)
        title = experiment.page.title.partition(":")[0]
        for scale in ("paper", "laptop"):
            folder = ROOT / "results" / scale / name
            sources = gather([folder]).sources if folder.exists() else []
            cells = {cell.row: cell for cell in cells_of(experiment, sources, metric) if cell.column == column}
            best = [row for row in VARIANTS if row in cells]
            pair = [cells.get(row) for row in (best[0] if best else COMPARED[0], COMPARED[1])]
            if pair[0] is not None and pair[0].ours is not None:
                numbers = [text for cell in pair for text in _numbers(cell)]
                rows.append([f"{title}: {place(experiment, metric, column)}", scale, *numbers])
    epochs = " ".join(_epochs(subject, data) for subject, data in (("digits", "mnist"), ("letters", "notmnist")))
    text = (
        "Lower is better. Size `paper` has the paper's data and number of units, with the preset `best`; for text, the "
        "network has one layer and a memory of 256, which the paper's network does not have. "
        f"{epochs} Each record lists its options. "
        "Size `laptop` has at most half the units and a fifth of the data, in one pass: about an hour per table. "
        "[docs/results](docs/results/README.md) has every row, with epochs, significance tests, and what did not "
        "reproduce."
    )
    return f"{text}\n\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _epochs(subject: str, data: str) -> str:
    """The epochs of the P-TNCN at the paper's size, and of the LSTM if it has a record."""
    paths = [ROOT / f"results/paper/prediction/{row}-{data}-0.json" for row in ("ptncn-best", "lstm-bptt")]
    epochs = [read_record(path).config["run_config"]["epochs"] for path in paths if path.exists()]
    ours, *others = (f"{count} epochs" for count in epochs)
    return f"On {subject}, the P-TNCN had {ours}" + "".join(f", the LSTM {count}" for count in others) + "."


def _numbers(cell: TableCell | None) -> tuple[str, str]:
    return ("–", "–") if cell is None else (number(cell.paper), number(cell.ours))


def test_the_results_are_those_of_the_records():
    on_page = RESULTS.search(README.read_text(encoding="utf-8"))[2]
    assert on_page == results_table(), "python tests/demo/test_readme.py"


def test_the_readme_is_no_longer_than_two_screens():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 80


def test_the_table_is_that_of_the_record():
    assert TABLE.search(README.read_text(encoding="utf-8"))[2] == table(recorded()), "python tests/demo/test_readme.py"


def test_the_record_is_of_the_whole_demo():
    from ptncn.cli.demo import FULL

    record = recorded()
    assert record["command"] == "ptncn demo --seed 0"
    assert record["scenes"] == FULL.scenes
    assert record["learners"][PTNCN]["options"]["hidden_sizes"] == list(FULL.units)


def test_the_film_is_that_of_the_record_and_small():
    assert FILM.stat().st_size < 400_000
    frames = sum(len(shot.rows["truth"]) for shot in shots(recorded()))
    with Image.open(FILM) as film:
        assert abs(film.n_frames - frames) <= 3  # equal frames may be one
        assert film.size == (animate(recorded()).width, animate(recorded()).height)


def update() -> None:
    record = recorded()
    text = README.read_text(encoding="utf-8")
    text = TABLE.sub(lambda match: match[1] + table(record) + match[3], text)
    text = RESULTS.sub(lambda match: match[1] + results_table() + match[3], text)
    README.write_text(text, encoding="utf-8")
    FILM.parent.mkdir(exist_ok=True)
    FILM.write_bytes(animate(record).gif or b"")


if __name__ == "__main__":
    update()

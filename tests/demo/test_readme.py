"""The film and the table of the README are those of the record; `python tests/demo/test_readme.py` puts them right."""

import json
import re
from pathlib import Path

from PIL import Image

from ptncn.demo import narrative
from ptncn.demo.animation import animate, shots
from ptncn.demo.learners import LSTM, NAMES, PTNCN

ROOT = Path(__file__).resolve().parents[2]
README, RECORD, FILM = ROOT / "README.md", ROOT / "results/demo/demo.json", ROOT / "docs/figures/demo.gif"
TABLE = re.compile(r"(<!-- demo:.*?-->\n)(.*)(<!-- end of demo -->)", re.DOTALL)


def recorded():
    return json.loads(RECORD.read_text(encoding="utf-8"))


def table(record) -> str:
    frames = record["scenes"] * record["scene"]
    total = len(record["life"]) * frames
    both = [record["learners"][name] for name in (PTNCN, LSTM)]
    head = [f"squared error per frame, in parts of {frames:,}", *(NAMES[name] for name in (PTNCN, LSTM, "copy"))]
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
        f"A P-TNCN and an LSTM of equal size learn one stream of {total:,} frames and see each frame once. The stream "
        "changes three times, without any signal. Each frame is predicted before it is learnt from "
        f"([record](results/demo/demo.json) of `{record['command']}`, one seed)."
    )
    return f"{text}\n\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows)


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
    moments = sum(len(shot.rows["truth"]) for shot in shots(recorded()))
    with Image.open(FILM) as shown:
        assert abs(shown.n_frames - moments) <= 3  # equal frames may be one
        assert shown.size == (animate(recorded()).width, animate(recorded()).height)


def put_right() -> None:
    record = recorded()
    text = README.read_text(encoding="utf-8")
    README.write_text(TABLE.sub(lambda found: found[1] + table(record) + found[3], text), encoding="utf-8")
    FILM.parent.mkdir(exist_ok=True)
    FILM.write_bytes(animate(record).gif or b"")


if __name__ == "__main__":
    put_right()

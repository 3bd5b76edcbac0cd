"""An interrupted and resumed stream writes the same bytes as one that was never interrupted.

PTNCN_KILLS sets how many times the processes are killed at random moments; 20 kills take a few minutes.
"""

import os
import random
import signal
import time

import numpy as np
import pytest
from feeds import COPY, SMALL, finish, run_here, sines, start, write_csv

from ptncn import CheckpointError
from ptncn.learners import names
from ptncn.streaming import PageHinkley, RowError, Stream, StreamError, default_learner, open_source
from ptncn.streaming.formats import CsvWriter, JsonWriter
from ptncn.streaming.session import Session
from ptncn.streaming.storage import CheckpointLock

KILLS = int(os.environ.get("PTNCN_KILLS", "2"))
OPTIONS = ("--hidden", "8", "--horizon", "2", "--layer-errors", "--drift", "page-hinkley", "--on-error", "skip")


@pytest.fixture(scope="module")
def feed(tmp_path_factory):
    """A CSV with gaps, categories, quotes and bad lines, and the output of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("feed")
    path = folder / "x.csv"
    lines = ["time,a,b,kind"]
    for index, (a, b) in enumerate(sines(1500)):
        kind = ("red", "blue", '"a ""quoted""\none"')[index // 50 % 3]
        lines.append(f"t{index},{a:.3f},{'' if index % 37 == 0 else round(b, 3)},{kind}")
        if index % 301 == 300:
            lines.append("t,not a number,1,red")
    path.write_text("\n".join(lines) + "\n")
    whole = folder / "whole.csv"
    run_here("stream", path, "-o", whole, "--categorical", "kind", *OPTIONS)
    return path, whole.read_bytes()


@pytest.mark.parametrize("kill", range(KILLS))
def test_killed_at_random_moments_the_bytes_are_the_same(feed, tmp_path, kill):
    path, whole = feed
    rng = random.Random(kill)
    out, checkpoint = tmp_path / "out.csv", tmp_path / "c.ckpt"
    command = ("stream", path, "-o", out, "--categorical", "kind", *OPTIONS)
    command += ("--checkpoint", checkpoint, "--checkpoint-every", 0.05, "--resume")
    for number in rng.sample([signal.SIGKILL, signal.SIGTERM, signal.SIGINT], 2):
        process = start(*command)
        size = out.stat().st_size if out.exists() else 0
        moment = rng.uniform(size, len(whole))
        while process.poll() is None and not (out.exists() and out.stat().st_size > moment):
            time.sleep(0.002)
        process.send_signal(number)
        code, messages = finish(process)
        assert code in (0, -number, 128 + number), messages  # 0: it ended before the signal
    run_here(*command)
    assert out.read_bytes() == whole


class TestSession:
    """The same without processes, for every learner and every moment."""

    def run(self, tmp_path, source, learner=SMALL, out="out.csv", resume=False, format=CsvWriter, **options):
        session = Session(
            Stream(open_source(str(source)), learner, **options),
            format(),
            out=str(tmp_path / out),
            checkpoint=str(tmp_path / "c.ckpt"),
            settings={"slots": options.get("slots", 16)},
        )
        if resume:
            session.resume()
        session.run()
        return (tmp_path / out).read_bytes()

    @pytest.mark.parametrize("name", ["ptncn", "lstm-tbptt", "gru-uoro", "rnn-kf-rtrl", "esn-rls", "mean"])
    def test_any_learner_continues_with_a_file_that_has_grown(self, tmp_path, name):
        def learner(inputs):
            return default_learner(inputs, name, hidden=(6,))

        rows = sines(150)
        rows[70:75] = np.nan
        path, source = tmp_path / "x.csv", str(tmp_path / "x.csv")
        write_csv(path, rows)
        path.write_text(path.read_text().replace("nan", ""))
        everything = path.read_text()
        whole = self.run(tmp_path, path, learner, "whole.csv", horizon=2)
        (tmp_path / "c.ckpt").unlink()
        for length in (3, 40, 72):
            path.write_text("".join(everything.splitlines(keepends=True)[:length]))
            self.run(tmp_path, source, learner, resume=length > 3, horizon=2)
        path.write_text(everything)
        assert self.run(tmp_path, source, learner, resume=True, horizon=2) == whole

    def test_all_learners_have_a_default(self):
        assert all(default_learner(2, name, hidden=(4,)).input_size == 2 for name in names())

    @pytest.mark.parametrize("format", [CsvWriter, JsonWriter])
    def test_lines_after_the_checkpoint_are_removed_and_written_again(self, tmp_path, format):
        path = write_csv(tmp_path / "x.csv", sines(60))
        half = write_csv(tmp_path / "half.csv", sines(60)[:30])
        whole = self.run(tmp_path, path, COPY, "whole", format=format)
        (tmp_path / "c.ckpt").unlink()
        self.run(tmp_path, half, COPY, "out", format=format)
        with open(tmp_path / "out", "ab") as out:
            out.write(b"30,half a li")
        os.replace(path, half)
        assert self.run(tmp_path, half, COPY, "out", resume=True, format=format) == whole

    def test_an_output_shorter_than_in_the_checkpoint_is_rejected(self, tmp_path):
        path = write_csv(tmp_path / "x.csv", sines(30))
        self.run(tmp_path, path, COPY)
        os.truncate(tmp_path / "out.csv", 100)
        with pytest.raises(StreamError, match="the file was cut or replaced"):
            self.run(tmp_path, path, COPY, resume=True)

    def test_changed_settings_are_rejected_by_name(self, tmp_path):
        path = write_csv(tmp_path / "x.csv", sines(30))
        self.run(tmp_path, path, COPY)
        with pytest.raises(StreamError, match="made with slots = 16, but now 3: --resume needs the same command"):
            self.run(tmp_path, path, COPY, resume=True, slots=3)

    def test_after_a_bad_line_the_checkpoint_is_just_before_it(self, tmp_path):
        path = tmp_path / "x.csv"
        write_csv(path, sines(40))
        intact = path.read_text()
        whole = self.run(tmp_path, path, COPY, "whole.csv")
        (tmp_path / "c.ckpt").unlink()
        lines = intact.splitlines(keepends=True)
        path.write_text("".join([*lines[:20], "t19,oops,1\n", *lines[21:]]))
        with pytest.raises(RowError, match=r"line 21: column 's0' holds 'oops'"):
            self.run(tmp_path, path, COPY)
        path.write_text(intact)
        assert self.run(tmp_path, path, COPY, resume=True) == whole

    def test_once_learning_has_diverged_the_last_good_checkpoint_stays(self, tmp_path, monkeypatch):
        path = write_csv(tmp_path / "x.csv", sines(40))
        self.run(tmp_path, path, SMALL)
        good = (tmp_path / "c.ckpt").read_bytes()
        with open(path, "a") as more:
            more.writelines(f"t,{a},{b}\n" for a, b in sines(10))

        def diverge(self, x, learn):
            step = self.learner.step(x[None], self.state, learn=learn)
            step.prediction.fill_(float("nan"))
            return step

        monkeypatch.setattr("ptncn.streaming.predictor.Predictor._step", diverge)
        with pytest.raises(StreamError, match=r"line 42: .*learning has diverged; try a smaller --lr"):
            self.run(tmp_path, path, SMALL, resume=True)
        assert (tmp_path / "c.ckpt").read_bytes() == good

    def test_a_checkpoint_that_cannot_be_written_stops_the_stream_or_is_reported(self, tmp_path):
        path = write_csv(tmp_path / "x.csv", sines(40))
        reports = []
        stream = Stream(open_source(path), COPY, on_error="skip", report=reports.append)
        Session(stream, CsvWriter(), out=str(tmp_path / "o"), checkpoint=str(tmp_path / "nowhere/c")).run()
        assert "nowhere/c: the checkpoint cannot be written: " in reports[0]
        stream = Stream(open_source(path), COPY)
        with pytest.raises(StreamError, match="cannot be written"):
            Session(stream, CsvWriter(), out=str(tmp_path / "o"), checkpoint=str(tmp_path / "nowhere/c")).run()
        assert len((tmp_path / "o").read_text().splitlines()) == 41


class TestStream:
    @pytest.mark.parametrize("at", [1, 2, 3, 40, 199])
    def test_a_stream_resumes_from_python(self, tmp_path, at):
        rows = sines(200)
        whole = [str(out) for out in Stream(rows, SMALL, drift=PageHinkley(), horizon=1)]
        first = Stream(rows, SMALL, drift=PageHinkley(), horizon=1)
        outs = [str(next(first)) for _ in range(at)]
        first.save(tmp_path / "c", extra={"note": 1})
        second = Stream(rows, SMALL, drift=PageHinkley(), horizon=1)
        assert second.load(tmp_path / "c") == {"note": 1}
        assert outs + [str(out) for out in second] == whole

    def test_a_live_source_continues_by_itself(self, tmp_path):
        path = write_csv(tmp_path / "x.csv", sines(20))
        first = Stream(open_source(path), COPY)
        for _ in first:
            pass
        first.save(tmp_path / "c")
        more = write_csv(tmp_path / "more.csv", sines(5), start=20)
        second = Stream(open_source(more), COPY)
        second.load(tmp_path / "c", live=True)
        assert [(out.index, out.timestamp) for out in second] == [(20 + i, f"t{20 + i}") for i in range(5)]

    def test_a_checkpoint_of_something_else_is_rejected(self, tmp_path):
        from ptncn import save

        learner = default_learner(2)
        save(tmp_path / "c", learner, learner.begin(1))
        with pytest.raises(CheckpointError, match="not a checkpoint of a stream"):
            Stream(sines(5), SMALL).load(tmp_path / "c")


class TestLock:
    def test_a_lock_has_one_holder(self, tmp_path):
        with (
            CheckpointLock(tmp_path / "c"),
            pytest.raises(StreamError, match=f"c: process {os.getpid()} is writing this checkpoint already"),
            CheckpointLock(tmp_path / "c"),
        ):
            pass

    def test_a_link_to_the_checkpoint_is_the_same_checkpoint(self, tmp_path):
        (tmp_path / "link").symlink_to(tmp_path / "c")
        with CheckpointLock(tmp_path / "c"), pytest.raises(StreamError), CheckpointLock(tmp_path / "link"):
            pass

    def test_a_lock_file_of_a_dead_process_does_not_block(self, tmp_path):
        (tmp_path / "c.lock").write_text("1\n")
        with CheckpointLock(tmp_path / "c"):
            assert (tmp_path / "c.lock").read_text() == f"{os.getpid()}\n"
        assert not (tmp_path / "c.lock").exists()

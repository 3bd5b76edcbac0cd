"""If a rank is lost, all ranks restart from the last checkpoint. If the launcher is lost, its ranks end."""

from __future__ import annotations

import subprocess
import sys

from killed_rank import Training, write_data

SHORT = ("--sequences", "40")
KILLS_ITSELF = """
import os, signal, sys
saved = 0
def hook(event, args):
    global saved
    if event == "os.rename" and str(args[1]).endswith("progress.safetensors"):
        saved += 1
        if saved == 3 and not os.path.exists(MARK):
            open(MARK, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
"""


def test_a_run_with_a_killed_rank_ends_with_the_same_numbers(tmp_path):
    write_data(tmp_path / "data.npy", 60)
    mark = tmp_path / "killed"
    (tmp_path / "sitecustomize.py").write_text(f"MARK = {str(mark)!r}\n{KILLS_ITSELF}")
    whole, killed = (Training(tmp_path / name, tmp_path / "data.npy", 2, 1, SHORT) for name in ("whole", "hurt"))
    started = whole.start(), killed.start(PYTHONPATH=str(tmp_path))
    errors = [launcher.communicate(timeout=600)[1] for launcher in started]
    assert [launcher.returncode for launcher in started] == [0, 0], errors
    assert mark.exists()
    assert "rank 0 was killed; restarting all ranks from the last checkpoint (1 of 3 times)" in errors[1]
    assert whole.result() == killed.result()


PARENT = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]]).wait()"
CHILD = "from ptncn.system import end_with_parent as e; import time; e(1); print(1, flush=True); time.sleep(600)"


def test_a_process_does_not_outlive_its_parent():
    parent = subprocess.Popen([sys.executable, "-c", PARENT, CHILD], stdout=subprocess.PIPE, text=True)
    assert parent.stdout.readline() == "1\n"
    parent.kill()
    parent.wait()
    assert parent.stdout.read() == ""  # returns when the child, which holds the other end, is gone
    parent.stdout.close()

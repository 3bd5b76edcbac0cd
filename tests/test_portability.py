"""POSIX-only modules are imported only when needed."""

import subprocess
import sys

WALK = """
import importlib, pkgutil, signal, sys
for name in ("fcntl", "resource", "termios", "pwd", "grp"):
    sys.modules[name] = None
import ptncn
names = [module.name for module in pkgutil.walk_packages(ptncn.__path__, "ptncn.")]
for name in names:
    importlib.import_module(name)
print(len(names))
"""


def test_every_module_can_be_imported_without_fcntl_and_resource():
    result = subprocess.run([sys.executable, "-c", WALK], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 100


def test_a_checkpoint_is_locked_and_a_learner_learns_without_fcntl(tmp_path):
    feed = tmp_path / "feed.csv"
    feed.write_text("a\n" + "1\n2\n" * 5)
    block = (
        "import sys\nfor name in ('fcntl', 'resource'): sys.modules[name] = None\nfrom ptncn.cli import app\napp()\n"
    )
    command = ["stream", feed, "--checkpoint", tmp_path / "c", "--out", tmp_path / "out.csv"]
    result = subprocess.run(
        [sys.executable, "-c", block, *map(str, command)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 11
    assert not (tmp_path / "c.lock").exists()

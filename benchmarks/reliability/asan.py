"""All compiled code under the address and undefined-behaviour sanitizers: `make asan`.

A copy of the package with instrumented libraries runs the tests of the kernel, the updates, the network and the parts
of streams that are compiled, and then random sequences of public calls. Leak detection is off, because the interpreter
never frees some memory. Findings go to files, since pytest keeps what a test prints, and are shown at the end.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from common import ROOT, parser, record

COPY = ROOT / "build/asan"
FLAGS = ["-g", "-O1", "-std=gnu11", "-fno-omit-frame-pointer", "-shared", "-fPIC"]
LIBRARIES = ("step", "forecast", "anomaly", "gauge", "format")
OF_STREAMS = ("advance", "anomaly", "bad_input", "default_engine", "forecaster", "gauge", "keys", "output")
TESTS = ["tests/kernels", "tests/updates", "tests/network", *(f"tests/streaming/test_{name}.py" for name in OF_STREAMS)]
CHECK = """
import ctypes, sys
from ptncn.kernels import load, bindings
path = bindings.library_path(sys.argv[1])
assert "asan" in path.parts and load() is not None and ctypes.CDLL(str(path)).__asan_init, path
"""
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]


REPORTS = COPY / "reports"


def build(compiler: str) -> list[Path]:
    """Build the package in `COPY` with instrumented libraries; return the libraries that have to be loaded first.

    The second one is the C++ library: PyTorch throws exceptions, which the sanitizer can handle only if that library
    was loaded before it.
    """
    package = COPY / "ptncn"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(ROOT / "src/ptncn", package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for name in LIBRARIES:
        files = ["-o", package / f"kernels/_{name}.kernel.so", package / f"kernels/{name}.c", "-lm"]
        subprocess.run([compiler, *FLAGS, *SANITIZERS, "-fopenmp", *files], check=True)
    shutil.rmtree(REPORTS, ignore_errors=True)
    REPORTS.mkdir()
    return [_library(compiler, name) for name in ("libasan.so", "libstdc++.so.6")]


def _library(compiler: str, name: str) -> Path:
    completed = subprocess.run([compiler, f"-print-file-name={name}"], check=True, capture_output=True, text=True)
    return Path(completed.stdout.strip()).resolve(strict=True)


def environment(first: list[Path]) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(COPY),
        "LD_PRELOAD": " ".join(map(str, first)),
        "ASAN_OPTIONS": f"detect_leaks=0:halt_on_error=1:log_path={REPORTS}/address",
        "UBSAN_OPTIONS": f"halt_on_error=1:print_stacktrace=1:log_path={REPORTS}/undefined",
        "OMP_WAIT_POLICY": "passive",
        "PTNCN_SANITIZERS": "address,undefined",
    }


def run_tests(env: dict[str, str]) -> dict[str, Any]:
    """Run the tests until the first failure; return how many passed."""
    pytest = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *TESTS]
    done = subprocess.run(pytest, env=env, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    print(done.stdout)
    last = done.stdout.strip().rpartition("\n")[2]
    counts = {what: int(number) for number, what in re.findall(r"(\d+) (passed|failed|error|skipped)", last)}
    return {"tests": TESTS, "code": done.returncode, **counts, "reports": show_reports()}


def show_reports() -> int:
    """Print the sanitizers' findings; return how many processes they ended."""
    reports = sorted(REPORTS.iterdir())
    for path in reports:
        print(path.read_text(encoding="utf-8", errors="replace"))
    return len(reports)


def main() -> int:
    arguments = parser(__doc__, 10_000)
    arguments.add_argument("--compiler", default=os.environ.get("CC", "gcc"))
    arguments.add_argument("--only", choices=("tests", "walk"), help="run only one of the two parts")
    options = arguments.parse_args()
    started, env = time.time(), environment(build(options.compiler))
    for name in LIBRARIES:
        subprocess.run([sys.executable, "-c", CHECK, f"_{name}"], env=env, cwd=COPY, check=True)
    if options.only != "walk":
        results = run_tests(env)
        record("asan", options, {**results, "libraries": LIBRARIES, "sanitizers": env["PTNCN_SANITIZERS"]}, started)
        if results["code"] or results["reports"]:
            return 1
    if options.only == "tests":
        return 0
    walk = [sys.executable, ROOT / "benchmarks/reliability/walk.py", "--count", str(options.count)]
    code = subprocess.run([*walk, "--seed", str(options.seed), "--out", options.out], env=env, cwd=ROOT).returncode
    return code or int(show_reports() > 0)


if __name__ == "__main__":
    sys.exit(main())

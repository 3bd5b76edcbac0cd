"""The kernel under the address and undefined-behaviour sanitizers: `make asan`.

A copy of the package with a kernel that reports every access outside of its memory, and every operation that C leaves
undefined, runs the tests of the kernel, the updates and the network, and then the random walk over the public calls.
Memory that the interpreter never frees is not looked at.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPY = ROOT / "build/asan"
FLAGS = ["-g", "-O1", "-std=gnu11", "-fno-omit-frame-pointer", "-shared", "-fPIC"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]


def build(compiler: str) -> Path:
    """The package in `COPY`, with the checked kernel; the library that has to be loaded first."""
    package = COPY / "ptncn"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(ROOT / "src/ptncn", package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    library = package / "kernels" / "_step.kernel.so"
    source = package / "kernels/step.c"
    subprocess.run([compiler, *FLAGS, *SANITIZERS, "-fopenmp", "-o", library, source, "-lm"], check=True)
    asked = subprocess.run([compiler, "-print-file-name=libasan.so"], check=True, capture_output=True, text=True)
    return Path(asked.stdout.strip()).resolve()


def environment(runtime: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(COPY),
        "LD_PRELOAD": str(runtime),
        "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "OMP_WAIT_POLICY": "passive",
        "PTNCN_SANITIZERS": "address,undefined",
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000, help="sequences of calls in the random walk")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compiler", default=os.environ.get("CC", "gcc"))
    parser.add_argument("--out", type=Path, default=ROOT / "build/asan/walk.json", help="record of the walk")
    parser.add_argument("--skip-tests", action="store_true", help="only walk")
    options = parser.parse_args()
    env = environment(build(options.compiler))
    check = "import sys; from ptncn import kernels; sys.exit(kernels.load() is None or 'asan' not in kernels.__file__)"
    subprocess.run([sys.executable, "-c", check], env=env, cwd=COPY, check=True)
    if not options.skip_tests:
        tests = ["tests/kernels", "tests/updates", "tests/network"]
        pytest = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
        subprocess.run(pytest, env=env, cwd=ROOT, check=True)
    walk = [sys.executable, ROOT / "benchmarks/reliability/walk.py", "--count", str(options.count)]
    return subprocess.run([*walk, "--seed", str(options.seed), "--out", options.out], env=env, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())

"""Feed damaged files to every reader: none may crash, execute anything, or accept what its oracle rejects.

Worker processes handle chunks, each with its own random seed. A crash, or a file that exceeds a worker's memory, ends
the worker and is reported. `--work` stores finished chunks, so that an interrupted run can continue.
"""

from __future__ import annotations

import codecs
import json
import random
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from common import MEMORY, commit, parser, record
from mutation import mutate
from readers import READERS

CHUNK = 1_000
BATCH = 100
"""Chunks per worker."""
GROWTH = 200
"""Maximum growth of a worker's peak memory in megabytes; each file has only a few kilobytes."""
LIMIT = 8 << 30
"""Limit of a worker's address space in bytes, which protects the machine from forged sizes."""
SHARES = {"csv": 0.3, "jsonl": 0.3, "parquet": 0.1, "checkpoint": 0.15, "record": 0.15}
FORBIDDEN = {
    *("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "subprocess.Popen", "pty.spawn"),
    *("socket.connect", "socket.bind", "pickle.find_class", "ctypes.dlopen", "exec"),
    *("os.remove", "os.rename", "os.kill"),
}
"""Audit events of Python that a reader must never cause."""


class Watch:
    """Records forbidden events, and files opened for writing, while it is active."""

    def __init__(self) -> None:
        self.on = False
        self.seen: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        writes = event == "open" and isinstance(arguments[1], str) and any(sign in arguments[1] for sign in "wax+")
        if event in FORBIDDEN or writes:
            self.seen.append(f"{event} {arguments!r:.200}")


def work(name: str, seed: int, chunks: list[int], out: Path) -> None:
    """Process chunks of one reader, and write a line for each."""
    import torch

    from ptncn.system import peak_memory

    torch.set_num_threads(1)
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    reader, watch, version = READERS[name](), Watch(), commit()
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        torch.manual_seed(seed)
        seeds, path = reader.seeds(Path(folder)), Path(folder) / f"input{reader.suffix}"
        for encoding in ("utf-8-sig", "utf-16", "utf-16-be", "utf-16-le", "utf-32", "utf-32-be", "utf-32-le"):
            codecs.lookup(encoding)  # json tries all of these
        for data in seeds:  # perform the imports of a read in advance
            path.write_bytes(data)
            _judge(reader, path, data)
        before = peak_memory()
        for chunk in chunks:
            rng, counts, findings = random.Random(f"{seed}:{name}:{chunk}"), Counter[str](), []
            for index in range(CHUNK):
                data = mutate(rng, seeds)
                if hasattr(reader, "forge") and index % 20 == 0:
                    data = reader.forge(rng, rng.choice(seeds))
                path.write_bytes(data)
                watch.on = True
                verdict = _judge(reader, path, data)
                watch.on = False
                counts[verdict.split(":")[0]] += 1
                if watch.seen or verdict.startswith("wrong"):
                    findings.append({"index": index, "verdict": verdict, "events": watch.seen[:3], "data": repr(data)})
                    watch.seen.clear()
            grown = (peak_memory() - before) / 1e6
            if grown > GROWTH:
                findings.append({"verdict": f"peak memory rose by {grown:.0f} MB"})
            about = {"reader": name, "chunk": chunk, "commit": version, "grown": round(grown)}
            line = {**about, **counts, "findings": findings[:5]}
            with (out / "chunks.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


def _judge(reader: Any, path: Path, data: bytes) -> str:
    from ptncn import CheckpointError
    from ptncn.records import RecordError
    from ptncn.streaming import StreamError

    try:
        reader.check(path, data)
    except (CheckpointError, RecordError, StreamError):
        return "refused"
    except Exception as error:
        return f"wrong: {error!r} {traceback.format_exc()[-800:]}"
    return "accepted"


def done_chunks(out: Path) -> list[dict[str, Any]]:
    path = out / "chunks.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def _done(name: str, out: Path) -> set[int]:
    return {line["chunk"] for line in done_chunks(out) if line["reader"] == name}


def main() -> None:
    command_line = parser(__doc__, 1_000_000)
    command_line.add_argument("--worker", nargs=2, metavar=("READER", "CHUNKS"), help="for this program itself")
    command_line.add_argument(
        "--work", type=Path, default=Path("build") / "inputs", help="folder for intermediate results"
    )
    options = command_line.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    if options.worker:
        work(options.worker[0], options.seed, [int(each) for each in options.worker[1].split(",")], options.work)
        return
    started, crashes = time.time(), []
    for name, share in SHARES.items():
        wanted = range(max(1, round(share * options.count / CHUNK)))
        while missing := sorted(set(wanted) - _done(name, options.work)):
            batch = ",".join(map(str, missing[:BATCH]))
            arguments = ["--seed", str(options.seed), "--work", str(options.work), "--worker", name, batch]
            code = subprocess.run([sys.executable, __file__, *arguments], check=False).returncode
            if code:
                chunk = next((each for each in missing[:BATCH] if each not in _done(name, options.work)), missing[0])
                crashes.append({"reader": name, "chunk": chunk, "code": code})
                line = {"reader": name, "chunk": chunk, "crashed": CHUNK, "findings": [{"verdict": f"crash {code}"}]}
                with (options.work / "chunks.jsonl").open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
            print(f"{name}: {len(missing) - min(BATCH, len(missing))} chunks left", flush=True)
    _summarise(options, crashes, started)


def _summarise(options: Any, crashes: list[dict[str, Any]], started: float) -> None:
    lines = done_chunks(options.work)
    summary: dict[str, Any] = {"inputs": 0, "readers": {}, "crashes": crashes, "findings": []}
    for name in SHARES:
        own = [line for line in lines if line["reader"] == name]
        total = {key: sum(line.get(key, 0) for line in own) for key in ("accepted", "refused", "wrong", "crashed")}
        grown = max(line.get("grown", 0) for line in own)
        commits = sorted({line.get("commit", "unknown") for line in own})
        summary["readers"][name] = {
            "inputs": sum(total.values()),
            **total,
            "peak_rose_megabytes": grown,
            "commits": commits,
        }
        summary["inputs"] += sum(total.values())
        summary["findings"] += [each for line in own for each in line["findings"]][:20]
    record("inputs", options, summary, started)


if __name__ == "__main__":
    main()

"""Ray: each actor keeps the blobs of some devices; `states` returns them for a checkpoint."""

from __future__ import annotations

from typing import Any

from ptncn.streaming import Advance


class Worker:
    """Holds the streams of some devices."""

    def __init__(self, states: dict[str, bytes] | None = None) -> None:
        self.advance = Advance(key="device", targets=("load",), timestamp="time", horizon=2)
        self.blobs = dict(states or {})

    def process(self, rows: list[dict[str, Any]]) -> list[Any]:
        """Results for rows of one device."""
        device = rows[0]["device"]
        self.blobs[device], results = self.advance(self.blobs.get(device), rows)
        return results

    def states(self) -> dict[str, bytes]:
        return self.blobs


def main() -> None:
    import ray

    ray.init(num_cpus=2)
    workers = [ray.remote(Worker).remote() for _ in range(2)]
    for i in range(20):
        rows = [{"device": f"d{i % 4}", "time": 60.0 * (i // 4), "load": float(i)}]
        print(ray.get(workers[hash(rows[0]["device"]) % 2].process.remote(rows)))
    ray.shutdown()


if __name__ == "__main__":
    main()

"""Networks between ranks on one machine: loopback, or a namespace for each rank with a bandwidth or a delay.

`tc` sets the bandwidth (tbf). The Linux kernel may lack netem, so `forward.c` adds the delay: each namespace has a TUN
device, and the program forwards packets between them later. Both need root, and the delay also needs a C compiler.
"""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
NET = "10.99.7."


@dataclass(frozen=True)
class Link:
    """The connection between ranks: `rate` and `burst` in the notation of `tc`, or the one-way `delay` in seconds."""

    name: str
    rate: str | None = None
    burst: int = 65536
    delay: float = 0.0


LINKS = [
    Link("loopback"),
    Link("1 Gbit/s", rate="1gbit"),
    Link("100 Mbit/s", rate="100mbit", burst=16384),
    Link("1 ms", delay=1e-3),
]


@dataclass(frozen=True)
class Place:
    """Where a rank runs: the prefix of its command, and its environment."""

    prefix: tuple[str, ...]
    environment: dict[str, str]


@contextmanager
def places(link: Link, count: int) -> Iterator[list[Place]]:
    if link.rate is None and not link.delay:
        yield [Place((), {"MASTER_ADDR": "127.0.0.1"})] * count
        return
    spaces = [f"ptncn{rank}" for rank in range(count)]
    with ExitStack() as stack:
        for space in spaces:
            _run("ip", "netns", "add", space)
            stack.callback(_run, "ip", "netns", "del", space)
            _run("ip", "-n", space, "link", "set", "lo", "up")
        if link.delay:
            stack.enter_context(_delayed(spaces, link.delay))
        else:
            stack.enter_context(
                _limited(spaces, ("rate", link.rate or "", "burst", str(link.burst), "latency", "200ms"))
            )
        common = {"MASTER_ADDR": f"{NET}1", "GLOO_SOCKET_IFNAME": "eth0"}
        yield [Place(("ip", "netns", "exec", space), common) for space in spaces]


@contextmanager
def _limited(spaces: list[str], limit: tuple[str, ...]) -> Iterator[None]:
    """A bridge between the namespaces, with a limit on the rate at which each sends."""
    _run("ip", "link", "add", "ptncnbr", "type", "bridge")
    try:
        _run("ip", "link", "set", "ptncnbr", "up")
        for rank, space in enumerate(spaces):
            outer = f"ptncnv{rank}"
            _run("ip", "link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", space)
            _run("ip", "link", "set", outer, "master", "ptncnbr", "up")
            _address(space, rank)
            _run("ip", "netns", "exec", space, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", *limit)
        yield
    finally:
        for rank in range(len(spaces)):  # deleting only the namespace would remove the device too late
            subprocess.run(["ip", "link", "del", f"ptncnv{rank}"], capture_output=True)
        _run("ip", "link", "del", "ptncnbr")


@contextmanager
def _delayed(spaces: list[str], delay: float) -> Iterator[None]:
    """A TUN device in each namespace, and a program that forwards packets."""
    devices: list[int] = []
    for rank, space in enumerate(spaces):
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        name = f"ptncnt{rank}"
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
        _run("ip", "link", "set", name, "netns", space)
        _run("ip", "-n", space, "link", "set", name, "name", "eth0", "mtu", "60000")
        _address(space, rank)
        devices.append(device)
    with tempfile.TemporaryDirectory() as place:
        program = os.path.join(place, "forward")
        _run("cc", "-O2", "-o", program, str(Path(__file__).with_name("forward.c")))
        words = [program, str(round(delay * 1e9)), *map(str, devices)]
        forwarder = subprocess.Popen(words, stdin=subprocess.PIPE, pass_fds=devices)
        try:
            yield
        finally:
            forwarder.communicate()
            for device in devices:
                os.close(device)


def _address(space: str, rank: int) -> None:
    _run("ip", "-n", space, "addr", "add", f"{NET}{rank + 1}/24", "dev", "eth0")
    _run("ip", "-n", space, "link", "set", "eth0", "up")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")

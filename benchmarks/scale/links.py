"""Networks between ranks on one machine: loopback, or a namespace for each rank with a bandwidth or a delay.

`tc` sets the bandwidth (tbf). The Linux kernel may lack netem, so a forwarder in this process adds the delay: each
namespace has a TUN device, and packets are forwarded after a while. Both need root.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import select
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
NET = "10.99.7."


@dataclass(frozen=True)
class Link:
    """Between ranks: `rate` and `burst` as `tc` writes them, or `delay` in seconds one way."""

    name: str
    rate: str | None = None
    burst: str = "64kb"
    delay: float = 0.0


LINKS = [
    Link("loopback"),
    Link("1 Gbit/s", rate="1gbit"),
    Link("100 Mbit/s", rate="100mbit", burst="16kb"),
    Link("1 ms", delay=1e-3),
]


@dataclass(frozen=True)
class Place:
    """Where a rank runs: words before its command, and its environment."""

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
            stack.enter_context(_limited(spaces, ("rate", link.rate or "", "burst", link.burst, "latency", "200ms")))
        common = {"MASTER_ADDR": f"{NET}1", "GLOO_SOCKET_IFNAME": "eth0"}
        yield [Place(("ip", "netns", "exec", space), common) for space in spaces]


@contextmanager
def _limited(spaces: list[str], limit: tuple[str, ...]) -> Iterator[None]:
    """A bridge between the namespaces; each sends at most at this rate."""
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
        for rank in range(len(spaces)):  # with its namespace a device would vanish only some time later
            subprocess.run(["ip", "link", "del", f"ptncnv{rank}"], capture_output=True)
        _run("ip", "link", "del", "ptncnbr")


@contextmanager
def _delayed(spaces: list[str], delay: float) -> Iterator[None]:
    """A TUN device in each namespace, and a thread that hands packets on."""
    devices: dict[int, int] = {}
    for rank, space in enumerate(spaces):
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        name = f"ptncnt{rank}"
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
        _run("ip", "link", "set", name, "netns", space)
        _run("ip", "-n", space, "link", "set", name, "name", "eth0", "mtu", "60000")
        _address(space, rank)
        devices[rank + 1] = device
    ended = threading.Event()
    thread = threading.Thread(target=_forward, args=(devices, delay, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        for device in devices.values():
            os.close(device)


def _forward(devices: dict[int, int], delay: float, ended: threading.Event) -> None:
    waiting: list[tuple[float, int, int, bytes]] = []
    number = 0
    while not ended.is_set():
        left = max(0.0, waiting[0][0] - time.monotonic()) if waiting else 0.2
        for device in select.select(list(devices.values()), [], [], left)[0]:
            with suppress(BlockingIOError):
                packet = os.read(device, 65536)
                if packet[0] >> 4 == 4 and packet[19] in devices:  # IPv4, and the last byte of its destination
                    number += 1
                    heapq.heappush(waiting, (time.monotonic() + delay, number, packet[19], packet))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, to, packet = heapq.heappop(waiting)
            with suppress(BlockingIOError):  # as on a network that drops a packet, TCP sends it again
                os.write(devices[to], packet)


def _address(space: str, rank: int) -> None:
    _run("ip", "-n", space, "addr", "add", f"{NET}{rank + 1}/24", "dev", "eth0")
    _run("ip", "-n", space, "link", "set", "eth0", "up")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")

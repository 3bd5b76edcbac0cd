"""The simulated ranks of the cost model take as long as calculated by hand."""

from __future__ import annotations

import pytest
from simulate import Network, simulated

FREE = Network(wait=0.0, message=0.0, byte=0.0)


def exchange(rank: int, before: float, size: float = 100.0) -> list[list]:
    return [["compute", before], ["send", 1, [[1 - rank, size]]], ["wait", [[1 - rank, 1]]], ["compute", 1.0]]


def test_a_rank_waits_for_the_latest_message():
    network = Network(wait=0.0, message=0.0, byte=0.0, latency=0.5, a_byte=0.01)
    assert simulated([exchange(0, 1.0), exchange(1, 3.0)], network, cores=2) == pytest.approx([3 + 1 + 0.5 + 1, 4.0])


def test_messages_cost_both_ends_work_and_so_does_sleeping():
    network = Network(wait=0.1, message=0.2, byte=0.004)
    half = (0.2 + 100 * 0.004) / 2
    ends = simulated([exchange(0, 1.0), exchange(1, 3.0)], network, cores=2)
    assert ends == pytest.approx([3 + half + 0.1 + half + 1, 3 + half + half + 1])


def test_messages_after_a_pause_leave_at_once():
    sends = [["compute", 9.0], *(["send", number, [[1, 100.0]]] for number in (1, 2, 3))]
    waits = [["wait", [[0, 1], [0, 2], [0, 3]]]]
    network = Network(wait=0.0, message=0.0, byte=0.0, a_byte=0.01, burst=200.0)
    assert simulated([sends, waits], network, cores=2) == pytest.approx([9.0, 10.0])


def test_ranks_take_turns_on_a_core():
    programs = [[["compute", 2.0]]] * 3
    assert max(simulated(programs, FREE, cores=2, slice_=0.01)) == pytest.approx(3.0, abs=0.02)
    assert simulated([[["compute", 2.0]]] * 2, FREE, cores=1, slice_=5.0) == [2.0, 4.0]


def test_an_idle_core_takes_a_waiting_rank_after_a_while():
    programs = [[["compute", 4.0]], [["compute", 1.0]], [["compute", 4.0]]]  # the first and the last share a core
    assert simulated(programs, FREE, cores=2, slice_=9.0, balance=0.5) == pytest.approx([4.0, 1.0, 1 + 0.5 + 4])
    assert simulated(programs, FREE, cores=2, slice_=9.0, balance=9.0) == pytest.approx([4.0, 1.0, 8.0])


def test_a_rank_that_wakes_up_goes_to_an_idle_core():
    waiting = [["compute", 1.0], ["wait", [[1, 1]]], ["compute", 1.0]]
    sending = [["compute", 2.0], ["send", 1, [[0, 1.0]]]]
    ends = simulated([waiting, sending, [["compute", 5.0]]], FREE, cores=2, slice_=9.0, balance=9.0)
    assert ends == pytest.approx([3.0, 2.0, 6.0])  # the last took the core of the first


def test_ranks_that_compute_at_once_slow_each_other_down():
    ends = simulated([[["compute", 1.0]], [["compute", 3.0]]], FREE, cores=2, slowdown=[1.5, 1.5])
    assert ends == pytest.approx([1.5, 1.5 + 2.0])


def test_a_message_that_no_rank_sends_is_an_error():
    with pytest.raises(ValueError, match="no rank sends"):
        simulated([[["wait", [[1, 1]]]], [["compute", 1.0]]], FREE, cores=2)

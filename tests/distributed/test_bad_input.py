"""Inconsistent ranks, or ranks that cannot connect, give one-line errors."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path

import numpy as np
import pytest
from launch import ranks

from ptncn.distributed import Ranks, RanksError, connect

ERRORS = {
    "weights": r"weights: expected \w{12} on rank 1, as on rank 0, got \w{12}",
    "options": r"options of the network: expected \w{12} on rank 1, as on rank 0, got \w{12}",
    "versions": r"version of ptncn: expected 0.1 on rank 1, as on rank 0, got 9.9",
    "split": r"split: expected units on rank 1, as on rank 0, got rows",
    "data": r"data and settings: expected 3d4e5f on rank 1, as on rank 0, got 0a1b2c",
    "too few layers": r"ranks: expected at most one for each of 1 layers, got 2",
}


def test_ranks_that_differ_give_a_one_line_error_on_all_of_them():
    for code, printed, errors in ranks(2, Path(__file__).with_name("refused_ranks.py")):
        assert code == 0, errors
        messages = dict(json.loads(line) for line in printed.splitlines())
        assert messages.keys() == ERRORS.keys()
        assert [name for name, message in messages.items() if not re.fullmatch(ERRORS[name], message)] == []


def test_each_host_with_different_data_gives_a_one_line_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for rank in (0, 1):
        np.save(f"{rank}.npy", np.full((20, 4, 3), rank, dtype="float32"))
    message = r"Error: data and settings: expected (\w{12}) on rank 1, as on rank 0, got (?!\1)\w{12}\n"
    for code, printed, errors in ranks(2, Path(__file__).with_name("refused_training.py")):
        assert (code, printed) == (1, "")
        assert re.fullmatch(message, errors), errors


def test_a_port_in_use_gives_a_one_line_error(monkeypatch):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        environment = {
            "RANK": "0",
            "WORLD_SIZE": "1",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(other.getsockname()[1]),
        }
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        with (
            pytest.raises(RanksError, match=r"^ranks: cannot connect at 127\.0\.0\.1:\d+: .*in use") as raised,
            connect(),
        ):
            pass
    assert "\n" not in str(raised.value)


def test_ranks_without_a_process_group_give_a_one_line_error():
    with pytest.raises(
        RanksError, match=r"^ranks: expected a process group; use ptncn.distributed.connect\(\), or torchrun$"
    ):
        Ranks()

import copy

import pytest

from ptncn.demo.contestants import LSTM, PTNCN, contestants
from ptncn.demo.findings import findings
from ptncn.demo.life import Size, live


@pytest.fixture(scope="session")
def size():
    return Size(scenes=5, looks=2, units=(8, 4))


@pytest.fixture(scope="session")
def learners(size):
    """As they are after their life."""
    return contestants(size.units, seed=3)


@pytest.fixture(scope="session")
def life(learners, size):
    return live(learners, size, seed=3)


@pytest.fixture(scope="session")
def record(life, learners, size):
    return findings(life, learners, size, 3, "ptncn demo --seed 3")


@pytest.fixture
def swapped(record):
    """The same life with the roles exchanged: whoever was better is worse."""
    tree = copy.deepcopy(record)
    for place in (*(span for part in tree["parts"] for span in part.values()), tree["curve"], tree["looks"]):
        if isinstance(place, dict):
            place[PTNCN], place[LSTM] = place[LSTM], place[PTNCN]
    return tree

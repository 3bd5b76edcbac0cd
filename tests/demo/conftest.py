import copy

import pytest

from ptncn.demo.simulate import LSTM, PTNCN, Size, make_learners, make_record, simulate


@pytest.fixture(scope="session")
def size():
    return Size(scenes=5, test_scenes=2, units=(8, 4))


@pytest.fixture(scope="session")
def learners(size):
    """Both learners, trained by the simulation."""
    return make_learners(size.units, seed=3)


@pytest.fixture(scope="session")
def simulation(learners, size):
    return simulate(learners, size, seed=3)


@pytest.fixture(scope="session")
def record(simulation, learners, size):
    return make_record(simulation, learners, size, 3, "ptncn demo --seed 3")


@pytest.fixture
def swapped(record):
    """The same run with the two learners exchanged."""
    tree = copy.deepcopy(record)
    for scores in (*(span for part in tree["parts"] for span in part.values()), tree["curve"], tree["evaluations"]):
        if isinstance(scores, dict):
            scores[PTNCN], scores[LSTM] = scores[LSTM], scores[PTNCN]
    return tree

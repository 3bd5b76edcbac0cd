"""The simulation of the demo: its stream, its errors, its evaluations and its record."""

import json

import numpy as np
import pytest
import torch

from ptncn.data import load_images
from ptncn.demo.simulate import (
    LSTM,
    PARTS,
    PTNCN,
    RENAMED,
    SCENE,
    UNCORRECTED,
    count_weights,
    equal_units,
    halved,
    load_record,
    make_learners,
    make_record,
    predictable,
    scenes,
    simulate,
    without_correction,
)
from ptncn.records import unpack


@pytest.fixture(scope="module")
def stream(size):
    """All frames: (parts, scenes, frames, pixels)."""
    parts = [scenes(name, "train", size.scenes, seed=3, purpose=f"part {n}") for n, name in enumerate(PARTS)]
    return np.stack([part.batch(range(size.scenes)).x.double().numpy().swapaxes(0, 1) for part in parts])


def test_images_of_half_the_size_are_as_bright():
    images = load_images("digits", "test")
    small = halved(images)
    assert small.pixels.shape == (len(images), 14, 14)
    assert small.pixels.mean() == pytest.approx(images.pixels.mean(), rel=0.01)
    assert small.pixels[3, 5, 6] == pytest.approx(images.pixels[3, 10:12, 12:14].mean(), abs=0.5)


@pytest.mark.parametrize("units", [(20, 10), (100, 50), (200, 100)])
def test_both_have_the_same_number_of_weights(units):
    ours, theirs = (count_weights(learner) for learner in make_learners(units, seed=0).values())
    assert theirs == pytest.approx(ours, rel=0.05)
    assert equal_units(theirs) == make_learners(units, seed=0)[LSTM].options()["hidden_size"]


def test_the_error_of_repeating_the_last_frame_is_that_of_the_frames(simulation, stream):
    errors = np.square(np.diff(stream, axis=2)).sum(-1)  # (parts, scenes, frames - 1)
    assert simulation.errors["copy"][..., 1:] == pytest.approx(errors, rel=1e-5)
    assert predictable(simulation.errors["copy"]) == pytest.approx(errors.mean(), rel=1e-5)


def test_each_frame_is_predicted_before_it_is_learnt_from_and_the_state_runs_on(simulation, stream, size):
    fresh = make_learners(size.units, seed=3)
    x = torch.from_numpy(stream.reshape(-1, 1, 1024)).float()
    for name, learner in fresh.items():
        state, errors = learner.begin(1), []
        for frame in x:
            expected = learner.predict(state)  # has not seen the frame
            learner.step(frame, state)
            errors.append(float((expected - frame).double().square().sum()))
        assert simulation.errors[name].ravel() == pytest.approx(np.array(errors), rel=1e-4)


def test_films_and_curves_show_the_simulation(simulation, record, stream, size):
    truth = unpack(record["films"]["truth"])
    assert record["films"]["scenes"] == [[part, scene] for part in range(4) for scene in (0, size.scenes - 1)]
    assert truth[3] / 255 == pytest.approx(stream[1, size.scenes - 1], abs=1 / 30 + 1e-6)
    for name in (PTNCN, LSTM, "copy"):
        assert record["curve"][name][0] == pytest.approx(simulation.errors[name][0, 0, 1:].mean(), abs=1e-3)
        assert record["parts"][2]["all"][name] == pytest.approx(simulation.errors[name][2, :, 1:].mean(), abs=1e-3)
    assert record["surprise"][0][-1] == pytest.approx(simulation.errors[PTNCN][-1, -1, 1:].mean() / 2, rel=1e-3)
    assert len(record["curve"]["frames"]) == len(record["surprise"][1]) == 4 * size.scenes
    assert record["curve"]["frames"][1] == SCENE * 3 // 2


def test_every_dataset_is_evaluated_before_the_stream_and_after_each_part(record):
    for name in (PTNCN, LSTM, UNCORRECTED):
        assert np.shape(record["evaluations"][name]) == (5, 3)
    assert record["evaluations"][PTNCN][4][0] < record["evaluations"][PTNCN][0][0]


def test_without_correction_the_weights_are_the_same_and_only_the_states_differ(learners):
    uncorrected = without_correction(learners[PTNCN])
    for name, weight in learners[PTNCN].synapses().items():
        assert torch.equal(weight, uncorrected.synapses()[name])
    x = scenes("letters", "test", 1, seed=0, purpose="look").batch([0]).x
    state = uncorrected.begin(1)
    for frame in x:
        out = uncorrected.step(frame, state, learn=False)
    assert all(torch.equal(z, y) for z, y in zip(out.states, out.corrected, strict=True))


def test_the_same_seed_gives_the_same_numbers_and_another_gives_others(record, size):
    def again(seed):
        learners = make_learners(size.units, seed)
        tree = make_record(simulate(learners, size, seed), learners, size, seed, "ptncn demo --seed 3")
        return {key: tree[key] for key in ("parts", "curve", "surprise", "evaluations", "films")}

    expected = {key: record[key] for key in ("parts", "curve", "surprise", "evaluations", "films")}
    assert again(3) == expected
    assert again(4) != expected


def test_the_record_is_plain_json(record):
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_a_record_with_former_names_is_read(record, tmp_path):
    former = {new: old for old, new in RENAMED.items()}
    tree = {former.get(name, name): value for name, value in record.items()}
    tree["parts"] = [{former.get(name, name): value for name, value in part.items()} for part in tree["parts"]]
    (tmp_path / "demo.json").write_text(json.dumps({**tree, "schema": 1}))
    assert load_record(tmp_path / "demo.json") == json.loads(json.dumps(record))

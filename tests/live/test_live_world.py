"""The moving world: visitors' commands, and frames that depend on nothing else."""

import base64
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from ptncn.data import load_images
from ptncn.data.images import BouncingVideo
from ptncn.demo.simulate import count_weights, halved
from ptncn.learners import make
from ptncn.live.messages import Visitor, parse
from ptncn.live.objects import SCENE, World, drawn_clothes, grey
from ptncn.live.pair import equal_units, make_pair, rivals
from ptncn.live.world import WorldPage

UNITS = (8, 4)


@pytest.fixture
def page():
    return WorldPage(units=UNITS)


def do(page, kind, value=None):
    page.receive(parse(json.dumps({"type": kind, "value": value}), page.checks), Visitor())


def frames(page, count):
    """The pixels of the next frames: the world and what both learners expect."""
    made = []
    for _ in range(count):
        page.tick()
        made.append(page.latest[-3 * 1024 :])
    return made


def weights(page):
    return [{name: weight.clone() for name, weight in each.learner.named_parameters()} for each in page.runners]


def same(first, second):
    return all(torch.equal(first[name], second[name]) for name in first)


def test_the_world_shows_the_scenes_of_the_bouncing_video():
    world = World(seed=3)
    video = BouncingVideo(
        halved(load_images("digits", "train")), size=1_000_000, canvas=32, length=SCENE, seed=3, stream="live"
    )
    for number in (0, 1):
        expected = video.batch([number]).x[:, 0]
        for x in expected:
            assert np.array_equal(grey(world.next()), (x * 255).round().byte().numpy())


def test_the_same_seed_and_the_same_commands_give_the_same_frames():
    def life():
        page = WorldPage(units=UNITS)
        made = frames(page, 5)
        do(page, "kind", "clothes")
        do(page, "objects", 4)
        made += frames(page, 5)
        do(page, "occlusion", 10)
        do(page, "speed", 0.2)
        return made + frames(page, 5)

    assert life() == life()


def test_a_bar_hides_the_middle_of_the_world_and_nothing_else():
    plain, hidden = World(), World()
    plain.change()
    hidden.change(occlusion=8)
    for _ in range(5):
        x, seen = (grey(world.next()).reshape(32, 32) for world in (plain, hidden))
        assert not seen[:, 12:20].any()
        assert np.array_equal(np.delete(seen, range(12, 20), 1), np.delete(x, range(12, 20), 1))


def test_a_drawing_moves(page):
    pixels = np.zeros((28, 28), np.uint8)
    pixels[4:24, 10:18] = 200
    do(page, "drawing", base64.b64encode(pixels.tobytes()).decode())
    do(page, "objects", 1)
    page.tick()
    assert page.state()["kind"] == "drawing"
    frame = np.frombuffer(frames(page, 3)[-1], np.uint8)[:1024]
    assert frame.sum() == 10 * 4 * 200  # half as high and wide


def test_frozen_weights_stay_put_while_states_still_change(page):
    frames(page, 5)
    do(page, "freeze", True)
    page.tick()
    before, state = weights(page), page.runners[0].state.corrected.clone()
    frames(page, 3)
    assert all(map(same, before, weights(page)))
    assert not torch.equal(state, page.runners[0].state.corrected)
    do(page, "freeze", False)
    frames(page, 9)
    assert not any(map(same, before, weights(page)))


def test_a_dream_equals_that_of_the_network(page):
    frames(page, 10)
    network, state = page.runners[0].learner, page.runners[0].state.clone()
    expected = [grey(each).tobytes() for each in network.dream(state, 4)]
    do(page, "dream", True)
    before = weights(page)
    assert [each[1024:2048] for each in frames(page, 4)] == expected
    assert all(map(same, before, weights(page)))


@pytest.mark.parametrize(
    ("learner", "part", "prefix"), [(0, "layer 1", "1"), (0, "layer 2", "2"), (1, "hidden layer", "cell")]
)
def test_a_lesioned_layer_is_silent_until_its_weights_are_restored(page, learner, part, prefix):
    frames(page, 10)
    before = weights(page)[learner]
    hurt = [name for name in before if (name.endswith(prefix) if learner == 0 else name.startswith(prefix))]
    assert 0 < len(hurt) < len(before)
    do(page, "lesion", {"learner": learner, "part": part, "on": True})
    frames(page, 8)
    after = weights(page)[learner]
    assert all(not after[name].any() for name in hurt)
    assert page.state()["learners"][learner]["lesions"] == [part]
    if learner == 0:
        assert not page.runners[0].surprise or np.isfinite(page.runners[0].surprise).all()
    do(page, "lesion", {"learner": learner, "part": part, "on": False})
    do(page, "freeze", True)
    page.tick()
    healed = weights(page)[learner]
    assert all(torch.equal(healed[name], before[name]) for name in hurt)


def test_going_back_repeats_what_came_after_the_snapshot(page):
    frames(page, 30)
    do(page, "snapshot")
    first = frames(page, 50)  # across the end of a scene
    do(page, "kind", "clothes")
    do(page, "lesion", {"learner": 0, "part": "layer 1", "on": True})
    frames(page, 10)
    for _ in range(2):  # the snapshot is still there, untouched
        do(page, "back")
        assert frames(page, 50) == first


def test_going_back_requires_a_snapshot(page):
    with pytest.raises(ValueError, match="no snapshot"):
        do(page, "back")


def test_a_paused_world_stands_still_and_advances_frame_by_frame(page):
    frames(page, 2)
    do(page, "pause", True)
    frames(page, 3)
    assert page.number == 2
    do(page, "step")
    frames(page, 3)
    assert page.number == 3
    for _ in range(2):
        do(page, "step")
    page.tick()
    assert page.number == 5  # both, although they came before the same frame


def test_another_learner_restarts_both(page):
    begun = weights(page)[0]
    frames(page, 10)
    do(page, "rival", "gru-tbptt")
    do(page, "freeze", True)
    page.tick()
    assert page.runners[1].name == "gru-tbptt"
    assert page.number == 1
    assert same(weights(page)[0], begun)


@pytest.mark.parametrize("name", ["lstm-tbptt", "gru-bptt", "rnn-sab", "lru-rtrl", "esn-rls"])
def test_both_learners_have_equal_numbers_of_weights(name):
    target = 60_000
    made = count_weights(make(name, input_size=1024, hidden_size=equal_units(name, target)))
    one_more = count_weights(make(name, input_size=1024, hidden_size=equal_units(name, target) + 1))
    assert abs(made - target) <= one_more - made


@pytest.mark.parametrize("name", sorted({name.partition("-")[2] or name: name for name in rivals()}.values()))
def test_every_way_to_learn_can_be_watched(name):
    page = WorldPage(name, units=UNITS)
    frames(page, 3)
    do(page, "kind", "clothes")  # the scene ends
    do(page, "dream", True)
    frames(page, 2)
    do(page, "snapshot")
    do(page, "dream", False)
    first = frames(page, 3)
    do(page, "back")
    assert frames(page, 3) == first


def test_a_learner_that_diverges_stops_the_world_and_says_so(page):
    def diverge(*_, **__):
        page._stop.set()
        raise FloatingPointError("the gradient's norm is nan")

    page.runners[1].learner.step = diverge
    page._run()
    assert page.state()["problem"] == "the gradient's norm is nan"
    assert page.paused


def test_settings_are_those_that_the_search_found_best_on_other_worlds():
    record = json.loads((Path(__file__).parents[2] / "results" / "live" / "rates.json").read_text())
    assert WorldPage(units=UNITS).seed not in record["seeds"]
    for runner in make_pair(units=UNITS):
        tried = [run for run in record["runs"] if run["learner"] == runner.name]
        assert len(tried) == 12
        best = min(tried, key=lambda run: run["mean"])["tried"]
        assert {name: runner.learner.options()[name] for name in best} == best


def test_a_learner_with_exact_gradients_is_smaller_and_the_page_says_so():
    mine, other = make_pair("rnn-rtrl", units=UNITS)
    assert mine.equal
    assert not other.equal


def test_drawn_clothes_fill_their_images():
    images = drawn_clothes()
    assert len(set(images.labels.tolist())) == 10
    assert (images.pixels.max((1, 2)) >= 150).all()
    assert not images.pixels[:, 0].any()

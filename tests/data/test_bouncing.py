"""Bouncing video against the rules in plain loops; it depends on neither batch, order nor worker."""

import multiprocessing
import pickle

import numpy as np
import plain_bouncing
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ptncn.data import BouncingVideo, Images, bouncing, bouncing_test, load_images
from ptncn.data.images import move


@pytest.fixture(scope="module")
def images():
    pixels = np.random.default_rng(0).integers(0, 256, (50, 28, 28), dtype=np.uint8)
    return Images("noise", pixels, np.zeros(50, np.uint8))


@pytest.fixture(scope="module")
def video(images):
    return BouncingVideo(images, size=200, seed=3, stream="train")


class TestRules:
    @pytest.mark.parametrize("index", [0, 1, 77, 199])
    def test_a_sequence_equals_the_plain_implementation_from_seed_to_pixels(self, images, video, index):
        expected = plain_bouncing.video(
            images.pixels, index, seed=3, stream="train", objects=2, canvas=64, length=20, speed=0.1
        )
        np.testing.assert_array_equal(video.frames([index])[:, 0], expected)

    @pytest.mark.parametrize(
        ("objects", "canvas", "length", "speed"), [(1, 28, 3, 0.1), (5, 40, 7, 0.7), (3, 96, 2, 0)]
    )
    def test_any_number_of_objects_canvas_length_and_speed_equals_the_plain_implementation(
        self, images, objects, canvas, length, speed
    ):
        settings = {"objects": objects, "canvas": canvas, "length": length, "speed": speed}
        video = BouncingVideo(images, size=10**12, seed=1, stream="s", **settings)
        for index in (0, 10**12 - 1):
            expected = plain_bouncing.video(images.pixels, index, seed=1, stream="s", **settings)
            np.testing.assert_array_equal(video.frames([index])[:, 0], expected)

    @settings(deadline=None)
    @given(
        x=st.floats(0, 1, exclude_min=True, exclude_max=True),
        y=st.floats(0, 1, exclude_min=True, exclude_max=True),
        angle=st.floats(0, 2 * np.pi),
        speed=st.floats(0, 1.5),
    )
    def test_paths_bounce_and_stay_inside(self, x, y, angle, speed):
        velocity = speed * np.array([np.sin(angle), np.cos(angle)])
        path = (36 * move(np.array([y, x]), velocity, 50)).astype(int)
        expected = np.array(plain_bouncing.corner_path(x, y, angle, 50, speed, 36))
        assert np.abs(path - expected).max() <= 1  # NumPy's and the C library's sine may differ in the last bit
        assert (path != expected).mean() <= 0.04

    def test_an_object_that_reaches_an_edge_stays_there_for_the_frame_and_returns(self):
        path = move(np.array([0.85]), np.array([0.1]), 4)[:, 0]
        np.testing.assert_allclose(path, [0.95, 1.0, 0.9, 0.8])

    def test_overlapping_objects_show_the_brighter_pixel(self):
        pixels = np.stack([np.full((8, 8), 100, np.uint8), np.full((8, 8), 200, np.uint8)])
        video = BouncingVideo(Images("two", pixels, np.zeros(2, np.uint8)), canvas=8, objects=8, size=20)
        chosen, _ = video.trajectories(range(20))
        expected = np.where((chosen == 1).any(1), 200, 100)
        np.testing.assert_array_equal(video.frames(range(20))[0, :, 0, 0], expected)

    def test_starts_are_uniform_on_the_range_and_directions_on_the_circle(self, images):
        video = BouncingVideo(images, size=5_000, length=2, speed=1e-9)
        chosen, corners = video.trajectories(range(5_000))
        assert corners.min() == 0
        assert corners.max() == 35
        counts = np.bincount(corners[0].ravel(), minlength=36)
        assert np.abs(counts - 20_000 / 36).max() < 5 * np.sqrt(20_000 / 36)
        assert np.bincount(chosen.ravel()).min() > 100
        fast = BouncingVideo(images, size=5_000, length=2, speed=0.1, canvas=28 + 10**6)
        steps = np.diff(fast.trajectories(range(5_000))[1], axis=0)[0].reshape(-1, 2) / 10**5
        free = steps[np.abs(np.hypot(*steps.T) - 1) < 1e-3]  # no edge between the two frames
        assert len(free) > 7_000
        angles = np.arctan2(*free.T)
        assert np.histogram(angles, bins=8, range=(-np.pi, np.pi))[0].min() > len(free) / 8 * 0.85

    def test_batches_are_time_major_and_scaled_to_0_to_1(self, video):
        x, mask = video.batch([5, 9])
        assert x.shape == (20, 2, 64 * 64)
        assert x.dtype == torch.float32
        assert mask is None
        np.testing.assert_array_equal(x.reshape(20, 2, 64, 64), np.float32(video.frames([5, 9])) / np.float32(255))


class TestRandomAccess:
    def test_a_sequence_is_the_same_in_every_batch_and_order(self, video):
        together = video.batch([7, 3, 150]).x
        for position, index in enumerate([7, 3, 150]):
            assert torch.equal(video[index], together[:, position])

    @pytest.mark.parametrize("batch_size", [1, 7, 200, 1000])
    def test_batches_of_any_size_hold_the_same_sequences(self, video, batch_size):
        whole = torch.cat([x for x, _ in video.batches(batch_size)], dim=1)
        assert torch.equal(whole[:, ::37], video.batch(range(0, 200, 37)).x)
        assert whole.shape[1] == 200

    def test_object_k_does_not_depend_on_the_number_of_objects(self, images):
        one, three = (BouncingVideo(images, objects=n).trajectories([4, 5]) for n in (1, 3))
        np.testing.assert_array_equal(one[0], three[0][:, :1])
        np.testing.assert_array_equal(one[1], three[1][:, :, :1])

    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning", "ignore:This DataLoader will create:UserWarning")
    @pytest.mark.parametrize("workers", [0, 1, 2])
    def test_any_number_of_workers_makes_the_same_sequences(self, video, workers):
        context = "fork" if workers and "fork" in multiprocessing.get_all_start_methods() else None
        loader = torch.utils.data.DataLoader(video, batch_size=8, num_workers=workers, multiprocessing_context=context)
        loaded = torch.cat(list(loader))  # (N, T, n)
        assert torch.equal(loaded.transpose(0, 1), video.batch(range(200)).x)

    def test_it_can_be_sent_to_another_process(self, video):
        assert torch.equal(pickle.loads(pickle.dumps(video))[17], video[17])

    def test_shuffling_gives_every_sequence_once_in_another_order_each_epoch(self, images):
        video = BouncingVideo(images, size=45, length=2)
        alone = {video[i].numpy().tobytes() for i in range(45)}
        orders = []
        for epoch in (0, 1):
            rows = torch.cat([x for x, _ in video.batches(10, shuffle_seed=5, epoch=epoch)], dim=1)
            orders.append([rows[:, i].numpy().tobytes() for i in range(45)])
            assert set(orders[-1]) == alone
        assert orders[0] != orders[1]

    @pytest.mark.parametrize("shuffle_seed", [None, 8])
    def test_a_run_continues_where_it_stopped(self, video, shuffle_seed):
        whole = [x for x, _ in video.batches(30, shuffle_seed=shuffle_seed)]
        rest = [x for x, _ in video.batches(30, shuffle_seed=shuffle_seed, start=4)]
        assert len(whole) == 7
        assert all(torch.equal(a, b) for a, b in zip(whole[4:], rest, strict=True))

    def test_no_global_generator_is_touched(self, video):
        before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
        next(video.batches(20, shuffle_seed=1))
        assert torch.equal(before[0], torch.get_rng_state())
        np.testing.assert_array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002


class TestIdentity:
    def test_videos_are_equal_if_their_hashes_are(self, images):
        same = {BouncingVideo(images).sha256, BouncingVideo(images).sha256}
        others = [
            {"seed": 1},
            {"objects": 3},
            {"canvas": 65},
            {"length": 21},
            {"speed": 0.2},
            {"stream": "x"},
            {"size": 9},
        ]
        assert len(same | {BouncingVideo(images, **other).sha256 for other in others}) == 1 + len(others)
        assert BouncingVideo(images[1:]).sha256 not in same

    def test_splits_of_one_seed_share_neither_objects_nor_motions(self):
        train, valid, test = (bouncing("shapes", split, seed=0) for split in ("train", "valid", "test"))
        paths = [video.trajectories(range(50))[1] for video in (train, valid, test)]
        assert not any((a == b).all((0, 2, 3)).any() for a, b in [paths[:2], paths[1:], paths[::2]])

    def test_the_test_set_is_fixed_and_has_ten_thousand_videos(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PTNCN_DATA", str(tmp_path))
        test = bouncing_test("letters")
        assert len(test) == 10_000
        assert test.sha256 == bouncing("letters", "test", seed=0).sha256
        assert test.images.sha256 == load_images("letters", "test").sha256


class TestBadInput:
    @pytest.mark.parametrize("argument", ["size", "objects", "canvas", "length"])
    @pytest.mark.parametrize("value", [0, -1, 1.5, True])
    def test_counts_must_be_positive_integers(self, images, argument, value):
        with pytest.raises(ValueError, match=f"{argument}: expected an integer"):
            BouncingVideo(images, **{argument: value})

    @pytest.mark.parametrize("speed", [-0.1, float("nan"), float("inf")])
    def test_the_speed_must_be_a_share_of_the_range(self, images, speed):
        with pytest.raises(ValueError, match="speed: expected"):
            BouncingVideo(images, speed=speed)

    def test_objects_must_fit_on_the_canvas(self, images):
        with pytest.raises(ValueError, match="28×28 pixels do not fit on a canvas of 27×27"):
            BouncingVideo(images, canvas=27)

    @pytest.mark.parametrize("indices", [[200], [-1], [0, 10**9]])
    def test_sequences_that_do_not_exist_are_an_index_error(self, video, indices):
        with pytest.raises(IndexError, match="sequences 0 to 199"):
            video.batch(indices)

    @pytest.mark.parametrize("indices", [[], [0.5], [[0]], ["a"]])
    def test_indices_must_be_a_list_of_integers(self, video, indices):
        with pytest.raises(ValueError, match="indices: expected"):
            video.batch(indices)

    @pytest.mark.parametrize(
        ("options", "named"), [({"batch_size": 0}, "batch_size"), ({"batch_size": 1, "start": -1}, "start")]
    )
    def test_batches_check_their_arguments_when_called(self, video, options, named):
        with pytest.raises(ValueError, match=named):
            video.batches(**options)

"""A user's own arrays and videos give the values of the file."""

import hashlib
import pickle

import numpy as np
import pytest
import torch
from PIL import Image

from ptncn.data import ArraySequences, DataError, load_sequences


@pytest.fixture
def video():
    """(T, height, width) a few grey frames."""
    return np.random.default_rng(0).integers(0, 256, (6, 5, 4), dtype=np.uint8)


class TestNpy:
    def test_sequences_first(self, tmp_path):
        array = np.random.default_rng(0).normal(size=(7, 3, 2))
        np.save(tmp_path / "x.npy", array)
        data = load_sequences(tmp_path / "x.npy")
        assert (len(data), data.input_size) == (7, 2)
        torch.testing.assert_close(data.batch([4, 0]).x, torch.tensor(array[[4, 0]]).float().transpose(0, 1))

    def test_time_first(self, tmp_path, video):
        np.save(tmp_path / "x.npy", np.stack([video, video[::-1]], axis=1))
        data = load_sequences(tmp_path / "x.npy", layout="TN")
        assert data.observation_shape == (5, 4)
        torch.testing.assert_close(data[1], torch.tensor(video[::-1].reshape(6, 20) / np.float32(255)))

    def test_one_sequence(self, tmp_path):
        np.save(tmp_path / "x.npy", np.arange(5))
        assert load_sequences(tmp_path / "x.npy", layout="T")[0].tolist() == [[0], [1], [2], [3], [4]]

    def test_pickled_objects_are_refused_and_not_executed(self, tmp_path):
        class Bomb:
            def __reduce__(self):
                return (open, (str(tmp_path / "executed"), "w"))

        np.save(tmp_path / "x.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
        (tmp_path / "y.npy").write_bytes(pickle.dumps(Bomb()))
        (tmp_path / "executed").unlink(missing_ok=True)
        for name in ("x.npy", "y.npy"):
            with pytest.raises(DataError, match=name):
                load_sequences(tmp_path / name)
        assert not (tmp_path / "executed").exists()

    def test_a_truncated_file_is_named_and_not_changed(self, tmp_path):
        path = tmp_path / "x.npy"
        np.save(path, np.zeros((10, 10, 10)))
        for keep in (4, 60, 1000):
            path.write_bytes(path.read_bytes()[:keep])
            with pytest.raises(DataError, match=r"x\.npy"):
                load_sequences(path)
            assert path.stat().st_size <= keep
            np.save(path, np.zeros((10, 10, 10)))

    def test_too_few_axes_name_the_layout(self, tmp_path):
        np.save(tmp_path / "x.npy", np.zeros(5))
        with pytest.raises(DataError, match=r"x\.npy: shape \(5,\), but the layout NT needs 2 axes"):
            load_sequences(tmp_path / "x.npy")

    def test_values_that_are_not_finite_name_the_sequence(self, tmp_path):
        array = np.zeros((3, 4, 2))
        array[1, 2, 0] = np.nan
        np.save(tmp_path / "x.npy", array)
        data = load_sequences(tmp_path / "x.npy")
        data.batch([0, 2])
        with pytest.raises(DataError, match=r"x\.npy: sequence 1 holds values that are not finite"):
            data.batch([0, 1])

    def test_the_file_is_not_changed_through_a_batch(self, tmp_path):
        path = tmp_path / "x.npy"
        np.save(path, np.ones((2, 3, 4), np.float32))
        before = path.read_bytes()
        load_sequences(path).batch([0]).x.fill_(5)
        assert path.read_bytes() == before


class TestPictures:
    def test_an_animated_gif_is_one_sequence(self, tmp_path, video):
        frames = [Image.fromarray(frame) for frame in video]
        frames[0].save(tmp_path / "x.gif", save_all=True, append_images=frames[1:])
        data = load_sequences(tmp_path / "x.gif")
        assert (len(data), data.observation_shape) == (1, (5, 4))
        torch.testing.assert_close(data[0], torch.tensor(video.reshape(6, 20) / np.float32(255)))

    def test_a_folder_of_images_is_one_sequence_in_the_order_of_their_numbers(self, tmp_path, video):
        for i, frame in enumerate(video):
            Image.fromarray(frame).save(tmp_path / f"frame{2 * i + 3}.png")  # 3, 5, …, 13
        (tmp_path / "notes.txt").write_text("not a picture")
        torch.testing.assert_close(load_sequences(tmp_path)[0], torch.tensor(video.reshape(6, 20) / np.float32(255)))

    def test_a_folder_of_folders_is_a_sequence_each_of_any_length(self, tmp_path, video):
        for name, count in (("a", 6), ("b", 2)):
            (tmp_path / name).mkdir()
            for i in range(count):
                Image.fromarray(video[i]).save(tmp_path / name / f"{i}.png")
        data = load_sequences(tmp_path)
        x, mask = data.batch([1, 0])
        assert mask.sum(0).tolist() == [2, 6]
        assert x[2:, 0].abs().max() == 0
        assert data[1].shape == (2, 20)

    def test_frames_are_scaled_and_made_grey_when_asked(self, tmp_path):
        Image.new("RGB", (40, 20), (255, 255, 255)).save(tmp_path / "x.png")
        data = load_sequences(tmp_path, size=(10, 8))
        assert data.observation_shape == (10, 8)
        assert data[0].unique().tolist() == [1.0]

    def test_images_of_different_sizes_name_the_odd_one(self, tmp_path):
        Image.new("L", (4, 4)).save(tmp_path / "1.png")
        Image.new("L", (4, 5)).save(tmp_path / "2.png")
        with pytest.raises(DataError, match=r"2\.png: expected \(4, 4\) pixels as in the first image, got \(5, 4\)"):
            load_sequences(tmp_path)

    @pytest.mark.parametrize("name", ["x.png", "x.gif"])
    def test_a_broken_picture_is_named_and_not_changed(self, tmp_path, name, video):
        folder = tmp_path / "folder"
        folder.mkdir()
        frames = [Image.fromarray(frame) for frame in video]
        frames[0].save(folder / name, save_all=True, append_images=frames[1:])
        broken = (folder / name).read_bytes()[:60]
        (folder / name).write_bytes(broken)
        with pytest.raises(DataError, match=name):
            load_sequences(folder if name == "x.png" else folder / name)
        assert (folder / name).read_bytes() == broken

    def test_a_folder_without_images_or_with_both_is_named(self, tmp_path):
        with pytest.raises(DataError, match="no images in it"):
            load_sequences(tmp_path)
        (tmp_path / "sub").mkdir()
        Image.new("L", (4, 4)).save(tmp_path / "1.png")
        with pytest.raises(DataError, match="expected images or folders, got both"):
            load_sequences(tmp_path)


class TestArrays:
    def test_bytes_are_pixels_and_other_numbers_stay(self):
        for dtype, expected in ((np.uint8, 51 / 255), (np.int16, 51), (np.float64, 51), (np.bool_, 1)):
            assert ArraySequences("x", [np.full((2, 1), 51).astype(dtype)])[0][0, 0].item() == pytest.approx(expected)

    def test_observations_must_be_numbers_of_one_shape(self):
        with pytest.raises(DataError, match=r"x: sequence 1: expected observations of shape \(2,\)"):
            ArraySequences("x", [np.zeros((5, 2)), np.zeros((5, 3))])
        with pytest.raises(DataError, match="x: sequence 0 holds <U1"):
            ArraySequences("x", [np.array(["a"])])
        with pytest.raises(DataError, match="x: no sequences"):
            ArraySequences("x", [])
        with pytest.raises(DataError, match=r"x: sequence 0 has shape \(0, 2\)"):
            ArraySequences("x", [np.zeros((0, 2))])

    def test_the_hash_is_that_of_the_content(self):
        same = {ArraySequences(name, np.ones((2, 3))).sha256 for name in "ab"}
        assert len(same) == 1
        assert ArraySequences("a", np.ones((3, 2))).sha256 not in same
        assert len(same.pop()) == len(hashlib.sha256().hexdigest())


def test_anything_else_is_refused_with_the_layouts(tmp_path):
    (tmp_path / "x.mp4").write_bytes(b"video")
    with pytest.raises(DataError, match=r"x\.mp4: sequences come from a \.npy"):
        load_sequences(tmp_path / "x.mp4")
    with pytest.raises(DataError, match="gone: no such file"):
        load_sequences(tmp_path / "gone")
    with pytest.raises(ValueError, match="Choose one of: NT, TN, T"):
        load_sequences(tmp_path, layout="BT")

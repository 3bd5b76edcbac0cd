"""The real data: counts, means and labels as published. Skipped where it has not been downloaded."""

import hashlib

import numpy as np
import pytest

from ptncn.data import DATASETS, bouncing, cache_folder, load_images, penn_treebank
from ptncn.data.download import look_up

MNIST_LABELS = {
    "train+valid": [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
    "test": [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
}


def require(name):
    missing = [file.path for file in DATASETS[name].files if not (cache_folder() / file.path).is_file()]
    if missing:
        pytest.skip(f"{missing[0]} is not in {cache_folder()}: ptncn data fetch {name}, or set PTNCN_DATA")


@pytest.mark.parametrize("name", DATASETS)
def test_files_match_their_checksums(name):
    require(name)
    status = look_up(DATASETS[name].files)
    assert status.correct, str(status)


class TestImages:
    @pytest.mark.parametrize(("split", "count", "mean"), [("train+valid", 60_000, 0.1307), ("test", 10_000, 0.1325)])
    def test_mnist(self, split, count, mean):
        require("mnist")
        images = load_images("mnist", split)
        assert images.pixels.shape == (count, 28, 28)
        assert images.pixels.mean() / 255 == pytest.approx(mean, abs=5e-5)
        assert np.bincount(images.labels).tolist() == MNIST_LABELS[split]

    @pytest.mark.parametrize(("split", "count", "mean"), [("train+valid", 60_000, 0.2860), ("test", 10_000, 0.2868)])
    def test_fashion_mnist(self, split, count, mean):
        require("fashion-mnist")
        images = load_images("fashion-mnist", split)
        assert images.pixels.mean() / 255 == pytest.approx(mean, abs=5e-5)
        assert np.bincount(images.labels).tolist() == [count // 10] * 10

    def test_the_test_set_of_notmnist_has_a_thousand_of_each_letter(self):
        require("notmnist")
        test = load_images("notmnist", "test")
        assert np.bincount(test.labels).tolist() == [1000] * 10
        assert test.pixels.mean() / 255 == pytest.approx(0.4266, abs=5e-5)

    def test_notmnist_has_one_of_its_two_training_sets(self):
        require("notmnist")
        train = load_images("notmnist", "train+valid")
        assert len(train) in (60_000, 8_488)
        assert 0.4 < train.pixels.mean() / 255 < 0.45
        assert np.bincount(train.labels, minlength=10).min() > len(train) * 0.08

    @pytest.mark.parametrize("name", ["mnist", "notmnist", "fashion-mnist"])
    def test_no_image_of_train_is_in_valid(self, name):
        require(name)
        whole, train, valid = (load_images(name, split) for split in ("train+valid", "train", "valid"))
        assert len(valid) == len(whole) // 6
        assert len(whole) * 0.99 < len(train) + len(valid) <= len(whole)
        known = {image.tobytes() for image in valid.pixels}
        assert not any(image.tobytes() in known for image in train.pixels)

    def test_no_image_of_mnist_is_both_learnt_and_tested(self):
        require("mnist")
        known = {image.tobytes() for image in load_images("mnist", "test").pixels}
        assert not any(image.tobytes() in known for image in load_images("mnist", "train+valid").pixels)

    def test_bouncing_digits_are_digits_of_the_split(self):
        require("mnist")
        video = bouncing("mnist", "test", objects=1, size=5)
        chosen, corners = video.trajectories([2])
        top, left = corners[7, 0, 0]
        frame = video.frames([2])[7, 0, top : top + 28, left : left + 28]
        np.testing.assert_array_equal(frame, load_images("mnist", "test").pixels[chosen[0, 0]])


class TestPennTreebank:
    @pytest.mark.parametrize(("split", "sentences"), [("train", 42_068), ("valid", 3_370), ("test", 3_761)])
    def test_it_has_one_sequence_a_sentence(self, split, sentences):
        require("ptb")
        text = penn_treebank(split)
        assert len(text) == sentences
        assert text.input_size == 49

    def test_all_49_symbols_occur_in_training(self):
        require("ptb")
        counts = sum(x.sum((0, 1)) for x, _ in penn_treebank("train").stream(100_000))
        assert (counts > 0).all()

    def test_the_number_of_tokens_is_that_of_the_paper(self):
        """The paper counts 971,657 tokens: the words, and a beginning and an end for each of 42,068 sentences."""
        require("ptb")
        text = penn_treebank("train")
        space = text.vocabulary.index("_")
        words = sum(x[..., space].sum().item() for x, _ in text.stream(100_000)) + 1
        assert words == 971_657 - 2 * 42_068
        assert text.decode(text[1]) == "pierre_<unk>_N_years_old_will_join_the_board_as_a_nonexecutive_director_nov._N"

    def test_sentences_neither_begin_nor_end_with_a_space(self):
        require("ptb")
        text = penn_treebank("valid")
        space = text.vocabulary.index("_")
        for x, mask in text.batches(500):
            last = mask.sum(0) - 1
            assert x[0, :, space].sum() == 0
            assert x[last, range(x.shape[1]), space].sum() == 0

    def test_an_epoch_shows_every_character_once(self):
        require("ptb")
        text = penn_treebank("valid")
        before = hashlib.sha256(text._ids).hexdigest()
        observed = padded = 0
        for _, mask in text.batches(50, shuffle_seed=0):
            observed += int(mask.sum())
            padded += mask.numel()
        assert observed == text.lengths.sum()
        assert observed / padded > 0.9
        assert hashlib.sha256(text._ids).hexdigest() == before

"""Embedded images: deterministic, disjoint and correctly labelled."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from ptncn.data import Images, load_images
from ptncn.data.embedded import EMBEDDED_IMAGES

EMBEDDED = sorted(EMBEDDED_IMAGES)
SIZES = {"digits": (1250, 250, 297), "letters": (4800, 960, 1600), "shapes": (5000, 1000, 1000)}


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PTNCN_DATA", str(tmp_path))


@pytest.mark.parametrize("name", EMBEDDED)
class TestEmbedded:
    def test_it_has_three_splits_of_28_by_28_pixels(self, name):
        sizes = []
        for split in ("train", "valid", "test"):
            images = load_images(name, split)
            assert images.pixels.shape == (len(images), 28, 28)
            assert images.pixels.dtype == np.uint8
            sizes.append(len(images))
        assert tuple(sizes) == SIZES[name]

    def test_no_image_is_in_two_splits(self, name):
        parts = [{image.tobytes() for image in load_images(name, split).pixels} for split in ("train", "valid", "test")]
        assert len(set.union(*parts)) == sum(map(len, parts))

    def test_it_is_deterministic(self, name):
        before = [images.sha256 for images in EMBEDDED_IMAGES[name]()]
        EMBEDDED_IMAGES[name].cache_clear()
        assert [images.sha256 for images in EMBEDDED_IMAGES[name]()] == before

    def test_all_ten_classes_are_about_equally_frequent(self, name):
        for split in ("train", "valid", "test"):
            labels = load_images(name, split).labels
            assert np.bincount(labels, minlength=10).min() > len(labels) / 10 * 0.8

    def test_images_are_bright_with_grey_edges_on_black(self, name):
        pixels = load_images(name, "train").pixels
        assert (pixels.max((1, 2)) >= 230).mean() > 0.99
        assert (pixels == 0).mean() > 0.4
        assert ((pixels > 20) & (pixels < 235)).any((1, 2)).mean() > 0.98
        assert pixels[:, [0, 0, -1, -1], [0, -1, 0, -1]].mean() < 5

    @pytest.mark.parametrize("split", ["valid", "test"])
    def test_a_classifier_trained_on_train_predicts_the_labels_of_the_other_splits(self, name, split):
        """Shapes are rotated by any angle, so their nearest neighbour is more often of another kind."""
        train, other = load_images(name, "train"), load_images(name, split)
        blurred = [
            images.pixels.reshape(-1, 14, 2, 14, 2).mean((2, 4)).reshape(len(images), -1) for images in (train, other)
        ]
        accuracy = KNeighborsClassifier(1).fit(blurred[0], train.labels).score(blurred[1], other.labels)
        assert accuracy > {"digits": 0.9, "letters": 0.85, "shapes": 0.75}[name]


def test_images_cannot_be_changed_and_leave_the_callers_array_writable():
    mine = np.zeros((3, 28, 28), np.uint8)
    images = Images("mine", mine, np.zeros(3, np.uint8))
    with pytest.raises(ValueError, match="read-only"):
        images.pixels[0, 0, 0] = 1
    mine[0, 0, 0] = 1


@pytest.mark.parametrize(
    ("pixels", "labels"),
    [
        (np.zeros((3, 28, 28)), np.zeros(3, np.uint8)),
        (np.zeros((3, 784), np.uint8), np.zeros(3, np.uint8)),
        (np.zeros((0, 28, 28), np.uint8), np.zeros(0, np.uint8)),
        (np.zeros((3, 28, 28), np.uint8), np.zeros(4, np.uint8)),
    ],
)
def test_images_of_another_form_are_refused(pixels, labels):
    with pytest.raises(ValueError, match="images bad"):
        Images("bad", pixels, labels)


def test_unknown_names_and_splits_list_the_known_ones():
    with pytest.raises(ValueError, match="unknown dataset 'cifar'; choose one of: mnist"):
        load_images("cifar", "train")
    with pytest.raises(ValueError, match="unknown split of digits 'dev'; choose one of: train, valid, test"):
        load_images("digits", "dev")

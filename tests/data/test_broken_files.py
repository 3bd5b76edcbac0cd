"""Broken files: the error names the file, and the file is unchanged."""

import gzip
import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_data import fake_mnist, idx, store
from hypothesis import given
from hypothesis import strategies as st

from ptncn.data import (
    DATASETS,
    DataError,
    MissingDataError,
    bouncing,
    bouncing_test,
    load_images,
    penn_treebank,
)
from ptncn.data.download import Proof, check_file, parse_idx


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache with a small MNIST, and a function that makes other content of its first file valid."""
    dataset, contents = fake_mnist()
    store(tmp_path, dataset, contents)
    monkeypatch.setenv("PTNCN_DATA", str(tmp_path))
    monkeypatch.setitem(DATASETS._entries, "mnist", dataset)
    return tmp_path


@pytest.fixture
def accept(monkeypatch):
    def accept(content, index=0):
        dataset = DATASETS["mnist"]
        files = list(dataset.files)
        files[index] = replace(files[index], sha256=(hashlib.sha256(content).hexdigest(),))
        monkeypatch.setitem(DATASETS._entries, "mnist", replace(dataset, files=tuple(files)))

    return accept


def expect_error(path, message, split="train"):
    """Loading names the file, and leaves it and its folder unchanged."""
    before = {entry: entry.read_bytes() for entry in path.parent.iterdir()}
    with pytest.raises(DataError, match=message) as caught:
        load_images("mnist", split)
    assert str(path) in str(caught.value)
    assert {entry: entry.read_bytes() for entry in path.parent.iterdir()} == before


def test_whole_files_are_read(cache):
    assert len(load_images("mnist", "train+valid")) == 12
    assert [len(load_images("mnist", split)) for split in ("train", "valid", "test")] == [10, 2, 4]


def test_a_duplicate_image_is_not_in_both_train_and_valid(cache, accept):
    pixels = np.arange(12)[:, None, None] * np.ones((28, 28))
    pixels[3] = pixels[11]
    content = idx(pixels)
    (cache / "mnist/train-images-idx3-ubyte.gz").write_bytes(gzip.compress(content))
    accept(content)
    assert load_images("mnist", "train").pixels[:, 0, 0].tolist() == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert load_images("mnist", "valid").pixels[:, 0, 0].tolist() == [10, 11]


@pytest.mark.parametrize("keep", [3, 20, -1, -9])
def test_a_truncated_gzip(cache, keep):
    path = cache / "mnist/train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:keep])
    expect_error(path, "truncated or damaged")


def test_a_gzip_with_a_flipped_bit(cache):
    path = cache / "mnist/train-images-idx3-ubyte.gz"
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    expect_error(path, "damaged|SHA-256")


def test_a_content_with_another_hash(cache):
    path = cache / "mnist/t10k-labels-idx1-ubyte.gz"
    path.write_bytes(gzip.compress(idx(np.array([3, 1, 2, 3]))))
    expect_error(path, "SHA-256 .* instead of", split="test")


def test_an_empty_file(cache):
    path = cache / "mnist/train-images-idx3-ubyte.gz"
    path.write_bytes(b"")
    expect_error(path, "SHA-256")


BROKEN = {
    "starts with 89 50 4e 47": b"\x89PNG\r\n\x1a\n",
    "starts with nothing": b"",
    "starts with 00 00 08 00": b"\0\0\x08\0",
    "starts with 00 00 0d 03": b"\0\0\x0d\x03" + bytes(100),
    "expected an idx file with 3 axes, got 1": idx(np.arange(5)),
    "end within the header of 16": idx(np.zeros((5, 28, 28)))[:11],
    "promises 3936 bytes .* holds 3935": idx(np.zeros((5, 28, 28)))[:-1],
    "promises 3936 bytes .* holds 3937": idx(np.zeros((5, 28, 28))) + b"\0",
    "promises 79228162458924105385300197391 bytes": b"\0\0\x08\x03" + b"\xff" * 12,
    r"got \(28, 27\)": idx(np.zeros((12, 28, 27))),
}


@pytest.mark.parametrize(("message", "content"), BROKEN.items(), ids=BROKEN)
def test_a_wrong_header(cache, accept, message, content):
    path = cache / "mnist/train-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(content))
    accept(content)
    expect_error(path, message)


def test_labels_for_another_number_of_images(cache, accept):
    content = idx(np.arange(11))
    path = cache / "mnist/train-labels-idx1-ubyte.gz"
    path.write_bytes(gzip.compress(content))
    accept(content, index=1)
    expect_error(path, "expected 12 labels, one for each image, got 11")


@given(content=st.binary(max_size=40))
def test_any_bytes_are_either_an_array_or_an_error_that_names_the_file(content):
    named = "unread"
    try:
        assert idx(parse_idx(content, Path("some-file"))) == content
    except DataError as error:
        named = str(error)
    assert named == "unread" or "some-file" in named


class TestNotMNIST:
    """The public file of 60,000 letters has no known SHA-256."""

    def file(self, items, **known):
        dataset, _ = fake_mnist()
        return replace(dataset.files[1], items=items, **known)

    def test_it_is_recognised_by_the_published_md5(self, tmp_path):
        raw = gzip.compress(idx(np.arange(7)))
        (tmp_path / "x").write_bytes(raw)
        assert check_file(self.file(7, md5=hashlib.md5(raw).hexdigest()), tmp_path / "x") is Proof.MD5

    def test_repacked_it_is_recognised_and_reported_by_its_structure(self, tmp_path):
        (tmp_path / "x").write_bytes(gzip.compress(idx(np.arange(7))))
        assert check_file(self.file(7, md5="0"), tmp_path / "x") is Proof.STRUCTURE
        assert "no known hash" in Proof.STRUCTURE.value

    def test_any_other_number_of_letters_is_wrong(self, tmp_path):
        (tmp_path / "x").write_bytes(gzip.compress(idx(np.arange(6))))
        with pytest.raises(DataError, match="not the file it should be"):
            check_file(self.file(7, md5="0"), tmp_path / "x")


class TestMissing:
    @pytest.fixture(autouse=True)
    def _empty(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PTNCN_DATA", str(tmp_path / "nowhere"))

    @pytest.mark.parametrize("name", ["mnist", "notmnist", "fashion-mnist"])
    def test_missing_images_name_the_command_that_downloads_them(self, name):
        with pytest.raises(MissingDataError, match=f"ptncn data fetch {name}"):
            bouncing(name, "train")

    def test_the_missing_treebank_names_the_command_that_downloads_it(self):
        with pytest.raises(MissingDataError, match="ptncn data fetch ptb"):
            penn_treebank("test")

    def test_the_missing_file_of_srivastava_names_the_command_that_downloads_it(self):
        with pytest.raises(MissingDataError, match="ptncn data fetch bouncing-mnist"):
            DATASETS["bouncing-mnist"].open("test")


class TestSrivastava:
    """The file is 20 × 10,000 × 64 × 64 bytes; a sparse one stands for it."""

    @pytest.fixture
    def cache(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PTNCN_DATA", str(tmp_path))
        (tmp_path / "bouncing-mnist").mkdir()
        return tmp_path

    def test_it_is_the_test_set_if_it_is_in_the_cache(self, cache):
        array = np.lib.format.open_memmap(
            cache / "bouncing-mnist/mnist_test_seq.npy", "w+", np.uint8, (20, 10_000, 64, 64)
        )
        array[3, 7_000, 5, 6] = 51
        array.flush()
        videos = bouncing_test("mnist")
        assert len(videos) == 10_000
        assert "Srivastava" in videos.name
        x = videos.batch([6_999, 7_000]).x
        assert x.shape == (20, 2, 4096)
        assert x.nonzero().tolist() == [[3, 1, 5 * 64 + 6]]
        assert x.max() == pytest.approx(0.2)

    def test_another_shape_is_refused(self, cache):
        path = cache / "bouncing-mnist/mnist_test_seq.npy"
        np.save(path, np.zeros((10, 20, 64, 64), np.uint8))
        with pytest.raises(DataError, match=r"mnist_test_seq\.npy: expected the test videos of Srivastava"):
            bouncing_test("mnist")

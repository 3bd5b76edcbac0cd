"""Images and bouncing videos by name.

What a dataset offers for development is parted into `train` and, the last sixth, `valid`: a run is tuned on
objects that it neither learns from nor is tested on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

import numpy as np

from ptncn.data.arrays import ArraySequences, read_npy
from ptncn.data.bouncing import BouncingVideo
from ptncn.data.cache import cache_folder
from ptncn.data.catalog import IMAGE_DATASETS, SRIVASTAVA, Dataset, RemoteFile
from ptncn.data.content import read_checked
from ptncn.data.embedded import EMBEDDED_IMAGES
from ptncn.data.errors import DataError
from ptncn.data.idx import parse_idx
from ptncn.data.images import Images

Split = Literal["train", "valid", "train+valid", "test"]
IMAGE_NAMES = (*IMAGE_DATASETS, *EMBEDDED_IMAGES)
SRIVASTAVA_SHAPE = 10_000, 20, 64, 64


def load_images(name: str, split: Split = "train") -> Images:
    """The images of a split: of `mnist`, `notmnist` or `fashion-mnist` in the cache, or of the embedded `digits`,
    `letters` or `shapes`, which need no download.

    Files are checked against their SHA-256 whenever they are read. `train+valid` is a whole training file.

    >>> load_images("digits", "test").pixels.shape
    (297, 28, 28)
    """
    if split not in get_args(Split):
        raise ValueError(f"unknown split {split!r}; choose one of: {', '.join(get_args(Split))}")
    if name in EMBEDDED_IMAGES:
        development, test = EMBEDDED_IMAGES[name]()
        whole = test if split == "test" else development
    elif name in IMAGE_DATASETS:
        dataset = IMAGE_DATASETS[name]
        whole = _read_pair(dataset, *(dataset.files[2:] if split == "test" else dataset.files[:2]))
    else:
        raise ValueError(f"there are no images {name!r}; choose one of: {', '.join(IMAGE_NAMES)}")
    if split in ("test", "train+valid"):
        return whole
    boundary = len(whole) - len(whole) // 6
    valid = whole[boundary:]
    return valid if split == "valid" else _without(whole[:boundary], valid)


def bouncing(
    name: str,
    split: Split = "train",
    *,
    size: int = 10_000,
    objects: int = 2,
    canvas: int = 64,
    length: int = 20,
    speed: float = 0.1,
    seed: int = 0,
) -> BouncingVideo:
    """Bouncing video of the images `load_images(name, split)`; splits share neither objects nor motions.

    >>> video = bouncing("letters", "valid", size=50, objects=3)
    >>> x, mask = next(video.batches(20, shuffle_seed=1))
    >>> x.shape, mask
    (torch.Size([20, 20, 4096]), None)
    """
    return BouncingVideo(
        load_images(name, split),
        size=size,
        objects=objects,
        canvas=canvas,
        length=length,
        speed=speed,
        seed=seed,
        stream=f"{name}/{split}",
    )


def bouncing_test(name: str) -> BouncingVideo | ArraySequences:
    """The 10,000 test sequences of an experiment: fixed and seeded, or for `mnist`, where it is in the cache, the
    file of Srivastava et al. The `name` and the `sha256` of what is returned tell which.

    >>> len(bouncing_test("shapes"))
    10000
    """
    if name == "mnist" and (cache_folder() / SRIVASTAVA.files[0].path).is_file():
        return srivastava_test()
    return bouncing(name, "test")


def srivastava_test(path: str | Path | None = None) -> ArraySequences:
    """The test file of Srivastava et al., `mnist_test_seq.npy`, from the cache or from `path`; it is not held in
    memory."""
    place = cache_folder() / SRIVASTAVA.files[0].path if path is None else Path(path)
    if path is None and not place.is_file():
        raise SRIVASTAVA.missing(place)
    videos = read_npy(place, "TN")
    if videos.shape != SRIVASTAVA_SHAPE or videos.dtype != np.uint8:
        raise DataError(
            f"{place}: {videos.dtype} in {videos.shape[:2]} sequences and frames of {videos.shape[2:]}; the test "
            f"videos of Srivastava et al. are uint8, {SRIVASTAVA_SHAPE[:2]} of {SRIVASTAVA_SHAPE[2:]}"
        )
    return ArraySequences("bouncing-mnist (Srivastava et al.)", videos)


def _without(images: Images, others: Images) -> Images:
    """Those that are not, pixel for pixel, among the others: NotMNIST has some letters twice."""
    known = {image.tobytes() for image in others.pixels}
    fresh = np.array([image.tobytes() not in known for image in images.pixels])
    return images if fresh.all() else Images(images.name, images.pixels[fresh], images.labels[fresh])


def _read_pair(dataset: Dataset, images_file: RemoteFile, labels_file: RemoteFile) -> Images:
    pixels_path, labels_path = (cache_folder() / file.path for file in (images_file, labels_file))
    pixels = parse_idx(read_checked(dataset, images_file), pixels_path, axes=3)
    labels = parse_idx(read_checked(dataset, labels_file), labels_path, axes=1)
    if pixels.shape[1:] != (28, 28):
        raise DataError(f"{pixels_path}: images of {pixels.shape[1:]} pixels; (28, 28) would be right")
    if len(pixels) != len(labels):
        raise DataError(f"{labels_path}: {len(labels)} labels for the {len(pixels)} images of {pixels_path}")
    return Images(dataset.name, pixels, labels)

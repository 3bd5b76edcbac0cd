"""The sequences of the paper's experiments, identical on every machine, with an embedded stand-in for each.

`DATASETS` lists them by name.
"""

from ptncn.data.arrays import ArraySequences, load_sequences
from ptncn.data.cosine import CosineStream, NoisyCosine
from ptncn.data.download import RemoteFile, cache_folder
from ptncn.data.images import BouncingVideo, Images
from ptncn.data.registry import (
    DATASETS,
    Dataset,
    Splits,
    bouncing,
    bouncing_test,
    load_images,
    open_splits,
    penn_treebank,
    python_reference,
)
from ptncn.data.sequences import Batch, DataError, MissingDataError, SequenceDataset
from ptncn.data.text import Text, TextStream, load_text

__all__ = [
    "DATASETS",
    "ArraySequences",
    "Batch",
    "BouncingVideo",
    "CosineStream",
    "DataError",
    "Dataset",
    "Images",
    "MissingDataError",
    "NoisyCosine",
    "RemoteFile",
    "SequenceDataset",
    "Splits",
    "Text",
    "TextStream",
    "bouncing",
    "bouncing_test",
    "cache_folder",
    "load_images",
    "load_sequences",
    "load_text",
    "open_splits",
    "penn_treebank",
    "python_reference",
]

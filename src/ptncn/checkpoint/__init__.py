"""One safe file that resumes a run bit for bit.

A checkpoint is a safetensors file: tensors as they are, and everything else as JSON in its metadata. Loading one checks
the file against its checksum and its sizes against its tensors, builds a learner from the registry by name and copies
numbers into it; nothing in the file is executed.
"""

from ptncn.checkpoint.container import CheckpointError
from ptncn.checkpoint.saving import Checkpoint, load, save

__all__ = ["Checkpoint", "CheckpointError", "load", "save"]

"""Checkpoints: one file from which a run resumes bit for bit.

A checkpoint is a safetensors file, with everything but the tensors as JSON in its metadata. Loading it verifies the
checksum, compares sizes with the tensors, builds a learner by its registry name and copies numbers into it. It never
executes code from the file.
"""

from ptncn.checkpoint.container import CheckpointError
from ptncn.checkpoint.saving import Checkpoint, check_count, check_like, check_state, load, save

__all__ = ["Checkpoint", "CheckpointError", "check_count", "check_like", "check_state", "load", "save"]

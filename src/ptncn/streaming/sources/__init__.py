"""Where rows come from: CSV, JSON lines, Parquet, or any iterable."""

from ptncn.streaming.sources.base import Block, IterableSource, Source

__all__ = ["Block", "IterableSource", "Source"]

"""Records: one JSON file per run, from which every table, figure and comparison is made."""

from ptncn.records.compare import Comparison, Summary, compare, summarise
from ptncn.records.record import SCHEMA, Record, RecordError, find_records, pack, read_record, unpack

__all__ = [
    "SCHEMA",
    "Comparison",
    "Record",
    "RecordError",
    "Summary",
    "compare",
    "find_records",
    "pack",
    "read_record",
    "summarise",
    "unpack",
]

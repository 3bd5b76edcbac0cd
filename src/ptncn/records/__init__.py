"""Records: one JSON file a run, from which every table, figure and comparison is made."""

from ptncn.records.compare import Comparison, Summary, compare, summarise
from ptncn.records.packing import pack, unpack
from ptncn.records.record import SCHEMA, Record, RecordError, find_records, read_record

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

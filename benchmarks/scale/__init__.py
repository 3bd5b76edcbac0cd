"""Measurements of `ptncn.distributed` and `ptncn.spark`; records are in results/scale."""

"""Reports: pages, tables and figures, made from records and from nothing else."""

"""Reports: pages, tables and figures made from records."""

"""How fast a learning step is, and how close that is to what the machine allows: `python benchmarks/step.py`."""

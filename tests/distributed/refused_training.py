"""`ptncn train --ranks` with different data on each rank, as on separate hosts."""

from __future__ import annotations

import os

from ptncn.cli import app

rank = os.environ["RANK"]
app(["train", "ptncn", f"{rank}.npy", "--units", "4", "--ranks", "2", "--out", rank, "--runs", rank], prog_name="ptncn")

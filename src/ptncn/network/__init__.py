"""The P-TNCN. `equations` is section III of the paper; `config` has every choice that the paper leaves open."""

from ptncn.network.config import PRESETS, Config
from ptncn.network.ptncn import PTNCN
from ptncn.network.state import Discrepancy, PTNCNState, PTNCNStep

__all__ = ["PRESETS", "PTNCN", "Config", "Discrepancy", "PTNCNState", "PTNCNStep"]

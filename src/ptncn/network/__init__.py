"""The paper's model and nothing else. `equations` is section III; `config` is every choice it leaves open."""

from ptncn.network.config import PRESETS, Config
from ptncn.network.ptncn import PTNCN
from ptncn.network.state import Discrepancy, PTNCNState, PTNCNStep

__all__ = ["PRESETS", "PTNCN", "Config", "Discrepancy", "PTNCNState", "PTNCNStep"]

"""How unusual a row is, and when to raise an alarm."""

from ptncn.streaming.anomaly.layout import AnomalySetting
from ptncn.streaming.anomaly.model import Anomaly, Scores

__all__ = ["Anomaly", "AnomalySetting", "Scores"]

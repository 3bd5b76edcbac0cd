"""Live streams: learn from a feed, forecast it, and say when it surprises."""

from ptncn.streaming.calibration import Calibrator
from ptncn.streaming.defaults import default_learner
from ptncn.streaming.drift import DriftListener
from ptncn.streaming.errors import RowError, StreamError
from ptncn.streaming.observation import Observation
from ptncn.streaming.opening import open_source
from ptncn.streaming.page_hinkley import PageHinkley
from ptncn.streaming.scaling import RobustScaler
from ptncn.streaming.stream import Stream

__all__ = [
    "Calibrator",
    "DriftListener",
    "Observation",
    "PageHinkley",
    "RobustScaler",
    "RowError",
    "Stream",
    "StreamError",
    "default_learner",
    "open_source",
]

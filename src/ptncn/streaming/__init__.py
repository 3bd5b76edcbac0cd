"""Live streams: predictions, forecasts, anomaly scores and alarms for a feed, row by row."""

from ptncn.streaming.calibration import Calibrator
from ptncn.streaming.drift import DriftListener, PageHinkley
from ptncn.streaming.formats import FORMATS, Format, open_source
from ptncn.streaming.options import StreamOptions, default_learner
from ptncn.streaming.results import Observation, Results
from ptncn.streaming.scaling import RobustScaler
from ptncn.streaming.sources import RowError, StreamError
from ptncn.streaming.stream import Advance, Stream

__all__ = [
    "FORMATS",
    "Advance",
    "Calibrator",
    "DriftListener",
    "Format",
    "Observation",
    "PageHinkley",
    "Results",
    "RobustScaler",
    "RowError",
    "Stream",
    "StreamError",
    "StreamOptions",
    "default_learner",
    "open_source",
]

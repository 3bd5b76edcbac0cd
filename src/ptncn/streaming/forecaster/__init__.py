"""The forecaster of streams: experts, readouts by recursive least squares, a mixture, and bounds."""

from ptncn.streaming.forecaster.layout import EXPERTS, Setting, default_setting
from ptncn.streaming.forecaster.model import Forecast, Forecaster

__all__ = ["EXPERTS", "Forecast", "Forecaster", "Setting", "default_setting"]

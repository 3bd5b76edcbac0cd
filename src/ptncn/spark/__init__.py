"""Many streams on Apache Spark: one for each key, in the state store of a structured streaming query."""

from ptncn.spark.forecasts import forecast, local_session, output_schema, reason

__all__ = ["forecast", "local_session", "output_schema", "reason"]

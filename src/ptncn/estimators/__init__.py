"""Estimators that follow the conventions of other libraries: `ptncn.estimators.river`, `ptncn.estimators.sklearn`."""

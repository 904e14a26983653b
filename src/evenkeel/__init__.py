"""Balanced, stateful, key-grouped streams on stock Apache Spark, from Python."""

__version__ = "0.1.0.dev0"

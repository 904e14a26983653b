"""Aggregates of one column per key, each a mergeable operator; ``Aggregate`` computes several at once."""

from evenkeel.operators.aggregates.approx_distinct import ApproxDistinct
from evenkeel.operators.aggregates.extremes import First, Last, Max, Min
from evenkeel.operators.aggregates.sums import CountOf, Mean, Sum, Variance

__all__ = ["ApproxDistinct", "CountOf", "First", "Last", "Max", "Mean", "Min", "Sum", "Variance"]

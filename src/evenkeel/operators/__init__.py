"""Operators: keyed, stateful computations; columnar, or a plain Python function per key."""

from evenkeel.operators.base import Clock, Operator, Update
from evenkeel.operators.codec import RowCodec
from evenkeel.operators.count import Count
from evenkeel.operators.groups import NEVER, NO_WATERMARK, Groups, Moment
from evenkeel.operators.mergeable import Mergeable, fold
from evenkeel.operators.per_key import PerKey
from evenkeel.operators.total import Total

__all__ = [
    "NEVER",
    "NO_WATERMARK",
    "Clock",
    "Count",
    "Groups",
    "Mergeable",
    "Moment",
    "Operator",
    "PerKey",
    "RowCodec",
    "Total",
    "Update",
    "fold",
]

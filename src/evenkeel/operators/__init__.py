"""Operators: keyed, stateful computations; columnar, or a plain Python function per key."""

from evenkeel.operators.base import Operator, Update
from evenkeel.operators.codec import RowCodec
from evenkeel.operators.count import Count
from evenkeel.operators.groups import Groups
from evenkeel.operators.per_key import PerKey
from evenkeel.operators.total import Total

__all__ = ["Count", "Groups", "Operator", "PerKey", "RowCodec", "Total", "Update"]

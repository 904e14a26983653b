"""Strategies on their way through a stream: one kind of run per file."""

from evenkeel.sim.runs.base import Measure, Run, Settings, Shared, Sight
from evenkeel.sim.runs.controlled import ControlledRun
from evenkeel.sim.runs.planned import PlannedRun
from evenkeel.sim.runs.routed import KeyedRun, Pairs, TupleRun

__all__ = [
    "ControlledRun",
    "KeyedRun",
    "Measure",
    "Pairs",
    "PlannedRun",
    "Run",
    "Settings",
    "Shared",
    "Sight",
    "TupleRun",
]

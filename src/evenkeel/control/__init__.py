"""Control: measure, analyse, plan, activate.

The controller takes in reports of batches and gives out decisions; it knows no Spark, no clock and no file.
"""

from evenkeel.control.controller import Controller, Verdict
from evenkeel.control.decisions import Choice, Decision, DecisionLog
from evenkeel.control.drift import DriftDetector, DriftOptions
from evenkeel.control.elasticity import Elasticity
from evenkeel.control.gates import (
    Answer,
    Budget,
    CoolDown,
    Imbalance,
    OverloadedChannel,
    RelativeGain,
    WorthItsCost,
)
from evenkeel.control.options import ControlOptions
from evenkeel.control.reports import BatchReport, ChannelReport
from evenkeel.control.saved import Saved
from evenkeel.control.schedule import Schedule
from evenkeel.control.service_levels import ServiceLevels
from evenkeel.control.tally import Tally
from evenkeel.control.trust import Trust
from evenkeel.control.windows import Window, WindowOptions, Windows

__all__ = [
    "Answer",
    "BatchReport",
    "Budget",
    "ChannelReport",
    "Choice",
    "ControlOptions",
    "Controller",
    "CoolDown",
    "Decision",
    "DecisionLog",
    "DriftDetector",
    "DriftOptions",
    "Elasticity",
    "Imbalance",
    "OverloadedChannel",
    "RelativeGain",
    "Saved",
    "Schedule",
    "ServiceLevels",
    "Tally",
    "Trust",
    "Verdict",
    "Window",
    "WindowOptions",
    "Windows",
    "WorthItsCost",
]

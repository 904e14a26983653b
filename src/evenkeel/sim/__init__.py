"""The simulator: workloads, and their replay through routers, planners and controllers, without a cluster."""

from evenkeel.sim.ledger import StateModel
from evenkeel.sim.queueing import Fluid, MicroBatches, Service
from evenkeel.sim.replay import agreement, replay
from evenkeel.sim.results import Replay
from evenkeel.sim.runs import Sight
from evenkeel.sim.strategies import Controlled, Planned, Routed
from evenkeel.sim.window import Histogram, Tuples, Window
from evenkeel.sim.workloads import (
    WORKLOADS,
    Bursts,
    Drifting,
    Histograms,
    LogNormal,
    Sourced,
    Substreams,
    SwitchingZipf,
    Trace,
    Weighted,
    Workload,
    Zipf,
    make_workload,
)

__all__ = [
    "WORKLOADS",
    "Bursts",
    "Controlled",
    "Drifting",
    "Fluid",
    "Histogram",
    "Histograms",
    "LogNormal",
    "MicroBatches",
    "Planned",
    "Replay",
    "Routed",
    "Service",
    "Sight",
    "Sourced",
    "StateModel",
    "Substreams",
    "SwitchingZipf",
    "Trace",
    "Tuples",
    "Weighted",
    "Window",
    "Workload",
    "Zipf",
    "agreement",
    "make_workload",
    "replay",
]

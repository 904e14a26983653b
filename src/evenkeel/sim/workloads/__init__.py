"""Workloads, one per file, chosen by name or made as objects."""

from __future__ import annotations

from typing import Any

from evenkeel.errors import UnknownNameError
from evenkeel.sim.workloads.base import Drawn, Synthetic, Workload
from evenkeel.sim.workloads.bursts import Bursts
from evenkeel.sim.workloads.drifting import Drifting
from evenkeel.sim.workloads.histograms import Histograms
from evenkeel.sim.workloads.log_normal import LogNormal
from evenkeel.sim.workloads.sourced import Sourced
from evenkeel.sim.workloads.substreams import Substreams
from evenkeel.sim.workloads.switching import SwitchingZipf
from evenkeel.sim.workloads.trace import Trace
from evenkeel.sim.workloads.weighted import Weighted
from evenkeel.sim.workloads.zipf import Zipf

__all__ = [
    "WORKLOADS",
    "Bursts",
    "Drawn",
    "Drifting",
    "Histograms",
    "LogNormal",
    "Sourced",
    "Substreams",
    "SwitchingZipf",
    "Synthetic",
    "Trace",
    "Weighted",
    "Workload",
    "Zipf",
    "make_workload",
]

WORKLOADS: dict[str, type[Workload]] = {
    workload.name: workload
    for workload in (
        Zipf,
        SwitchingZipf,
        Substreams,
        LogNormal,
        Weighted,
        Drifting,
        Bursts,
        Sourced,
        Trace,
        Histograms,
    )
}
"""Every workload by its name; a new one is one file and one line here."""


def make_workload(name: str, **options: Any) -> Workload:
    """Make a workload by its name, with the options of its class.

    >>> make_workload("zipf", keys=100, exponent=0.8).exponent
    0.8
    """
    if name not in WORKLOADS:
        raise UnknownNameError("workload", name, WORKLOADS)
    return WORKLOADS[name](**options)

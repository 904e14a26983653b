"""Figure 6: speed-up of throughput."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from evenkeel.report import Finding, Panel, pivot
from experiments.elb_clb.queueing import CAPACITY, MODEL, loaded
from experiments.experiment import Experiment

if TYPE_CHECKING:
    from evenkeel.sim import Replay


@lru_cache(maxsize=1)
def measure(channels: tuple[int, ...], windows: int, seconds: float, utilisation: float) -> pa.Table:
    """What n channels get done of what keeps them all busy, over what one does."""
    found = loaded(channels, windows, seconds, utilisation)
    rows = [{"channels": n, "strategy": "Ideal", "speed_up": float(n)} for n in channels]
    rows += [
        {"channels": n, "strategy": name, "speed_up": _throughput(done, name) / CAPACITY}
        for n, done in found.items()
        for name in done.strategies
    ]
    return pa.Table.from_pylist(rows)


def _throughput(done: Replay, name: str) -> float:
    """Tuples per second that the slowest channel and the pauses allow."""
    return float(done.column(name, "tuples").sum() / done.column(name, "needed_s").sum())


def findings(table: pa.Table) -> list[Finding]:
    """Who scales."""
    most = max(table["channels"].to_pylist())
    reached = {row["strategy"]: row["speed_up"] / most for row in table.to_pylist() if row["channels"] == most}
    middle = [row for row in table.to_pylist() if 4 <= row["channels"] <= 10]
    halfway = {
        name: min(row["speed_up"] / row["channels"] for row in middle if row["strategy"] == name) for name in reached
    }
    return [
        Finding.at_least(
            "ELB's speed-up is about linear: least share of the ideal at 4 to 10 channels", halfway["ELB"], 0.75
        ),
        Finding.at_least("CLB's speed-up is about linear there", halfway["CLB"], 0.75),
        Finding.at_most("UHLB's is not", halfway["UHLB"], 0.75),
        Finding.at_most("PKG's is not", halfway["PKG"], 0.75),
        Finding.at_most(
            "CLB falls behind with many channels: its share of the ideal over ELB's at the most",
            reached["CLB"] / reached["ELB"],
            0.95,
        ),
    ]


EXPERIMENT = Experiment(
    title="Speed-up of throughput",
    claim="The speed-ups of ELB and CLB are about linear in the number of channels; PKG and UHLB stay behind, in "
    "stages. At 15 channels CLB falls behind all others, as it plans too rarely.",
    setup=MODEL
    + " As many tuples come as keep all channels busy; the speed-up is what the slowest channel and the pauses "
    "let through, over one channel's 1,000 tuples/s.",
    settings={
        "small": {"channels": (1, 4, 8, 15), "windows": 30, "seconds": 3.0, "utilisation": 1.0},
        "full": {"channels": tuple(range(1, 16)), "windows": 48, "seconds": 60.0, "utilisation": 1.0},
    },
    measure=measure,
    findings=findings,
    panels=(Panel(x="channels", y="speed_up", x_label="channels n", y_label="speed-up"),),
    digest=lambda table: pivot(table, "channels", "strategy", "speed_up"),
    remark="PKG scales best here, as in this model it moves nothing and merges for free. The published CLB does not "
    "balance means, so it falls behind from the start, not only at 15 channels.",
)

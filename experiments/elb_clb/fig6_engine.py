"""Figure 6 on the engine: speed-up of throughput."""

from __future__ import annotations

import pyarrow as pa

from evenkeel.report import Finding, Panel, pivot
from experiments.elb_clb.fig5_engine import SETTINGS
from experiments.elb_clb.words_engine import CAPACITY, MODEL, STRATEGIES, loaded
from experiments.engine import throughput
from experiments.experiment import Experiment


def measure(channels: tuple[int, ...], windows: int, seconds: float, utilisation: float, period: int) -> pa.Table:
    """What n channels get done in a second, over what one does; and that without the time that is Spark's."""
    found = loaded(channels, windows, seconds, utilisation, period)
    first = throughput(found[1, "CLB"])
    rows = [{"channels": n, "strategy": "Ideal", "speed_up": float(n), "by_load": float(n)} for n in channels]
    for n in channels:
        for name in STRATEGIES:
            batches = found.get((n, name), found[1, "CLB"])
            slowest = sum(int(batch.loads.max()) for batch in batches) / CAPACITY
            done = sum(batch.tuples for batch in batches)
            rows.append(
                {
                    "channels": n,
                    "strategy": name,
                    "speed_up": throughput(batches) / first,
                    "by_load": done / slowest / CAPACITY,
                }
            )
    return pa.Table.from_pylist(rows)


def findings(table: pa.Table) -> list[Finding]:
    """Who scales."""
    rows = table.to_pylist()
    most = max(row["channels"] for row in rows)
    least = {
        name: min(
            row["speed_up"] / row["channels"] for row in rows if row["strategy"] == name and 4 <= row["channels"] <= 10
        )
        for name in STRATEGIES
    }
    at_most = {row["strategy"]: row for row in rows if row["channels"] == most}
    return [
        Finding.at_least(
            "ELB's speed-up is about linear: least share of the ideal at 4 to 10 channels", least["ELB"], 0.7
        ),
        Finding.at_least("CLB's speed-up is about linear there", least["CLB"], 0.7),
        Finding.at_most("UHLB's stays behind ELB's: ratio of the shares", least["UHLB"] / least["ELB"], 0.95),
        Finding.at_most("PKG's stays behind ELB's: ratio of the shares", least["PKG"] / least["ELB"], 0.95),
        Finding.at_most(
            "with the most channels CLB falls behind ELB: ratio of the speed-ups",
            at_most["CLB"]["speed_up"] / at_most["ELB"]["speed_up"],
            0.95,
        ),
        Finding.at_least(
            "by the load of the fullest channel alone, ELB is ahead of UHLB with the most channels: ratio",
            at_most["ELB"]["by_load"] / at_most["UHLB"]["by_load"],
            1.0,
        ),
    ]


EXPERIMENT = Experiment(
    title="Speed-up of throughput (engine)",
    claim="The speed-ups of ELB and CLB are about linear in the number of channels; PKG and UHLB stay behind, in "
    "stages. At 15 channels CLB falls behind all others, as it plans too rarely.",
    setup=MODEL
    + " The tuples of a batch are in proportion to the channels; the speed-up is tuples per second over those "
    "of one channel. Beside it, what the load of the fullest channel alone would allow.",
    settings=SETTINGS,
    needs=("pyspark",),
    measure=measure,
    findings=findings,
    panels=(
        Panel(x="channels", y="speed_up", x_label="channels n", y_label="speed-up"),
        Panel(x="channels", y="by_load", x_label="channels n", y_label="speed-up by the fullest channel"),
    ),
    digest=lambda table: pivot(table, "channels", "strategy", "speed_up"),
    remark="What a batch costs Spark besides the work grows with the channels where there are few cores, and keeps the "
    "speed-up of all below the ideal, the more so at small scale; PKG pays for two stages. Migrations pause nothing "
    "here; what the balance alone would allow is shown beside it.",
)

"""The experiments on the engine, at small scale: what does not depend on the clock, and that all of them can be shown.

They need 16 tasks side by side, so that they run in a process of its own, all in one session: this file, as a script.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from evenkeel.errors import EvenkeelError

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.spark


def entries():
    from experiments.registry import find

    return {f"{entry.paper}/{entry.name}": entry.experiment for entry in find() if "pyspark" in entry.experiment.needs}


NAMES = [
    "dlb-cep/fig3_engine",
    "dlb-cep/fig4_engine",
    "dlb-cep/table1_engine",
    "elb-clb/fig5_engine",
    "elb-clb/fig6_engine",
    "elb-clb/table2_engine",
    "ftlb/fig10_engine",
    "ftlb/fig11_engine",
    "pkg/fig5_engine",
]


@pytest.fixture(scope="module")
def results():
    """Give the table of every experiment at small scale."""
    kept = {name: value for name, value in os.environ.items() if name != "EVENKEEL_DATA"}
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, __file__, *NAMES],
        capture_output=True,
        text=True,
        check=False,
        env={**kept, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    return {name: pa.Table.from_pylist(rows) for name, rows in told.items()}


def findings(name, results):
    return {finding.says: finding for finding in entries()[name].findings(results[name])}


def test_a_session_with_too_few_tasks_is_refused(spark):
    from experiments import engine

    with pytest.raises(EvenkeelError, match="need 16 tasks side by side"):
        engine.session()


def test_a_batch_that_takes_longer_than_its_interval_delays_the_next():
    from experiments.engine import Batch, latencies_ms, throughput

    batches = [Batch(ms, np.array([6, 4]), 0, 0, 0, 0, 0) for ms in (100.0, 500.0, 100.0)]
    latencies, counts = latencies_ms(batches, 200.0)
    by_batch = latencies.reshape(3, -1).mean(axis=1)
    # Half an interval on average, then the wait for the batch before, then the batch itself.
    assert by_batch.tolist() == pytest.approx([100 + 100, 100 + 500, 100 + 300 + 100])
    assert set(counts.tolist()) == {10}
    assert throughput(batches) == pytest.approx(30 / 0.7)


def test_every_part_of_a_figure_that_needs_the_engine_is_found():
    assert sorted(entries()) == NAMES


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("dlb-cep/table1_engine", "moving keys with their state changes no event"),
        ("dlb-cep/table1_engine", "PKG reports stories that are none"),
        ("dlb-cep/fig4_engine", "a sixth engine changes no event"),
        ("dlb-cep/fig4_engine", "DLB-H keeps it smaller"),
        ("elb-clb/table2_engine", "ELB moves less state than UHLB"),
        ("pkg/fig5_engine", "PKG needs more counters than KG"),
        ("pkg/fig5_engine", "SG needs more still"),
        ("pkg/fig5_engine", "and holds fewer counters"),
        ("pkg/fig5_engine", "shorter periods hold fewer counters"),
        ("ftlb/fig10_engine", "FTLB restores nothing"),
        ("ftlb/fig10_engine", "Storm, whose keys do not move, restores the lost task"),
        ("ftlb/fig11_engine", "FTLB restores nothing"),
        ("ftlb/fig11_engine", "TaskB restores the task"),
    ],
)
def test_what_does_not_depend_on_the_clock_holds(name, words, results):
    (finding,) = [finding for says, finding in findings(name, results).items() if says.startswith(words)]
    assert finding.holds, finding


def test_channels_are_added_while_the_stream_grows(results):
    channels = {row["strategy"]: row["channels at the end"] for row in results["elb-clb/table2_engine"].to_pylist()}
    assert channels["ELB"] > 3
    assert channels["UHLB"] > 3


@pytest.mark.parametrize("name", NAMES)
def test_other_numbers_give_other_findings(name, results):
    rng, table = np.random.default_rng(3), results[name]
    for place, field in enumerate(table.schema):
        if pa.types.is_floating(field.type) and field.name not in {"at", "f"}:
            table = table.set_column(place, field.name, table[field.name].take(rng.permutation(len(table))))
    told = [finding.measured for finding in findings(name, results).values()]
    assert told != [finding.measured for finding in entries()[name].findings(table)]


@pytest.mark.parametrize("name", NAMES)
def test_it_is_described_plotted_and_summed_up(name, results):
    experiment = entries()[name]
    assert min(map(len, (experiment.claim, experiment.setup, experiment.remark))) > 50
    assert set(experiment.settings["small"]) == set(experiment.settings["full"])
    from evenkeel.report import draw

    figure = draw(results[name], experiment.panels, columns=experiment.columns)
    assert all(axes.lines or axes.patches for axes in figure.axes)
    assert 0 < experiment.digest(results[name]).num_rows <= 60


if __name__ == "__main__":
    found = entries()
    print(json.dumps({name: found[name].run("small").table.to_pylist() for name in sys.argv[1:]}))  # noqa: T201

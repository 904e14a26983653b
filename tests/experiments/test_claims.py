"""Every experiment at small scale: which claims hold, that the checks can fail, and that the plots are drawn."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from experiments.registry import PAPERS, find

from evenkeel.report import to_svg

ENTRIES = {f"{entry.paper}/{entry.name}": entry.experiment for entry in find() if not entry.experiment.needs}

# How many statements differ at small scale, with generated streams; all others hold. Seeded, so exact.
DIFFER = {
    "elb-clb/fig2": 2,
    "elb-clb/fig4": 1,
    "elb-clb/fig5": 3,
    "elb-clb/fig6": 2,
    "elb-clb/table1": 1,
    "elb-clb/table2": 2,
    "gedik/fig3": 1,
    "gedik/fig5": 1,
    "gedik/fig6": 1,
    "gedik/fig8": 1,
    "gedik/fig10": 1,
    "dlb-cep/fig3": 2,
    "dlb-cep/fig4": 4,
    "dlb-cep/table1": 3,
    "pkg/fig3": 1,
    "ftlb/fig10": 1,
}
COUNTS = {"counted", "explicit"}  # measured, though whole numbers
SETTINGS = {"exponent", "untracked_share", "theta_max", "f", "at"}
TIMED = {"gedik/fig12", "gedik/fig13", "gedik/fig14", "ftlb/fig8", "ftlb/fig9"}


@cache
def result_of(name):
    return ENTRIES[name].run("small")


@pytest.fixture(autouse=True)
def _generated_streams(monkeypatch):
    monkeypatch.delenv("EVENKEEL_DATA", raising=False)


@pytest.mark.parametrize("name", sorted(ENTRIES.keys() - TIMED))
def test_a_claim_holds_or_differs_as_known(name):
    verdict = ENTRIES[name].check(result_of(name))
    differing = [f"{finding.says}: {finding.measured}" for finding in verdict.findings if not finding.holds]
    assert len(differing) == DIFFER.get(name, 0), differing


@pytest.mark.parametrize("name", sorted(TIMED))
def test_a_claim_on_time_is_checked_in_what_does_not_depend_on_the_clock(name):
    verdict = ENTRIES[name].check(result_of(name))
    assert len(verdict.findings) >= 4
    for finding in verdict.findings:
        if "smaller θ_max moves more" in finding.says or "FTLB moves" in finding.says or "switches" in finding.says:
            assert finding.holds, finding


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_other_numbers_give_other_findings(name):
    experiment, result = ENTRIES[name], result_of(name)
    told = [finding.measured for finding in experiment.findings(result.table)]
    other = [finding.measured for finding in experiment.findings(shuffled(result.table))]
    assert told != other


def shuffled(table: pa.Table) -> pa.Table:
    """Give every measured number to another row."""
    rng = np.random.default_rng(3)
    for place, field in enumerate(table.schema):
        if (pa.types.is_floating(field.type) or field.name in COUNTS) and field.name not in SETTINGS:
            known = np.flatnonzero(table[field.name].is_valid())
            order = np.arange(table.num_rows)
            order[known] = rng.permutation(known)
            table = table.set_column(place, field.name, table[field.name].take(pa.array(order)))
    return table


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_it_is_plotted_and_summed_up(name):
    experiment, result = ENTRIES[name], result_of(name)
    figure = experiment.plot(result)
    assert len(figure.axes) == len(experiment.panels)
    assert all(axes.lines or axes.patches for axes in figure.axes)
    svg = to_svg(figure, name)
    assert svg.startswith("<svg")
    assert "currentColor" in svg
    assert 0 < experiment.digest(result.table).num_rows <= 60


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_it_says_what_is_claimed_and_how_it_is_measured(name):
    experiment = ENTRIES[name]
    for words in (experiment.title, experiment.claim, experiment.setup):
        assert len(words) > 10
    assert set(experiment.settings) == {"small", "full"}
    assert set(experiment.settings["small"]) == set(experiment.settings["full"])
    if DIFFER.get(name):
        assert experiment.remark, "A page must say why a result differs."


def test_two_runs_give_the_same_table():
    experiment = ENTRIES["pkg/fig4"]
    assert experiment.run("small").table.equals(result_of("pkg/fig4").table)


@pytest.mark.parametrize("paper", PAPERS)
def test_only_public_names_are_used(paper):
    folder = Path(__file__).parents[2] / "experiments"
    for file in [*folder.glob("*.py"), *(folder / paper.replace("-", "_")).glob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("evenkeel"):
                assert "._" not in f".{node.module}", file
                assert not any(name.name.startswith("_") for name in node.names), file

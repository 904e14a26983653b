"""The demo's job, small: it measures on Spark and checks itself."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from evenkeel.cli import app

pytestmark = pytest.mark.spark


def test_the_demo_balances_a_skewed_stream(spark, monkeypatch):
    from evenkeel.spark import demo

    monkeypatch.setattr(demo, "_session", lambda: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)
    small = ["demo", "--rows", "20000", "--keys", "1000", "--channels", "4"]
    result = CliRunner().invoke(app, [*small, "--json"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout.splitlines()[-1])
    assert sum(figures["loads_by_hash"]) == sum(figures["loads_by_table"]) == 20_000
    assert figures["skewness_by_table"] < figures["skewness_by_hash"]
    shown = CliRunner().invoke(app, small)
    assert shown.exit_code == 0
    assert "by table" in shown.stdout

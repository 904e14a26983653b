"""The view in a terminal: narrow, long, and with a thousand channels."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from dashboard.checkpoints import Query
from evenkeel.dashboard import CheckpointReader, state_of
from evenkeel.dashboard.terminal import render, sparkline


def drawn(state, width=80, height=None, stage=None):
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(render(state, stage, width, height))
    return console.file.getvalue().splitlines()


def state_in(path, now=0.0):
    reader = CheckpointReader(str(path))
    reader.look()
    return state_of(reader, now)


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    path = tmp_path_factory.mktemp("small")
    Query(path, stages=("stage0", "stage0-partial")).run(6)
    return state_in(path)


@pytest.fixture(scope="module")
def wide_state(tmp_path_factory):
    path = tmp_path_factory.mktemp("large")
    Query(path, channels=1000, hot=0.01, window=100).run(1, rows=40_000)
    return state_in(path)


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal(state, width):
    assert max(cell_len(line.rstrip()) for line in drawn(state, width)) <= width


def test_it_shows_what_people_ask_for(state):
    text = "\n".join(drawn(state))
    for asked in (
        "imbalance",
        "batch time",
        "hot keys",
        "table 1",
        "KiB of state",
        "moved in batch",
        "achieved",
        "stay",
    ):
        assert asked in text
    loads = {channel["rows"] for channel in state["stages"][0]["channels"]}
    assert len([line for line in text.splitlines() if "█" in line and line.split()[0].isdigit()]) == len(loads)


def test_the_longest_bar_is_the_fullest_channel(state):
    bars = {line.split()[0]: line.count("█") for line in drawn(state) if "█" in line and line.split()[0].isdigit()}
    rows = {str(channel["channel"]): channel["rows"] for channel in state["stages"][0]["channels"]}
    assert max(bars, key=bars.get) == max(rows, key=rows.get)


def test_another_stage_can_be_shown_and_is_named(state):
    assert "also: stage0-partial" in " ".join(drawn(state, 200))
    assert "stage stage0-partial" in " ".join(drawn(state, 200, stage="stage0-partial"))


def test_a_thousand_channels_are_summed_up(wide_state):
    lines = drawn(wide_state)
    assert len(lines) < 60
    assert "median" in " ".join(lines)
    fullest = max(wide_state["stages"][0]["channels"], key=lambda channel: channel["rows"])["channel"]
    first = next(line for line in lines if "█" in line and line.split()[0].isdigit())
    assert first.split()[0] == str(fullest)


@pytest.mark.parametrize("height", [24, 40, 60])
def test_it_fits_the_screen(wide_state, state, height):
    for shown in (wide_state, state):
        assert len(drawn(shown, 80, height)) <= height


def test_trouble_is_said_and_a_checkpoint_without_batches_is_no_trouble(tmp_path):
    Query(tmp_path)
    state = state_in(tmp_path)
    assert "No batch is committed yet." in drawn(state)
    assert "! The disk is gone." in drawn({**state, "trouble": "The disk is gone."})


def test_a_sparkline_ends_at_its_bounds():
    assert sparkline([0, 50, 100, 1000, -1], 4, 0, 100) == "▅██▁"
    assert sparkline([], 4, 0, 1) == ""

"""Keys, hosts and reasons may hold anything, and nobody who looks may be harmed by it."""

from __future__ import annotations

import io
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from dashboard.checkpoints import Query
from evenkeel.dashboard import CheckpointReader, state_of
from evenkeel.dashboard.terminal import render
from evenkeel.dashboard.text import plain

NAMES = [
    "<img src=x onerror=alert(1)>",
    "\x1b]0;owned\x07\x1b[2J",
    "x" * 1_000_000,
    "\u202egnp.exe",
    "[red]bold[/]",
    "",
]


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile")
    Query(path, names=NAMES).run(3)
    reader = CheckpointReader(str(path))
    reader.look()
    return reader


@given(st.text(), st.integers(5, 50))
def test_plain_text_is_short_and_can_be_seen(text, limit):
    shown = plain(text, limit)
    assert len(shown) <= limit
    assert not {unicodedata.category(character) for character in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    if text.isascii() and text.isprintable() and len(text) <= limit:
        assert shown == text


def test_hostile_keys_come_out_short_and_visible(reader):
    keys = {key["name"] for key in state_of(reader, 0.0)["stages"][0]["hot_keys"]}
    assert {"<img src=x onerror=alert(1)>", r"\x1b]0;owned\x07\x1b[2J", r"\u202egnp.exe", "[red]bold[/]", '""'} <= keys
    assert max(len(name) for name in keys) <= 80


def test_a_terminal_gets_no_control_sequence_and_no_markup_from_a_key(reader):
    console = Console(width=100, file=io.StringIO(), color_system=None)
    console.print(render(state_of(reader, 0.0), None, 100))
    text = console.file.getvalue()
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[red]bold[/]" in text


def test_masked_keys_are_hashes_and_nothing_else(reader):
    state = state_of(reader, 0.0, mask_keys=True)
    assert state["masked"]
    text = json.dumps(state)
    for name in (*NAMES[:2], "owned", "xxxx", "word1"):
        assert name not in text
    key = state["stages"][0]["hot_keys"][0]
    assert key["name"] is None
    assert int(key["hash"], 16) == reader.stages["stage0"].loaded.hot_keys[0].key_hash % (1 << 64)

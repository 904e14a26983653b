"""The page in a real browser: plots and tables have content, nothing is complained about, and keys stay text."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest

from dashboard.checkpoints import Query
from evenkeel.routing import RoutingTable
from evenkeel.routing.ragged import Ragged

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium is installed: the page was not loaded in a browser"
)

NAMES = [
    "<img src=x onerror=\"document.title='owned'\">",
    "</script><script>document.title='owned'</script>",
    "y" * 1_000_000,
]
PLOTS = ("load", "imbalance", "time", "keys", "moves", "state-size", "growth", "replicas", "kept")


class Page(HTMLParser):
    """What each section of a page holds."""

    def __init__(self, text):
        super().__init__()
        self.sections, self.hidden, self.tags, self.now, self.title = {}, set(), [], None, ""
        self._in_title = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        if tag == "section":
            self.now = self.sections.setdefault(attributes["id"], {"shapes": 0, "cells": 0, "text": "", "label": ""})
            if "hidden" in attributes:
                self.hidden.add(attributes["id"])
        self._in_title = tag == "title" and not self.title
        if self.now is not None:
            self.now["shapes"] += tag in {"rect", "path", "circle"}
            self.now["cells"] += tag == "td"
            self.now["label"] = self.now["label"] or (attributes.get("aria-label", "") if tag == "svg" else "")

    def handle_endtag(self, tag):
        if tag == "section":
            self.now = None

    def handle_data(self, data):
        if self._in_title:
            self.title, self._in_title = data, False
        if self.now is not None:
            self.now["text"] += data


def load(port, folder, *flags):
    """Give the page as the browser has built it, and what it said on its console."""
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}"]
    command += [
        "--virtual-time-budget=4000",
        "--enable-logging=stderr",
        *flags,
        "--dump-dom",
        f"http://127.0.0.1:{port}/",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return Page(done.stdout), re.findall(r"CONSOLE.*", done.stderr)


@pytest.fixture(scope="module")
def page(tmp_path_factory, serve):
    path = tmp_path_factory.mktemp("browsed")
    even = RoutingTable.even(4)
    beside = Ragged(np.arange(even.slots + 1), (even.slot_channels + 1) % 4)
    Query(path, names=NAMES, table=even.evolve(slot_backups=beside)).run(8)
    with serve(path) as port:
        return load(port, tmp_path_factory.mktemp("profile"))


def test_the_browser_complains_about_nothing(page):
    assert page[1] == []


@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_has_shapes_a_label_and_a_table_beside_it(page, name):
    section = page[0].sections[name]
    assert name not in page[0].hidden
    assert section["shapes"] >= 2
    assert len(section["label"]) > 20
    assert section["cells"] >= 4


def test_decisions_are_listed_with_reasons(page):
    text = page[0].sections["decisions"]["text"]
    assert "move" in text
    assert "achieved" in text
    assert "times the average load" in text


def test_hostile_keys_are_text_and_short(page):
    built = page[0]
    assert built.title == "words: batch 7"
    assert "img" not in {tag for tag, _ in built.tags}
    assert [attributes.get("src") for tag, attributes in built.tags if tag == "script"] == ["/page.js"]
    assert NAMES[0] in built.sections["keys"]["text"]
    assert "y" * 100 not in built.sections["keys"]["text"]


def test_a_thousand_channels_are_drawn_as_fewer_bars_and_listed_in_full(tmp_path, serve):
    Query(tmp_path / "checkpoint", channels=1000, hot=0.01, window=100).run(1, rows=40_000)
    with serve(tmp_path / "checkpoint") as port:
        built, said = load(port, tmp_path / "profile", "--window-size=390,800")
    assert said == []
    assert built.sections["load"]["shapes"] < 400
    assert built.sections["load"]["cells"] == 9 * 1000
    assert "replicas" in built.hidden

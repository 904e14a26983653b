"""Lines of a TOML text: everything that a parser finds has the line where it is written."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.jobs.lines import lines_of, tomllib

TEXT = '''\
title = "a # is no comment here"  # but here it is
dotted.key."with a.dot" = 1

[table]
list = [ 1, [ "]", """
two ""\\" lines""" ],
  { inner = 'x', deep.er = true },
]
[table.sub]
when = 1979-05-27 07:32:00
[[many]]
a = 1
[many.under]
b = { }
[[many]]
a = \'\'\'it's [not] a
header\'\'\'
[[many.more]]
c = 1.5e3
[[many.more]]
c = []
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 1),
        (("dotted",), 2),
        (("dotted", "key", "with a.dot"), 2),
        (("table",), 4),
        (("table", "list", 0), 5),
        (("table", "list", 1, 1), 5),
        (("table", "list", 2, "inner"), 7),
        (("table", "list", 2, "deep", "er"), 7),
        (("table", "sub"), 9),
        (("table", "sub", "when"), 10),
        (("many",), 11),
        (("many", 0, "a"), 12),
        (("many", 0, "under", "b"), 14),
        (("many", 1), 15),
        (("many", 1, "a"), 16),
        (("many", 1, "more", 1, "c"), 21),
    ],
)
def test_every_form_has_its_line(path, line):
    assert lines_of(TEXT)[path] == line


KEYS = st.one_of(st.from_regex(r"[a-z_-]{1,5}", fullmatch=True), st.text('"\\#=.[]{} ax\n\t', max_size=4))
SCALARS = st.one_of(st.integers(0, 99), st.booleans(), st.text("\"\\#=.[]{}, ax\n'", max_size=6))
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def key(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else quoted(text)


def written(value, draw) -> str:
    """A value in one of the ways that TOML has for it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        gap = draw(st.sampled_from([" ", "\n", "  # ] comment\n"]))
        return f"[{gap}" + "".join(f"{written(one, draw)},{gap}" for one in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key(name)} = {written(one, draw)}" for name, one in value.items()) + " }"
    if isinstance(value, str) and "'" not in value and "\n" not in value and draw(st.booleans()):
        return f"'{value}'"
    if isinstance(value, str) and draw(st.booleans()):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"""\n{escaped}"""'
    return quoted(value) if isinstance(value, str) else str(value)


@st.composite
def documents(draw) -> str:
    parts = [f"{key(name)} = {written(value, draw)}" for name, value in draw(st.dictionaries(KEYS, VALUES)).items()]
    for name in draw(st.lists(st.sampled_from(["T1", "T2", "T 3"]), unique=True)):
        for _ in range(draw(st.integers(1, 3))):
            parts.append(f"[[{key(name)}]] # [x]")
            entries = draw(st.dictionaries(KEYS, VALUES, max_size=3)).items()
            parts += [f"  {key(name)} = {written(value, draw)}" for name, value in entries]
            parts += [f"[{key(name)}.'in side']", "k.e.y = 1"] if draw(st.booleans()) else []
    return "\n".join(parts) + draw(st.sampled_from(["", "\n", "\n# end"]))


def paths(value, path=()):
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, one in inner:
        yield (*path, step)
        yield from paths(one, (*path, step))


@given(documents())
def test_all_that_a_parser_finds_has_a_line_and_nothing_else_has(text):
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return  # The same key twice, such as a table and a value.
    lines = lines_of(text)
    assert set(lines) == set(paths(values))
    rows = text.split("\n")
    for path, line in lines.items():
        if isinstance(path[-1], str):
            assert key(path[-1]) in rows[line - 1] or path[-1] in rows[line - 1]

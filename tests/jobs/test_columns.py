"""Columns of a job: followed from stage to stage, and told with the line where one is missing."""

from __future__ import annotations

import pyarrow as pa
import pytest

from evenkeel.errors import InvalidArgumentError
from evenkeel.jobs import check_columns, read_job

ROWS = pa.schema([("word", pa.string()), ("price", pa.float64()), ("at", pa.timestamp("us", "UTC"))])
JOB = """\
checkpoint = "checkpoint"
sink = "console"
source.format = "rate"
[[stage]]
key = "word"
event_time = "at"
[stage.operator]
name = "tumbling"
size = "1 minute"
[stage.operator.operator]
name = "aggregate"
orders = "count"
revenue = { name = "sum", column = "price" }
[[stage]]
key = "window_start"
operator = { name = "top_k", k = 3, by = "revenue" }
"""


def check(tmp_path, old: str = "", new: str = "") -> None:
    assert old in JOB
    file = tmp_path / "job.toml"
    file.write_text(JOB.replace(old, new))
    check_columns(read_job(file), ROWS)


def test_a_job_whose_columns_are_there_passes(tmp_path):
    check(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ('key = "word"', 'key = "wort"', 5, "unknown column 'wort'. Did you mean 'word'?"),
        ('event_time = "at"', 'event_time = "price_at"', 6, "unknown column 'price_at'."),
        ('column = "price"', 'column = "prize"', 13, "'prize'"),
        ('key = "window_start"', 'key = "price"', 15, "unknown column 'price'. Known: orders, revenue, window_end"),
        ('by = "revenue"', 'by = "count"', 16, "'count'"),
    ],
    ids=["a key", "an event time", "deep in an operator", "one that the first stage used up", "of a second stage"],
)
def test_a_missing_column_is_told_with_its_line(tmp_path, old, new, line, told):
    with pytest.raises(InvalidArgumentError) as caught:
        check(tmp_path, old, new)
    assert str(caught.value).startswith(f"{tmp_path / 'job.toml'}:{line}: ")
    assert told in str(caught.value)

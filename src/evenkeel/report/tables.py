"""Arrow tables as Markdown and HTML, and from long to wide."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evenkeel.errors import InvalidArgumentError
from evenkeel.report.findings import number

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["html_table", "markdown_table", "pivot"]


def pivot(table: pa.Table, rows: str | Sequence[str], columns: str, values: str) -> pa.Table:
    """Turn a long table into a wide one: a row for each value of ``rows``, a column for each value of ``columns``.

    Both in the order in which they first occur; null where a pair does not.

    Examples
    --------
    >>> long = pa.table({"z": [0.1, 0.1, 1.0], "strategy": ["hash", "pkg", "hash"], "b": [1.0, 0.8, 1.6]})
    >>> pivot(long, "z", "strategy", "b").to_pylist()
    [{'z': 0.1, 'hash': 1.0, 'pkg': 0.8}, {'z': 1.0, 'hash': 1.6, 'pkg': None}]
    """
    names = (rows,) if isinstance(rows, str) else tuple(rows)
    wide: dict[tuple[Any, ...], dict[str, Any]] = {}
    across: dict[str, None] = {}
    for row in table.select([*names, columns, values]).to_pylist():
        column = str(row[columns])
        if column in names:
            raise InvalidArgumentError(f"{column!r} would be a column twice.", column=column)
        across[column] = None
        wide.setdefault(tuple(row[name] for name in names), {})[column] = row[values]
    return pa.table(
        {
            **{name: [key[place] for key in wide] for place, name in enumerate(names)},
            **{column: [found.get(column) for found in wide.values()] for column in across},
        }
    )


def markdown_table(table: pa.Table) -> str:
    r"""Write a table as Markdown, numbers to the right.

    >>> print(markdown_table(pa.table({"key": ["a|b"], "count": [1200]})))
    | key | count |
    |---|---:|
    | a\|b | 1,200 |
    """
    head = "| " + " | ".join(_plain(name) for name in table.column_names) + " |"
    rule = "|" + "|".join("---:" if right else "---" for right in _numeric(table)) + "|"
    rows = ["| " + " | ".join(_plain(number(value)) for value in row.values()) + " |" for row in table.to_pylist()]
    return "\n".join([head, rule, *rows])


def html_table(table: pa.Table) -> str:
    """Write a table as HTML, numbers to the right.

    >>> html_table(pa.table({"a<b": [1]}))
    '<table><thead><tr><th class="n">a&lt;b</th></tr></thead><tbody><tr><td class="n">1</td></tr></tbody></table>'
    """
    kinds = [' class="n"' if right else "" for right in _numeric(table)]
    head = "".join(f"<th{kind}>{escape(name)}</th>" for kind, name in zip(kinds, table.column_names, strict=True))
    rows = "".join(
        "<tr>"
        + "".join(f"<td{kind}>{escape(number(value))}</td>" for kind, value in zip(kinds, row.values(), strict=True))
        + "</tr>"
        for row in table.to_pylist()
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _numeric(table: pa.Table) -> list[bool]:
    kinds = [field.type for field in table.schema]
    return [pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds]

"""The line of everything in a TOML text."""

from __future__ import annotations

import re
import sys
from bisect import bisect
from dataclasses import dataclass, field
from typing import TypeAlias

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Path", "lines_of", "tomllib"]

Path: TypeAlias = tuple[str | int, ...]
"""Where something is in a document: names of keys, and numbers of elements from 0."""

_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_TEXT = re.compile(
    r"""
    \"{3} (?: \\. | [^\\] )*? \"{3} \"{0,2}  # up to two quotes may stand before the closing three
    | '{3} .*? '{3} '{0,2}
    | " (?: \\. | [^"\\] )* "
    | ' [^']* '
    """,
    re.DOTALL | re.VERBOSE,
)
_PLAIN = re.compile(r"[^,\]}#\n]+")
_KEY = re.compile(rf"[ \t]*({_TEXT.pattern}|[A-Za-z0-9_-]+)[ \t]*(\.?)", re.DOTALL | re.VERBOSE)


def lines_of(text: str) -> dict[Path, int]:
    r"""Give the line, from 1, of every table, key and element of a text that is known to be valid TOML. O(text).

    >>> lines_of("a.b = 1\n[[c]]\nd = [\n  {e = 2},\n]")[("c", 0, "d", 0, "e")]
    4
    """
    # None of tomllib, tomli, tomlkit and rtoml keeps positions, so a valid text is walked through once more.
    return _Walk(text, [match.start() for match in re.finditer("\n", text)]).document()


@dataclass(slots=True)
class _Walk:
    text: str
    ends: list[int]
    at: int = 0
    lines: dict[Path, int] = field(default_factory=dict)
    elements: dict[Path, int] = field(default_factory=dict)
    """How many elements an array of tables has so far."""

    def document(self) -> dict[Path, int]:
        table: Path = ()
        while self.peek():
            brackets = 2 if self.text.startswith("[[", self.at) else int(self.peek() == "[")
            if brackets:
                table = self.header(brackets)
            else:
                self.pair(table)
        return self.lines

    def peek(self) -> str:
        """The next character that is neither blank nor part of a comment; empty at the end."""
        match = _BLANK.match(self.text, self.at)
        assert match is not None
        self.at = match.end()
        return self.text[self.at : self.at + 1]

    def note(self, path: Path) -> None:
        self.lines.setdefault(path, bisect(self.ends, self.at - 1) + 1)

    def header(self, brackets: int) -> Path:
        """``[table]`` or ``[[array of tables]]``; the path of the table that it opens."""
        self.at += brackets
        *outer, last = self.dotted()
        path = self.enter((), outer)
        if brackets == 2:
            path = (*path, last)
            self.note(path)
            self.elements[path] = self.elements.get(path, 0) + 1
            path = (*path, self.elements[path] - 1)
            self.note(path)
        else:
            path = self.enter(path, [last])
        self.at += brackets
        return path

    def enter(self, path: Path, keys: list[str]) -> Path:
        """Go down from a path by keys; where there is an array of tables, into its newest element."""
        for key in keys:
            path = (*path, key)
            self.note(path)
            if path in self.elements:
                path = (*path, self.elements[path] - 1)
        return path

    def dotted(self) -> list[str]:
        keys, more = [], True
        while more:
            match = _KEY.match(self.text, self.at)
            assert match is not None
            key, self.at, more = match[1], match.end(), bool(match[2])
            keys.append(tomllib.loads(f"key = {key}")["key"] if key[0] in "\"'" else key)
        return keys

    def pair(self, table: Path) -> None:
        path = self.enter(table, self.dotted())
        self.at += 1  # =
        self.value(path)

    def value(self, path: Path) -> None:
        opened = self.peek()
        self.note(path)
        if opened in "[{":
            self.at += 1
            number = 0
            while self.peek() not in "]}":
                if opened == "[":
                    self.value((*path, number))
                    number += 1
                else:
                    self.pair(path)
                self.at += self.peek() == ","
            self.at += 1
        else:
            match = _TEXT.match(self.text, self.at) or _PLAIN.match(self.text, self.at)
            assert match is not None
            self.at = match.end()

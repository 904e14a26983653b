"""A TOML file whose mistakes can be told with their lines."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenkeel.errors import EvenkeelError, InvalidArgumentError
from evenkeel.jobs.lines import lines_of, tomllib

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterable, Mapping

    from evenkeel.jobs.lines import Path

__all__ = ["Document", "blamed", "unknown"]


@dataclass(frozen=True, slots=True)
class Document:
    """What a file says, and on which line.

    Parameters
    ----------
    name
        The file's name, as it was given.
    values
        What it says.
    lines
        The line of each key and element, from 1.
    """

    name: str
    values: dict[str, Any]
    lines: Mapping[Path, int]

    @classmethod
    def read(cls, file: pathlib.Path) -> Document:
        """Read a file; what is not TOML is an error with its line."""
        try:
            text = file.read_text(encoding="utf-8")
        except OSError as error:
            hint = " 'evenkeel init' writes an example." if isinstance(error, FileNotFoundError) else ""
            raise EvenkeelError(f"{file} cannot be read: {error.strerror}.{hint}") from error
        except UnicodeDecodeError as error:
            raise EvenkeelError(f"{file} is not a text in UTF-8: {error.reason} at byte {error.start}.") from error
        try:
            return cls(str(file), tomllib.loads(text), lines_of(text))
        except tomllib.TOMLDecodeError as error:
            found = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", str(error))
            assert found is not None
            line = int(found[2] or text.count("\n") + 1)
            told = f"{file}:{line}: this is not TOML: {found[1]}."
            raise InvalidArgumentError(told, file=str(file), line=line) from error

    def line(self, path: Path) -> int:
        """Give the line of a path, or of the nearest table around it that is written down."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def error(self, *mistakes: tuple[Path, str]) -> InvalidArgumentError:
        """Make one error of some mistakes, each told on a line of its own with the place where it is."""
        told = sorted((self.line(path), message) for path, message in mistakes)
        message = "\n".join(f"{self.name}:{line}: {message}" for line, message in told)
        return InvalidArgumentError(message, file=self.name, line=told[0][0])


def unknown(what: str, name: str, known: Iterable[str], where: str = "") -> str:
    """Say that a name is not known, and which one may be meant."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(names)}."
    return f"unknown {what} {name!r}{where}. {hint}"


def blamed(error: Exception, said: Mapping[str, Any]) -> str | None:
    """Give the key of a table that an error is about.

    It is the one that the error's fields name, or its first word, or the one whose value it quotes first.
    """
    fields, text = getattr(error, "fields", {}), str(error)
    named = [key for key in said if key in fields or fields.get("name") == key]
    named += [key for key in said if text.lower().startswith(f"{key} ")]
    values = {key: value.get("name") if isinstance(value, dict) else value for key, value in said.items()}
    quoted = {key: text.find(repr(value)) for key, value in values.items() if isinstance(value, str)}
    named += sorted((key for key, place in quoted.items() if place >= 0), key=quoted.__getitem__)
    return next(iter(named), None)

"""From what a document says to values: by the types that functions and classes declare."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from evenkeel.control import ControlOptions, Elasticity, ServiceLevels
from evenkeel.errors import EvenkeelError
from evenkeel.jobs.document import blamed, unknown
from evenkeel.metrics import ResourceProfile, UtilityFunction
from evenkeel.operators import Mergeable, Operator, WindowFunction
from evenkeel.operators.durations import microseconds

if TYPE_CHECKING:
    from evenkeel.jobs.lines import Path

__all__ = ["INVALID", "Maker", "Reader", "types_of"]

INVALID: Any = object()
"""In place of a value that could not be read; the mistake is noted."""

Maker: TypeAlias = Callable[["Reader", Any, "Path"], Any]

# Names that annotations use and that their modules import for type checkers only. Rules are said in SQL.
_NAMES = {
    kind.__name__: kind
    for kind in (
        Mergeable,
        Operator,
        Elasticity,
        ControlOptions,
        ServiceLevels,
        ResourceProfile,
        UtilityFunction,
        WindowFunction,
    )
} | {"Mapping": Mapping, "Sequence": Sequence, "Callable": Callable, "Literal": Literal, "Rule": str, "Hashable": str}

_WORDS: dict[Any, str] = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    timedelta: "a length of time such as '10 seconds'",
    Sequence: "a list",
    Mapping: "a table",
}


@dataclass(slots=True)
class Reader:
    """Reads values of declared types, and gathers the mistakes.

    Parameters
    ----------
    makers
        How to make values of types that are said in a way of their own, such as an operator by its name.
    """

    makers: Mapping[Any, Maker]
    mistakes: list[tuple[Path, str]] = field(default_factory=list)

    def mistake(self, path: Path, message: str) -> Any:
        """Note a mistake, and give :data:`INVALID`."""
        self.mistakes.append((path, message))
        return INVALID

    def read(self, found: Any, hint: Any, path: Path) -> Any:
        """Read a value of a type; a union takes the first of its types that can be meant."""
        arms = get_args(hint) if get_origin(hint) in {Union, types.UnionType} else (hint,)
        if timedelta in arms and isinstance(found, str):
            return self._duration(found, path)
        for arm in arms:
            if arm in self.makers:
                return self.makers[arm](self, found, path)
        for arm in arms:
            if self._fits(found, arm):
                return self._take(found, arm, path)
        arms = tuple(arm for arm in arms if timedelta not in arms or arm is not str)
        words = [word for word in map(self._word, arms) if word]
        if not words:
            return self.mistake(path, f"{_name(path)} cannot be said in a job file, only in Python.")
        return self.mistake(path, f"{_name(path)} must be {' or '.join(dict.fromkeys(words))}; got {found!r}.")

    def call(self, make: Callable[..., Any], found: Mapping[str, Any], path: Path, *, what: str, **given: Any) -> Any:
        """Call a function or class with the entries of a table, read by its signature; ``given`` ones are not asked."""
        hints = types_of(make)
        signature = {name: one for name, one in inspect.signature(make).parameters.items() if name not in given}
        rest = [name for name, one in signature.items() if one.kind is one.VAR_KEYWORD]
        known = {name: one for name, one in signature.items() if name not in rest}
        before = len(self.mistakes)
        values = {}
        for name, value in found.items():
            if name not in known and not rest:
                self.mistake((*path, name), unknown("key", name, known, f" of {what}"))
                continue
            values[name] = self.read(value, hints.get(name if name in known else rest[0], Any), (*path, name))
        for name, one in known.items():
            if one.default is one.empty and name not in found:
                self.mistake(path, f"{what} needs {name!r}.")
        if len(self.mistakes) > before:
            return INVALID
        try:
            return make(**given, **values)
        except (EvenkeelError, TypeError, ValueError) as error:
            key = blamed(error, found)
            return self.mistake(path if key is None else (*path, key), str(error))

    def _fits(self, found: Any, arm: Any) -> bool:
        """Whether a value can be meant as a type, seen from the outside."""
        kind = get_origin(arm) or arm
        if kind is Any or kind is Literal:
            return True
        if kind is float:
            return isinstance(found, int | float) and not isinstance(found, bool)
        if kind in {str, int, bool}:
            return type(found) is kind
        if kind in {Sequence, list, tuple}:
            return isinstance(found, list)
        return isinstance(found, dict) and (kind is Mapping or is_dataclass(kind))

    def _take(self, found: Any, arm: Any, path: Path) -> Any:
        """Read a value that fits from the outside: what is inside it, too."""
        kind, inner = get_origin(arm) or arm, get_args(arm)
        if kind is Literal and found not in inner:
            allowed = " or ".join(map(repr, inner))
            return self.mistake(path, f"{_name(path)} must be {allowed}; got {found!r}.")
        before = len(self.mistakes)
        if kind in {Sequence, list, tuple} and inner:
            found = tuple(self.read(one, inner[0], (*path, number)) for number, one in enumerate(found))
        elif kind is Mapping:
            found = {name: self.read(one, inner[1], (*path, name)) for name, one in found.items()}
        elif isinstance(kind, type) and is_dataclass(kind):
            found = self.call(kind, found, path, what=repr(_name(path)))
        return found if len(self.mistakes) == before else INVALID

    def _duration(self, found: str, path: Path) -> Any:
        try:
            microseconds(found)
        except EvenkeelError as error:
            return self.mistake(path, f"{_name(path)}: {error}")
        return found

    def _word(self, arm: Any) -> str:
        kind = get_origin(arm) or arm
        if kind is Literal:
            return " or ".join(map(repr, get_args(arm)))
        return _WORDS.get(kind, "a table" if is_dataclass(kind) else "")


def types_of(make: Callable[..., Any]) -> dict[str, Any]:
    """Give the types of parameters; none where a user's function names types that cannot be found."""
    try:
        return get_type_hints(
            inspect.getattr_static(make, "__init__") if isinstance(make, type) else make, localns=_NAMES
        )
    except NameError:
        return {}


def _name(path: Path) -> str:
    """The name of what is at a path: a key, or an element of it."""
    *_, last = path
    return last if isinstance(last, str) else f"{_name(path[:-1])}[{last}]"

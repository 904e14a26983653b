"""Row patterns to automata: ``A (B | C)+ D{2,3}`` to the events that may come next after each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import numpy as np

from evenkeel.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

__all__ = ["MATCH", "Program", "compile_pattern"]

MATCH = -1
"""The state in which the whole pattern is matched."""
_MOST_STATES = 1000
_MOST_VARIABLES = 63


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """An automaton; each state waits for one event of its variable.

    Parameters
    ----------
    variables
        The names of the variables, in order of appearance; each has a bit in an event's mask.
    variable_of
        The variable of each state.
    next_starts, next_states
        ``next_states[next_starts[s]:next_starts[s + 1]]`` are the states after s, the most wanted first; :data:`MATCH`
        where the pattern may end. Those after the last state are where it begins.
    """

    variables: tuple[str, ...]
    variable_of: NDArray[np.int64]
    next_starts: NDArray[np.int64]
    next_states: NDArray[np.int64]


@lru_cache(maxsize=1024)
def compile_pattern(text: str) -> Program:
    """Compile a pattern. O(states²) at worst; ``{n,m}`` makes m copies of what it repeats."""
    tree = _Parser(text).whole()
    variables = tuple(dict.fromkeys(_variables(tree)))
    if len(variables) > _MOST_VARIABLES:
        raise InvalidArgumentError(f"A pattern has at most {_MOST_VARIABLES} variables; this one {len(variables)}.")
    if _nullable(tree):
        raise InvalidArgumentError(f"The pattern ({text}) may match no event at all; let at least one be needed.")
    code: _Code = []
    _emit(tree, code, text)
    states = [at for at, step in enumerate(code) if isinstance(step, str)]
    number = {at: state for state, at in enumerate(states)}
    after = [_follow(code, at + 1, number) for at in states] + [_follow(code, 0, number)]
    return Program(
        variables,
        np.array([variables.index(code[at]) for at in states], np.int64),
        np.cumsum([0, *map(len, after)]),
        np.array([state for following in after for state in following], np.int64),
    )


# A tree is a variable's name, a list of trees in sequence, a set of choices, or a repetition.
@dataclass(frozen=True, slots=True)
class _Choice:
    of: tuple[_Tree, ...]


@dataclass(frozen=True, slots=True)
class _Repeat:
    what: _Tree
    least: int
    most: int | None
    greedy: bool


_Tree: TypeAlias = "str | tuple[_Tree, ...] | _Choice | _Repeat"
_Code: TypeAlias = "list[str | list[int]]"


class _Parser:
    """Reads the grammar of SQL's row patterns, which sqlglot hands over as text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [*re.findall(r"\w+|\S", text), ""]
        self.at = 0

    def whole(self) -> _Tree:
        tree = self.choice()
        if self.tokens[self.at]:
            self.fail()
        return tree

    def choice(self) -> _Tree:
        choices = [self.sequence()]
        while self.take("|"):
            choices.append(self.sequence())
        return choices[0] if len(choices) == 1 else _Choice(tuple(choices))

    def sequence(self) -> _Tree:
        parts = [self.factor()]
        while self.tokens[self.at] not in {"", ")", "|"}:
            parts.append(self.factor())
        return parts[0] if len(parts) == 1 else tuple(parts)

    def factor(self) -> _Tree:
        tree: _Tree
        if self.take("("):
            tree = self.choice()
            self.need(")")
        elif re.fullmatch(r"[^\W\d]\w*", self.tokens[self.at]):
            tree = self.tokens[self.at]
            self.at += 1
        else:
            self.fail()
        least, most = self.quantifier()
        if (least, most) == (1, 1):
            return tree
        if most == 0 or (most is not None and most < least):
            raise InvalidArgumentError(f"{{{least},{most}}} in the pattern ({self.text}) repeats nothing.")
        if _nullable(tree):
            raise InvalidArgumentError(
                f"The pattern ({self.text}) repeats a part that may match no event; make one of its events needed, or "
                "repeat its events instead."
            )
        return _Repeat(tree, least, most, greedy=not self.take("?"))

    def quantifier(self) -> tuple[int, int | None]:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(sign):
                return bounds
        if not self.take("{"):
            return 1, 1
        least = self.number()
        if not self.take(","):
            self.need("}")
            return (self.fail(), None) if least is None else (least, least)
        most = self.number()
        self.need("}")
        return least or 0, most

    def number(self) -> int | None:
        if not self.tokens[self.at].isdecimal():
            return None
        self.at += 1
        return int(self.tokens[self.at - 1])

    def take(self, token: str) -> bool:
        taken = self.tokens[self.at] == token
        self.at += taken
        return taken

    def need(self, token: str) -> None:
        if not self.take(token):
            self.fail()

    def fail(self) -> NoReturn:
        found = self.tokens[self.at] or "its end"
        raise InvalidArgumentError(
            f"The pattern ({self.text}) cannot be read at {found!r}. It is made of variables, |, parentheses and the "
            "quantifiers * + ? {n} {n,} {,m} {n,m}, each with ? for as little as possible.",
            pattern=self.text,
        )


def _variables(tree: _Tree) -> Iterable[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, _Repeat):
        yield from _variables(tree.what)
    else:
        for part in tree.of if isinstance(tree, _Choice) else tree:
            yield from _variables(part)


def _nullable(tree: _Tree) -> bool:
    if isinstance(tree, str):
        return False
    if isinstance(tree, _Repeat):
        return tree.least == 0 or _nullable(tree.what)
    if isinstance(tree, _Choice):
        return any(_nullable(part) for part in tree.of)
    return all(_nullable(part) for part in tree)


def _emit(tree: _Tree, code: _Code, text: str) -> None:
    """Append the instructions of a tree: an event's variable, or a fork's targets, the most wanted first."""
    if isinstance(tree, str):
        if sum(isinstance(step, str) for step in code) == _MOST_STATES:
            raise InvalidArgumentError(f"The pattern ({text}) needs more than {_MOST_STATES} states; repeat less.")
        code.append(tree)
    elif isinstance(tree, _Choice):
        _emit_choice(tree, code, text)
    elif isinstance(tree, _Repeat):
        _emit_repeat(tree, code, text)
    else:
        for part in tree:
            _emit(part, code, text)


def _emit_choice(tree: _Choice, code: _Code, text: str) -> None:
    fork: list[int] = []
    ends: list[list[int]] = []
    code.append(fork)
    for part in tree.of:
        fork.append(len(code))
        _emit(part, code, text)
        ends.append([])
        code.append(ends[-1])
    for end in ends:
        end.append(len(code))


def _emit_repeat(tree: _Repeat, code: _Code, text: str) -> None:
    for _ in range(tree.least):
        _emit(tree.what, code, text)
    forks: list[list[int]] = []
    for _ in range(1 if tree.most is None else tree.most - tree.least):
        at = len(code)
        forks.append([at + 1])
        code.append(forks[-1])
        _emit(tree.what, code, text)
        if tree.most is None:
            code.append([at])
    for fork in forks:
        fork.insert(1 if tree.greedy else 0, len(code))


def _follow(code: _Code, start: int, number: dict[int, int]) -> list[int]:
    """Give the states that are reached from an instruction without any event, in order of preference."""
    found: list[int] = []
    stack, seen = [start], set()
    while stack:
        at = stack.pop()
        if at in seen:
            continue
        seen.add(at)
        if at == len(code):
            found.append(MATCH)
        elif isinstance(step := code[at], str):
            found.append(number[at])
        else:
            stack += reversed(step)
    return found

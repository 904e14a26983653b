"""Words from a checkpoint, made harmless and short: keys, host names and reasons may hold anything."""

from __future__ import annotations

import unicodedata

__all__ = ["plain"]

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Control, formatting, lone surrogate, private, unassigned, and characters that break lines."""


def plain(text: object, limit: int = 80) -> str:
    r"""Give at most ``limit`` characters of a text, with those that cannot be seen written as escapes.

    So nothing reaches a terminal's control sequences or turns the direction of writing, and a key of a megabyte costs
    no more than a short one.

    Examples
    --------
    >>> plain("a\x1b[31mb"), plain("x" * 1_000_000, limit=5)
    ('a\\x1b[31mb', 'xxxx…')
    """
    shown, length = [], 0
    for character in str(text)[: limit + 1]:
        hidden = unicodedata.category(character) in _INVISIBLE
        shown.append(character.encode("unicode_escape").decode() if hidden else character)
        length += len(shown[-1])
    if length <= limit:
        return "".join(shown)
    return "".join(shown)[: limit - 1] + "…"

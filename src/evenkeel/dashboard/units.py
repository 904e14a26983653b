"""Numbers as people read them."""

from __future__ import annotations

__all__ = ["as_bytes", "as_count", "as_ms"]


def as_count(number: float) -> str:
    """Give a count in at most five characters, but for what is beyond 10¹⁵.

    >>> as_count(999), as_count(12_345), as_count(2_500_000)
    ('999', '12.3k', '2.5M')
    """
    for unit in ("", "k", "M", "G"):
        if abs(number) < 999.5:
            return f"{number:.0f}" if not unit else f"{number:.3g}{unit}"
        number /= 1000
    return f"{number:.3g}T"


def as_bytes(number: float) -> str:
    """Give a size in units of 1024.

    >>> as_bytes(500), as_bytes(123_456), as_bytes(5 << 30)
    ('500 B', '121 KiB', '5 GiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(number) < 999.5:
            return f"{number:.3g} {unit}"
        number /= 1024
    return f"{number:.4g} TiB"


def as_ms(number: float) -> str:
    """Give a duration.

    >>> as_ms(0.42), as_ms(12.6), as_ms(4321)
    ('0.4 ms', '13 ms', '4.3 s')
    """
    if number >= 1000:
        return f"{number / 1000:.1f} s"
    return f"{number:.1f} ms" if number < 10 else f"{number:.0f} ms"

"""Why the advisor says what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evenkeel.sim.advice.outcome import Outcome
    from evenkeel.sim.advice.profile import Profile

__all__ = ["reasons_for", "size"]

_MUCH_TURNOVER = 0.25


def reasons_for(
    profile: Profile,
    chosen: Outcome,
    plain: Outcome,
    outcomes: Sequence[Outcome],
    scaling: Sequence[Outcome],
    mergeable: bool,
    keeps_up: bool | None,
) -> Iterator[str]:
    """Give the reasons, one sentence or two each, with their numbers."""
    yield _on_channels(profile, chosen, scaling, mergeable, keeps_up)
    yield _on_gain(chosen, plain)
    if not mergeable:
        yield from _on_what_cannot_be_helped(profile, scaling[-1].channels)
    if chosen.candidate.splits:
        yield (
            f"Hot keys are split: a key has {chosen.parts_per_key:.2f} partial states in a window, which a second "
            "stage merges."
        )
    if chosen.candidate.combine:
        yield (
            f"Combined before the shuffle, {chosen.shuffled_share:.0%} as many rows travel as there are tuples, and a "
            "hot key sends one row per map task."
        )
    yield from _on_cost(chosen)
    if profile.turnover > _MUCH_TURNOVER:
        yield (
            f"The stream drifts: of the hottest keys' load, {profile.turnover:.0%} is with others in the next window. "
            + (
                "Plans after every batch follow it best."
                if chosen.candidate.batches == 1
                else "What was chosen does not depend on who is hot, or follows well enough."
            )
        )
    others = [outcome for outcome in outcomes if outcome.name not in {chosen.name, plain.name}]
    if others:
        best = min(others, key=lambda outcome: outcome.makespan)
        yield f"The best of the others is {best.name}: {_compared(best.makespan, chosen.makespan)}."


def _on_channels(
    profile: Profile, chosen: Outcome, scaling: Sequence[Outcome], mergeable: bool, keeps_up: bool | None
) -> str:
    number, most = chosen.channels, scaling[-1]
    if keeps_up:
        return f"{number} is the least number of channels whose busiest keeps up in every window."
    if keeps_up is False:
        return f"No number of channels up to {most.channels} keeps up; {number} comes nearest."
    work = profile.tuples / profile.windows
    used, wasted = (min(work / (tried.channels * tried.makespan), 1) for tried in (chosen, most))
    if number == most.channels:
        return f"All {number} channels that were allowed are of use: by {used:.0%}."
    hot = profile.hottest_share * most.channels > 1 and not mergeable
    why = f", since the hottest key alone is {profile.hottest_share:.0%} of the load" if hot else ""
    return f"On {number}, channels are of use by {used:.0%}; on {most.channels} they would be by {wasted:.0%}{why}."


def _on_gain(chosen: Outcome, plain: Outcome) -> str:
    if chosen.name == plain.name:
        return (
            f"Plain key grouping is even enough: the busiest channel has {plain.skewness:.2f} times the average load, "
            "and nothing that was tried is more than 3 % faster."
        )
    return (
        f"The busiest channel has {plain.skewness:.2f} times the average load under key grouping, "
        f"{chosen.skewness:.2f} times with {chosen.name}; a batch of the stage takes "
        f"{1 - chosen.makespan / plain.makespan:.0%} less time."
    )


def _on_what_cannot_be_helped(profile: Profile, most: int) -> Iterator[str]:
    if profile.hottest_share * most > 1:
        yield (
            f"The hottest key has {profile.hottest_share:.1%} of a window's tuples and cannot be divided: even with a "
            "channel of its own it is the bottleneck, and no strategy, on however many channels, can be more than "
            f"{1 / profile.hottest_share:.1f} times as fast as one channel. Only an operator whose partial states "
            "merge, or less work per tuple, would help."
        )


def _on_cost(chosen: Outcome) -> Iterator[str]:
    if chosen.moved_first_bytes + chosen.moved_bytes and chosen.state_bytes:
        yield (
            f"It moves {size(chosen.moved_first_bytes)} of state at first, then {size(chosen.moved_bytes)} per window, "
            f"of {size(chosen.state_bytes)}; the routing table takes {size(chosen.table_bytes or 0)} and pins "
            f"{chosen.pins or 0:,} keys."
        )
    if chosen.fullest_bytes is not None and chosen.state_bytes:
        yield f"The fullest channel holds {size(chosen.fullest_bytes)} of {size(chosen.state_bytes)} of state."


def _compared(makespan: float, with_: float) -> str:
    ratio = makespan / with_ if with_ else 1.0
    if abs(ratio - 1) < 0.005:
        return "as fast"
    return f"{ratio - 1:.1%} slower" if ratio > 1 else f"{1 - ratio:.1%} faster, but less simple"


def size(state_bytes: float) -> str:
    """Write a number of bytes for people.

    >>> size(0), size(1536), size(3.2e9)
    ('0 B', '1.5 kB', '3.2 GB')
    """
    units = ("B", "kB", "MB", "GB", "TB")
    step = 0
    while state_bytes >= 1000 and step < len(units) - 1:
        state_bytes, step = state_bytes / 1000, step + 1
    return f"{state_bytes:.0f} B" if step == 0 else f"{state_bytes:.1f} {units[step]}"

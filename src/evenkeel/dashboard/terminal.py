"""The live view in a terminal: a state in, something that Rich can print out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text

from evenkeel.dashboard.units import as_bytes, as_count, as_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

__all__ = ["render", "sparkline"]

_SPARKS = "▁▂▃▄▅▆▇█"
_STATUS = {"running": "green", "silent": "yellow", "died": "red", "ended": "dim"}
_CHOICES = {
    "move": "green",
    "resize": "green",
    "continue": "green",
    "rehome": "cyan",
    "replicate": "cyan",
    "recover": "yellow",
}
_UNEVEN = 1.15


def sparkline(values: Sequence[float], width: int, low: float, high: float) -> str:
    """Draw the last ``width`` values between two bounds, one character each.

    >>> sparkline([1, 2, 3], 10, 1, 3)
    '▁▅█'
    """
    span = (high - low) or 1.0
    places = [round((len(_SPARKS) - 1) * (value - low) / span) for value in values[-width:]]
    return "".join(_SPARKS[min(max(place, 0), len(_SPARKS) - 1)] for place in places)


def render(state: dict[str, Any], stage: str | None, width: int, height: int | None = None) -> RenderableType:
    """Draw a state.

    Parameters
    ----------
    state
        What :func:`~evenkeel.dashboard.state.state_of` gave.
    stage
        The stage to show; the first one if None.
    width, height
        Columns and lines that there are; as many lines as it takes if None.
    """
    parts: list[RenderableType] = [_headline(state)]
    parts += [Text(f"! {state['trouble']}", style="red")] if state["trouble"] else []
    parts += [Text(f"! passed over: {what}", style="yellow") for what in state["damaged"][-3:]]
    shown = next((item for item in state["stages"] if stage in {None, item["name"]}), None)
    if shown is None:
        return Group(*parts, Text("No batch is committed yet.", style="dim"))
    others = [item["name"] for item in state["stages"] if item is not shown]
    moves = _moves(shown, width if height is not None else 2 * width)
    room = _Room.of(shown, None if height is None else height - len(parts) - len(moves))
    parts += [_facts(shown, others), *_times(shown, width), Text(), _loads(shown, room.channels, width)]
    if room.keys:
        parts += [Text(), _hot_keys(shown, room.keys, width)]
    parts += [*moves, Text(), *_decisions(shown, room.decisions, None if height is None else 2 * width)]
    return Group(*parts)


class _Room(NamedTuple):
    """How many channels, hot keys and decisions there is room for."""

    channels: int
    keys: int
    decisions: int

    @classmethod
    def of(cls, stage: dict[str, Any], height: int | None) -> _Room:
        """Share the lines out: headings first, then a decision, then channels, keys and further decisions."""
        channels, keys = min(len(stage["channels"]), 12), min(len(stage["hot_keys"]), 8)
        if height is None:
            return cls(channels, keys, 5)
        left = height - 14  # facts, curves, headings of channels and decisions, blank lines, and a decision
        channels = min(channels, max(3, left // 2))
        left -= channels
        keys = min(keys, max(0, left - 3)) if left > 3 else 0  # with heading and blank line
        left -= keys + 3 if keys else 0
        return cls(channels, keys, min(5, 1 + max(0, left) // 2))


def _headline(state: dict[str, Any]) -> Text:
    query = state["query"]
    line = Text.assemble(
        (state["checkpoint"]["job"] or "?", "bold"),
        "  ",
        (query["status"], _STATUS.get(query["status"], "")),
        "  batch ",
        (str(state["batch"]) if state["batch"] is not None else "–", "bold"),
    )
    if query["status"] != "ended":
        line.append(f"  {query['host']}, process {query['pid']}", "dim")
    line.append(f"  {state['checkpoint']['location']}", "dim")
    line.truncate(10_000)
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _facts(stage: dict[str, Any], others: list[str]) -> Text:
    table, now = stage["table"], stage["history"][-1]
    facts = [f"stage {stage['name']}", f"{len(stage['channels']):,} channels"]
    if stage["router"]:
        facts.append(f"each tuple routed by {stage['router']}")
    elif table:
        facts.append(f"table {table['epoch']}")
        facts += [f"next {table['next_epoch']}"] if table["next_epoch"] != table["epoch"] else []
        facts += [f"{table['pins']:,} pins"] if table["pins"] else []
        facts += [f"{table['split_keys']:,} split keys"] if table["split_keys"] else []
        backups = table["slots_with_backups"] + table["pins_with_backups"]
        facts += [f"{backups:,} entries with backups"] if backups else []
    keys = sum(channel["keys"] for channel in stage["channels"])
    facts.append(f"{as_bytes(now['state_bytes'])} of state, {as_count(keys)} keys")
    facts += [f"watermark {stage['watermark']}"] if stage["watermark"] else []
    facts += [f"also: {', '.join(others)} (--stage)"] if others else []
    return Text(" · ".join(facts), style="")


def _times(stage: dict[str, Any], width: int) -> list[Text]:
    history = stage["history"]
    room = max(10, width - 44)
    lines = []
    skewness = [batch["skewness"] for batch in history]
    top = max(1.0, *skewness[-room:])
    drawn = sparkline(skewness, room, 1.0, max(top, _UNEVEN))
    told = f"now {skewness[-1]:.2f}×, highest {top:.2f}×"
    lines.append(Text.assemble(("imbalance  ", "bold"), (drawn, _colour(skewness[-1])), f" {told}"))
    took = [batch["took_ms"] for batch in history if batch["took_ms"] is not None]
    name, series = ("batch time ", took) if took else ("busiest    ", [batch["busiest_ms"] for batch in history])
    top = max(series[-room:])
    told = f"now {as_ms(series[-1])}, highest {as_ms(top)}"
    lines.append(Text.assemble((name, "bold"), (sparkline(series, room, 0.0, top), "blue"), f" {told}"))
    rows = [batch["rows"] for batch in history]
    top = max(rows[-room:])
    told = f"now {as_count(rows[-1])}, highest {as_count(top)}"
    lines.append(Text.assemble(("rows       ", "bold"), (sparkline(rows, room, 0, top), "blue"), f" {told}"))
    for line in lines:
        line.no_wrap, line.overflow = True, "ellipsis"
    return lines


def _colour(skewness: float) -> str:
    return "green" if skewness <= _UNEVEN else "yellow" if skewness <= 2 else "red"


def _loads(stage: dict[str, Any], few: int, width: int) -> Table:
    """A bar per channel; of many channels the fullest, and how all are spread."""
    channels = stage["channels"]
    loads = np.array([channel["rows"] for channel in channels], float)
    average = float(loads.mean()) or 1.0
    shown = range(len(channels))
    title = f"load per channel, batch {stage['load_batch']}: average {as_count(loads.mean())} rows"
    if len(channels) > few:
        shown = np.argsort(-loads, kind="stable")[:few].tolist()
        low, middle, high = np.quantile(loads, [0, 0.5, 0.95])
        title += f"; least {as_count(low)}, median {as_count(middle)}, 95% {as_count(high)}. The {few} fullest:"
    table = Table(title=Text(title, style="bold"), title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    wide = width >= 100
    for name in ("channel", "", "rows", "× avg", "busy", "state", *(("slots+pins", "host", "opened") if wide else ())):
        table.add_column(name, justify="left" if name in {"", "host", "opened"} else "right", no_wrap=True, style="")
    longest = float(loads.max()) or 1.0
    room = max(8, width - (78 if wide else 44))
    for place in shown:
        channel = channels[place]
        bar = "█" * round(room * channel["rows"] / longest)
        cells: list[str | Text] = [
            str(channel["channel"]),
            Text(bar, style=_colour(channel["rows"] / average)),
            as_count(channel["rows"]),
            f"{channel['rows'] / average:.2f}",
            as_ms(channel["busy_ms"]),
            as_bytes(channel["state_bytes"]),
        ]
        if wide:
            cells += [f"{channel['slots']}+{channel['pins']}", Text(channel["host"][:16]), Text(channel["opened"])]
        table.add_row(*cells)
    return table


def _hot_keys(stage: dict[str, Any], few: int, width: int) -> Table:
    title = Text("hot keys", style="bold")
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("key", "share", "rows", "state", "channel", "placed by"):
        table.add_column(name, justify="left" if name in {"key", "placed by"} else "right", no_wrap=True)
    for key in stage["hot_keys"][:few]:
        name = key["hash"] if key["name"] is None else key["name"]
        where = str(key["channels"][0]) if key["channel_count"] == 1 else f"{key['channel_count']} channels"
        shown = Text(name)
        shown.truncate(max(16, width - 48), overflow="ellipsis")
        table.add_row(
            shown, f"{key['share']:.2%}", as_count(key["count"]), as_bytes(key["state_bytes"]), where, key["placed"]
        )
    return table


def _moves(stage: dict[str, Any], room: int) -> list[Text]:
    """The last movement, and the one to come."""
    lines = []
    for movement, when in ((stage["planned"], "to move"), (next(reversed(stage["movements"]), None), "moved")):
        if movement is None:
            continue
        parts = [f"{number:,} {_ACTIONS[action]}" for action, number in movement["items"].items() if number]
        flows = ", ".join(f"{flow['source']}→{flow['target']}" for flow in movement["flows"][:8])
        line = Text.assemble((f"{when} ", "bold"), f"in batch {movement['batch']}: {', '.join(parts)} ({flows}", "")
        line.append(", …)" if len(movement["flows"]) > 8 else ")")
        line.truncate(room, overflow="ellipsis")
        lines.append(line)
    return [Text(), *lines] if lines else []


_ACTIONS = {"move": "slots and keys", "switch": "by a switch of roles", "copy": "copies to backups"}


def _decisions(stage: dict[str, Any], few: int, room: int | None) -> list[Text]:
    """The newest decision, and those before it that changed something; each in so many characters, if told."""
    lines = [Text("decisions", style="bold")]
    if not stage["decisions"]:
        return [*lines, Text("None so far.", style="dim")]
    newest = stage["decisions"][-1]
    acted = [item for item in stage["decisions"][:-1] if item["choice"] != "stay"]
    for item in [newest, *reversed(acted)][:few]:
        line = Text.assemble(f"batch {item['batch']} ", (item["choice"], _CHOICES.get(item["choice"], "dim")))
        if item["predicted"] is not None:
            line.append(f" {item['before']:.2f}× → {item['predicted']:.2f}×")
        if item["achieved"] is not None:
            line.append(f", achieved {item['achieved']:.2f}×")
        line.append(f"  {' '.join(item['reasons'])}", "dim")
        if room is not None:
            line.truncate(room, overflow="ellipsis")
        lines.append(line)
    return lines

"""Which channel sits where: Spark says on which hosts the seats are, the loads say who takes which."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["host_loads", "most_loaded", "seat_channels"]

_SLACK = 1.1


def seat_channels(
    seats: Sequence[str], before: Mapping[int, str], loads: Sequence[float], *, evens: bool = False
) -> list[int]:
    """Give the channel of each seat, so that hosts are loaded by the seats they have and few channels change hosts.

    The channels of a host that has seats for all of them stay, unless loads are to be evened out. Of the others the
    heaviest choose first. One stays while its host has a seat left and is not overloaded by it by more than a tenth, or
    every other host would be as much. Otherwise it takes the least loaded host with a free seat; rather one where it
    overloads nothing, and rather a seat that no channel waits for.

    Parameters
    ----------
    seats
        The host of each seat; as many as there are channels.
    before
        The host of each channel so far, as far as it had one.
    loads
        The load of each channel.
    evens
        Whether a channel may leave a host that has a seat for it, just for its load: it leaves its state behind.

    Notes
    -----
    O(channels · (log channels + hosts)). Longest processing time first.

    >>> seat_channels(["a", "a", "b", "b"], {0: "a", 1: "a", 2: "a", 3: "b"}, [1, 1, 1, 1])
    [0, 1, 2, 3]
    """
    free = Counter(seats)
    wanted = Counter(before.get(channel, "") for channel in range(len(loads)))
    weight = sum(loads) or 1.0
    shares = {host: weight * count / len(seats) for host, count in free.items()}
    carried = dict.fromkeys(shares, 0.0)
    hosts: dict[int, str] = {}

    def filling(host: str, load: float) -> float:
        return (carried[host] + load) / shares[host]

    def choose(load: float) -> str:
        room = [host for host in shares if free[host]]
        return min(room, key=lambda h: (filling(h, load) > _SLACK, free[h] <= wanted[h], filling(h, load)))

    settled = {c for c, host in before.items() if wanted[host] <= free[host] and not evens}
    for channel in sorted(range(len(loads)), key=lambda channel: (channel not in settled, -loads[channel])):
        host, load = before.get(channel, ""), loads[channel]
        wanted[host] -= 1
        least = min(filling(other, load) for other in shares if free[other])
        stays = host in shares and free[host] > 0 and (channel in settled or filling(host, load) <= max(_SLACK, least))
        hosts[channel] = host if stays else choose(load)
        free[hosts[channel]] -= 1
        carried[hosts[channel]] += load
    waiting = {host: [channel for channel in sorted(hosts) if hosts[channel] == host] for host in shares}
    return [waiting[host].pop(0) for host in seats]


def host_loads(hosts: Mapping[int, str], loads: Sequence[float]) -> dict[str, float]:
    """Add up the loads of the channels of each host."""
    carried: dict[str, float] = {}
    for channel, host in hosts.items():
        carried[host] = carried.get(host, 0.0) + loads[channel]
    return carried


def most_loaded(hosts: Mapping[int, str], loads: Sequence[float]) -> float:
    """Give by what factor the most loaded host exceeds its share; hosts share by the channels that they have."""
    seats = Counter(hosts.values())
    weight = sum(loads)
    if not weight:
        return 1.0
    return max(load * len(hosts) / (weight * seats[host]) for host, load in host_loads(hosts, loads).items())

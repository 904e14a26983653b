"""Which channel sits where: Spark says on which hosts the seats are, the loads say who takes which."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["host_loads", "most_loaded", "seat_channels"]

_SLACK = 1.1


def seat_channels(seats: Sequence[str], before: Mapping[int, str], loads: Sequence[float]) -> list[int]:
    """Give the channel of each seat, so that hosts are loaded by the seats they have and few channels change hosts.

    The heaviest channels choose first. A channel stays on its host while that has a seat left and is not overloaded by
    it (by more than a tenth); the others take the least loaded host with a free seat.

    Parameters
    ----------
    seats
        The host of each seat; as many as there are channels.
    before
        The host of each channel so far, as far as it had one.
    loads
        The load of each channel.

    Notes
    -----
    O(channels · (log channels + hosts)). Longest processing time first, with room kept for those who stay.

    >>> seat_channels(["a", "a", "b", "b"], {0: "a", 1: "a", 2: "a", 3: "b"}, [1, 1, 1, 1])
    [0, 1, 3, 2]
    """
    free = Counter(seats)
    weight = sum(loads) or 1.0
    shares = {host: weight * count / len(seats) for host, count in free.items()}
    carried = dict.fromkeys(shares, 0.0)
    hosts: dict[int, str] = {}
    order = sorted(range(len(loads)), key=lambda channel: -loads[channel])

    def take(channel: int, host: str) -> None:
        hosts[channel] = host
        free[host] -= 1
        carried[host] += loads[channel]

    for channel in order:
        host = before.get(channel)
        if host in shares and free[host] and carried[host] + loads[channel] <= _SLACK * shares[host]:
            take(channel, host)
    for channel in (channel for channel in order if channel not in hosts):
        room = [host for host in shares if free[host]]
        take(channel, min(room, key=lambda host: (carried[host] + loads[channel]) / shares[host]))
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

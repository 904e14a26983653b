"""The listings and definitions of the least-load-fit planners, word by word and slow, and random cases to try."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from evenkeel.planning import LoadSnapshot
from evenkeel.routing import Ragged, RoutingTable


@dataclass
class Case:
    """A snapshot and a table as plain lists: first all slots, then all tracked or pinned keys by hash."""

    channels: int
    slots: int
    hashes: list
    costs: list
    state: list
    homes: list
    slot_of: list
    backups: list
    fixed: list
    movable: list = field(default_factory=list)
    limit: float = 0.0

    @classmethod
    def of(cls, snapshot, table, theta_max, move_slots):
        split = set(table.split_hashes.tolist())
        tracked = {
            key: (cost, state)
            for key, cost, state in zip(
                snapshot.key_hashes.tolist(),
                snapshot.key_costs.tolist(),
                snapshot.key_state_bytes.tolist(),
                strict=True,
            )
        }
        fixed = [0.0] * table.channels
        for key in split & set(tracked):
            places = table.active_channels(np.array([key])).tolist()[0]
            for channel in places:
                fixed[channel] += tracked[key][0] / len(places)
        hashes = sorted((set(tracked) | set(table.pin_hashes.tolist())) - split)
        keys = np.array(hashes, np.int64)
        case = cls(
            channels=table.channels,
            slots=table.slots,
            hashes=hashes,
            costs=snapshot.slot_costs.tolist() + [tracked.get(key, (0, 0))[0] for key in hashes],
            state=snapshot.slot_state_bytes.tolist() + [tracked.get(key, (0, 0))[1] for key in hashes],
            homes=table.slot_channels.tolist() + table.home(keys).tolist(),
            slot_of=[*range(table.slots), *(key % table.slots for key in hashes)],
            backups=table.backups_of_slots.tolist() + (table.backups(keys).tolist() if hashes else []),
            fixed=fixed,
        )
        case.movable = [item for item, cost in enumerate(case.costs) if cost > 0 and (move_slots or item >= case.slots)]
        case.limit = (1 + theta_max) * (sum(case.loads(case.homes)) / case.channels) * (1 + 1e-12)
        return case

    def loads(self, homes):
        loads = list(self.fixed)
        for item, home in enumerate(homes):
            loads[home] += self.costs[item]
        return loads

    def pins(self, homes):
        return [item for item in range(self.slots, len(homes)) if homes[item] != homes[self.slot_of[item]]]

    def index(self, item, beta=1.0, gamma=0.0):
        """M(k); the least is the best, ties to the costlier, then to the lower item."""
        copies = (1.0 + len(self.backups[item])) ** gamma
        return self.state[item] / self.costs[item] ** beta * copies, -self.costs[item], item

    def costliest(self, items):
        return max(items, key=lambda item: (self.costs[item], -item))

    def least_loaded(self, loads):
        return min(range(self.channels), key=lambda channel: (loads[channel], channel))

    def decide(self, homes, table_limit=None):
        """Keep what is, where it is balanced or the outcome no better."""
        worst = max(self.loads(self.homes))
        if table_limit is not None and len(self.pins(self.homes)) > table_limit:
            return homes()
        if worst <= self.limit:
            return self.homes
        new = homes()
        return self.homes if max(self.loads(new)) >= worst * (1 - 1e-9) else new

    def is_reached_by(self, table):
        """The homes of all items under a table."""
        return table.slot_channels.tolist() + table.home(np.array(self.hashes, np.int64)).tolist()


def llfd(case, candidates, homes, loads, *, published=False):
    """Algorithm 2. ``published``: line 7 inside the if, as printed."""
    homes, loads, candidates = list(homes), list(loads), set(candidates)
    while candidates:
        k = case.costliest(candidates)
        d = case.least_loaded(loads)
        if not published or case.homes[case.slot_of[k]] != d:
            loads[d] += case.costs[k]
        homes[k] = d
        candidates.remove(k)
    return homes, loads


def llfd_of_all(case, **options):
    """LLFD with all keys as its input."""
    loads = list(case.fixed)
    for item in set(range(len(case.homes))) - set(case.movable):
        loads[case.homes[item]] += case.costs[item]
    return llfd(case, case.movable, case.homes, loads, **options)


def selected(case, homes, rank):
    """Lines 1-7 of Algorithm 3: candidates out of overloaded channels, the best rank first."""
    loads, candidates = case.loads(homes), set()
    for d in range(case.channels):
        while loads[d] > case.limit:
            here = [k for k in case.movable if homes[k] == d and k not in candidates]
            if not here:
                break
            k = min(here, key=rank)
            candidates.add(k)
            loads[d] -= case.costs[k]
    return candidates, loads


def relieve(case, homes, rank, *, exchange, backups=False):
    candidates, loads = selected(case, homes, rank)
    if not exchange:
        return llfd(case, candidates, homes, loads)[0]
    return exchanged(case, candidates, homes, loads, rank, backups=backups)


def exchanged(case, candidates, homes, loads, rank, *, backups):
    """Lines 8-24 of Algorithm 3, with cursors and undo; a backup with room first, a last resort at the end."""
    homes, loads, cursor = list(homes), list(loads), [math.inf] * case.channels
    seen = set()
    while candidates:
        k = case.costliest(candidates)
        assert k not in seen, "a key is placed once"
        seen.add(k)
        by_load = sorted(range(case.channels), key=lambda d: (loads[d], d))
        free = [d for d in by_load if d in case.backups[k] and loads[d] + case.costs[k] <= case.limit]
        target = free[0] if backups and free else None
        for d in by_load if target is None else ():
            undo = list(loads), set(candidates), list(cursor)
            put(case, k, d, candidates, homes, loads, cursor, rank)
            if loads[d] <= case.limit:
                target = d
                break
            loads, candidates, cursor = undo
        else:
            if target is None:
                heavy = {d: loads[d] - sum_of_lighter(case, k, d, candidates, homes) for d in by_load}
                target = min(heavy, key=heavy.get)
                put(case, k, target, candidates, homes, loads, cursor, rank)
            else:
                loads[target] += case.costs[k]
        homes[k] = target
        candidates.remove(k)
    return homes


def sum_of_lighter(case, k, d, candidates, homes):
    here = [j for j in case.movable if homes[j] == d and j not in candidates]
    return sum(case.costs[j] for j in here if case.costs[j] < case.costs[k])


def put(case, k, d, candidates, homes, loads, cursor, rank):
    """Lines 12-16: load k onto d, and take lighter keys out of d while it is overloaded."""
    loads[d] += case.costs[k]
    if loads[d] > case.limit:
        cursor[d] = case.costs[k]
        while loads[d] > case.limit:
            here = [j for j in case.movable if homes[j] == d and j not in candidates and case.costs[j] < cursor[d]]
            if not here:
                break
            j = min(here, key=rank)
            candidates.add(j)
            loads[d] -= case.costs[j]


def min_table(case, *, exchange):
    cleared = [case.homes[slot] for slot in case.slot_of]
    return relieve(case, cleared, lambda item: (-case.costs[item], item), exchange=exchange)


def min_mig(case, beta, *, exchange):
    return relieve(case, case.homes, lambda item: case.index(item, beta), exchange=exchange)


def bounded(case, table_limit, balance):
    """Send the n pins with the least state back, n grown until the table fits."""
    entries = sorted(case.pins(case.homes), key=lambda item: (case.state[item], item))
    n, found = 0, []
    while True:
        homes = list(case.homes)
        for item in entries[:n]:
            homes[item] = homes[case.slot_of[item]]
        homes = balance(homes)
        pins = len(case.pins(homes))
        found.append((pins, len(found), homes))
        if table_limit is None or pins <= table_limit:
            return homes
        if n == len(entries):
            return min(found)[2]
        n = min(len(entries), n + max(pins - table_limit, n // 8))


def mixed(case, beta, table_limit, *, exchange):
    rank = lambda item: case.index(item, beta)  # noqa: E731
    return bounded(case, table_limit, lambda homes: relieve(case, homes, rank, exchange=exchange))


def ftlb(case, beta, gamma, table_limit):
    rank = lambda item: case.index(item, beta, gamma)  # noqa: E731
    return bounded(case, table_limit, lambda homes: relieve(case, homes, rank, exchange=True, backups=True))


def random_case(seed, *, replicas=False, splits=True):
    """A small snapshot and table with whole-numbered loads, so that sums are exact in any order."""
    rng = np.random.default_rng(seed)
    slots, channels, keys = int(rng.choice([4, 8, 16])), int(rng.integers(1, 7)), int(rng.integers(0, 40))
    hashes = np.unique(rng.integers(-(2**62), 2**62, keys))
    costs = rng.integers(0, rng.choice([3, 20, 1000]), len(hashes))
    if rng.random() < 0.3:
        costs = np.ceil(200 / np.arange(1, len(hashes) + 1) ** 1.2)
    snapshot = LoadSnapshot.of_keys(
        hashes,
        costs,
        slots=slots,
        state_bytes=costs if rng.random() < 0.3 else rng.integers(0, 50, len(hashes)),
        track=int(rng.integers(0, len(hashes) + 1)) if rng.random() < 0.5 else None,
    )
    pins = np.unique(np.concatenate([hashes[rng.random(len(hashes)) < 0.4], rng.integers(-9, 9, 2)]))
    table = RoutingTable(rng.integers(0, channels, slots), channels).with_pins(
        pins, rng.integers(0, channels, len(pins))
    )
    if splits and channels > 1 and len(snapshot.key_hashes) and rng.random() < 0.3:
        split = snapshot.key_hashes[:1]
        kept = np.flatnonzero(table.pin_hashes != split[0])
        table = table.evolve(
            pin_hashes=table.pin_hashes[kept],
            pin_channels=table.pin_channels[kept],
            split_hashes=split,
            split_channels=Ragged.of([[1, 0]]),
        )
    if replicas:
        table = table.evolve(
            slot_backups=random_backups(rng, table.slot_channels, channels),
            pin_backups=random_backups(rng, table.pin_channels, channels),
        )
    return snapshot, table, float(rng.choice([0, 0.02, 0.1, 0.5])), bool(rng.random() < 0.7)


def random_backups(rng, homes, channels):
    rows = []
    for home in homes.tolist():
        others = rng.permutation([channel for channel in range(channels) if channel != home])
        rows.append(others[: rng.integers(0, 3)].tolist())
    return Ragged.of(rows)

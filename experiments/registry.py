"""Finds the experiments: every module of a paper's folder that has an ``EXPERIMENT``."""

from __future__ import annotations

import importlib
import pkgutil
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenkeel.errors import UnknownNameError
from experiments.experiment import Experiment

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PAPERS", "Entry", "find", "papers"]

PAPERS: dict[str, str] = {
    "elb-clb": "Q. Guo, Y. Zhou: Stateful Load Balancing for Parallel Stream Processing",
    "gedik": "B. Gedik: Partitioning Functions for Stateful Data Parallelism in Stream Processing",
    "dlb-cep": "N. Zacheilas et al.: Dynamic Load Balancing Techniques for Distributed CEP Systems",
    "pkg": "M. A. U. Nasir et al.: The Power of Both Choices",
    "ftlb": "J. Fang et al.: Integrating Workload Balancing and Fault Tolerance in Distributed Stream Processing",
}
"""Every paper by its name; its folder has the same name with ``_`` for ``-``."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An experiment and where it belongs."""

    paper: str
    name: str
    experiment: Experiment


def papers(wanted: str) -> list[str]:
    """Give the papers that are meant by a name, or by ``"all"``."""
    if wanted == "all":
        return list(PAPERS)
    name = wanted.lower().replace("_", "-")
    if name not in PAPERS:
        raise UnknownNameError("paper", wanted, [*PAPERS, "all"])
    return [name]


def find(paper: str = "all", only: str | None = None) -> list[Entry]:
    """Give the experiments of a paper, or of all, in order; or just one table or figure, as ``"fig4"`` or ``"Fig. 4"``.

    A figure's number names all modules that show a part of it: ``"fig5"`` finds ``fig5`` and ``fig5_engine``.
    """
    entries = [entry for name in papers(paper) for entry in sorted(_of(name), key=_in_order)]
    if only is None:
        return entries
    wanted = re.sub(r"[^a-z0-9]", "", only.lower()).replace("figure", "fig")
    chosen = [entry for entry in entries if re.fullmatch(rf"{wanted}([a-z]|_\w+)?", entry.name)]
    if not chosen:
        raise UnknownNameError(f"table or figure of {paper}", only, {entry.name for entry in entries})
    return chosen


def _of(paper: str) -> Iterator[Entry]:
    package = importlib.import_module(f"experiments.{paper.replace('-', '_')}")
    for module in pkgutil.iter_modules(package.__path__):
        found = getattr(importlib.import_module(f"{package.__name__}.{module.name}"), "EXPERIMENT", None)
        if isinstance(found, Experiment):
            yield Entry(paper, module.name, found)


def _in_order(entry: Entry) -> tuple[str, int, str]:
    kind, number, part = re.fullmatch(r"([a-z]+)(\d*)(.*)", entry.name).groups()  # type: ignore[union-attr]
    return kind, int(number or 0), part

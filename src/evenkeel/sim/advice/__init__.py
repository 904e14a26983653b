"""The advisor: which strategy, how many channels and what gain, by simulation of a stream one has."""

from evenkeel.sim.advice.advisor import Advice, Answer, advise
from evenkeel.sim.advice.candidates import CANDIDATES, Candidate
from evenkeel.sim.advice.checkpoints import Observed, is_checkpoint, observe_checkpoint
from evenkeel.sim.advice.outcome import Costs, Outcome
from evenkeel.sim.advice.profile import FOLDED, HotKey, Profile
from evenkeel.sim.advice.traces import KnownTrace, Survey
from evenkeel.sim.advice.watched import Watched

__all__ = [
    "CANDIDATES",
    "FOLDED",
    "Advice",
    "Answer",
    "Candidate",
    "Costs",
    "HotKey",
    "KnownTrace",
    "Observed",
    "Outcome",
    "Profile",
    "Survey",
    "Watched",
    "advise",
    "is_checkpoint",
    "observe_checkpoint",
]

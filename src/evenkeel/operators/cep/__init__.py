"""Complex event processing: rules over windows and patterns of each key's events."""

from evenkeel.operators.cep.detector import Detector
from evenkeel.operators.cep.language import parse_rule
from evenkeel.operators.cep.rules import Frame, PatternRule, Rule, WindowRule
from evenkeel.operators.cep.windows import WindowFunction

__all__ = ["Detector", "Frame", "PatternRule", "Rule", "WindowFunction", "WindowRule", "parse_rule"]

"""A streaming parallel decision tree: histograms that may be split over channels, and a tree that grows from them."""

from evenkeel.operators.decision_tree.growing import GrowOptions, grow
from evenkeel.operators.decision_tree.histograms import FeatureHistograms
from evenkeel.operators.decision_tree.leaves import assign_leaves, retire_leaves
from evenkeel.operators.decision_tree.tree import Tree

__all__ = ["FeatureHistograms", "GrowOptions", "Tree", "assign_leaves", "grow", "retire_leaves"]

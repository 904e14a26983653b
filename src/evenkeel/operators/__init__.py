"""Operators: keyed, stateful computations; columnar, or a plain Python function per key."""

from evenkeel.operators.aggregate import Aggregate
from evenkeel.operators.aggregates import ApproxDistinct, CountOf, First, Last, Max, Mean, Min, Sum, Variance
from evenkeel.operators.base import Clock, Operator, Update
from evenkeel.operators.cep import Detector, Frame, PatternRule, WindowFunction, WindowRule, parse_rule
from evenkeel.operators.codec import RowCodec
from evenkeel.operators.count import Count
from evenkeel.operators.count_windows import CountSliding, CountTumbling
from evenkeel.operators.decision_tree import FeatureHistograms, GrowOptions, Tree, assign_leaves, grow, retire_leaves
from evenkeel.operators.feature_rows import category_rows, count_rows, word_rows
from evenkeel.operators.first_story import MaxSimilarity, first_story, lsh_keys
from evenkeel.operators.groups import NEVER, NO_WATERMARK, Groups, Moment
from evenkeel.operators.heavy_hitters import HeavyHitters, item_buckets
from evenkeel.operators.mergeable import Mergeable, fold
from evenkeel.operators.naive_bayes import FeatureClassCounts, NaiveBayesPredict
from evenkeel.operators.per_key import PerKey
from evenkeel.operators.reorder import Reordered
from evenkeel.operators.sessions import Sessions
from evenkeel.operators.top_k import TopK
from evenkeel.operators.window_join import WindowJoin
from evenkeel.operators.windows import Sliding, Tumbling

__all__ = [
    "NEVER",
    "NO_WATERMARK",
    "Aggregate",
    "ApproxDistinct",
    "Clock",
    "Count",
    "CountOf",
    "CountSliding",
    "CountTumbling",
    "Detector",
    "FeatureClassCounts",
    "FeatureHistograms",
    "First",
    "Frame",
    "Groups",
    "GrowOptions",
    "HeavyHitters",
    "Last",
    "Max",
    "MaxSimilarity",
    "Mean",
    "Mergeable",
    "Min",
    "Moment",
    "NaiveBayesPredict",
    "Operator",
    "PatternRule",
    "PerKey",
    "Reordered",
    "RowCodec",
    "Sessions",
    "Sliding",
    "Sum",
    "TopK",
    "Tree",
    "Tumbling",
    "Update",
    "Variance",
    "WindowFunction",
    "WindowJoin",
    "WindowRule",
    "assign_leaves",
    "category_rows",
    "count_rows",
    "first_story",
    "fold",
    "grow",
    "item_buckets",
    "lsh_keys",
    "parse_rule",
    "retire_leaves",
    "word_rows",
]

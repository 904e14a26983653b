"""Small summaries of long streams: which keys are frequent, and how values are spread.

Keys are 64-bit integers, as :mod:`evenkeel.hashing` makes them. Every sketch takes whole arrays by
``observe``, gives a new sketch by ``merge``, and goes through ``to_arrow`` and ``from_arrow`` unchanged.
"""

from evenkeel.sketches.heavy_keys import HeavyKeys
from evenkeel.sketches.lossy_counting import LossyCounting
from evenkeel.sketches.sliding_lossy_counting import SlidingLossyCounting
from evenkeel.sketches.space_saving import SpaceSaving
from evenkeel.sketches.streaming_histogram import StreamingHistogram

__all__ = [
    "HeavyKeys",
    "LossyCounting",
    "SlidingLossyCounting",
    "SpaceSaving",
    "StreamingHistogram",
]

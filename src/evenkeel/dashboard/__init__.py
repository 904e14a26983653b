"""The live view of a query, read from its checkpoint: in the terminal, as a page, and as metrics.

Nothing here talks to Spark or to the query. All that is shown was committed; a view can therefore be opened while the
query runs, after it has ended, or on a copy of its checkpoint, and costs the query nothing.
"""

from evenkeel.dashboard.reader import CheckpointReader
from evenkeel.dashboard.state import state_of

__all__ = ["CheckpointReader", "state_of"]

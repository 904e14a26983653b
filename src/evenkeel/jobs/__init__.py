"""Jobs: a whole query written down in a TOML file, read and checked without Spark."""

from evenkeel.jobs.columns import check_columns
from evenkeel.jobs.document import Document
from evenkeel.jobs.job import Job, Source, Stage, read_job
from evenkeel.jobs.progress import Progress, progress_of

__all__ = ["Document", "Job", "Progress", "Source", "Stage", "check_columns", "progress_of", "read_job"]

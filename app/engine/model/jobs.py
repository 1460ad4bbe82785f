"""The jobs of upkeep: kinds in the order in which they are done, and what becomes of one."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

LONGEST_LEASE_MS: Final = 3_600_000
"""For how long a job holds its table at most, unless it says again that it is at work."""

JOB_ID: Final = re.compile(r"[0-9a-f]{32}")
"""The id of one job that was begun."""


class Job(StrEnum):
    """A kind of work that keeps a table healthy.

    The order is that of the work: each job leaves less to those after it, and orphans come last.
    """

    REWRITE_DATA_FILES = "rewrite-data-files"
    REWRITE_POSITION_DELETES = "rewrite-position-deletes"
    REMOVE_DANGLING_DELETES = "remove-dangling-deletes"
    REWRITE_MANIFESTS = "rewrite-manifests"
    PARTITION_STATISTICS = "partition-statistics"
    TABLE_STATISTICS = "table-statistics"
    EXPIRE_SNAPSHOTS = "expire-snapshots"
    REMOVE_ORPHAN_FILES = "remove-orphan-files"

    @property
    def does(self) -> str:
        """What it does, in a few words."""
        return _DOES[self]

    @property
    def needs_spark(self) -> bool:
        """Whether it reads data, so that it runs on Spark and not in the catalog."""
        return self in _ON_SPARK

    @property
    def is_recommended(self) -> bool:
        """Whether `recommended` turns it on."""
        return self is not Job.TABLE_STATISTICS  # It reads the whole table, and few engines use the result.


_DOES = {
    Job.REWRITE_DATA_FILES: "small data files become large ones, and rows that are deleted go",
    Job.REWRITE_POSITION_DELETES: "small position delete files become large ones",
    Job.REMOVE_DANGLING_DELETES: "delete files that apply to no data file any more go",
    Job.REWRITE_MANIFESTS: "small or badly clustered manifests become large ones, ordered by partition",
    Job.PARTITION_STATISTICS: "sizes and counts of each partition are written down",
    Job.TABLE_STATISTICS: "distinct values of each column are counted",
    Job.EXPIRE_SNAPSHOTS: "old snapshots go, with the files that only they reach",
    Job.REMOVE_ORPHAN_FILES: "files that nothing reaches are found, and deleted later",
}
_ON_SPARK = frozenset({Job.REWRITE_DATA_FILES, Job.REWRITE_POSITION_DELETES, Job.TABLE_STATISTICS})


class JobState(StrEnum):
    """What has become of a job."""

    RUNNING = "running"
    DONE = "done"
    NOTHING = "nothing"
    """There was nothing to do."""
    LOST = "lost"
    """Another commit changed the same files; nothing of it landed, or a part."""
    FAILED = "failed"
    UNKNOWN = "unknown"
    """Its last commit may have landed or not."""
    DAMAGED = "damaged"
    """The table names a file that is not there: nothing more is done to it."""
    REFUSED = "refused"
    """Its options are not accepted, or the table does not allow it."""
    UNSOUND = "unsound"
    """It ended, but rows or totals are not what they were."""
    ABANDONED = "abandoned"
    """Its lease ran out: the maintainer was killed, or lost its connection."""


SUCCEEDED: Final = frozenset({JobState.DONE, JobState.NOTHING})

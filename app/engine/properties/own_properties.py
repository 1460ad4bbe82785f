"""Icetower's own properties of tables, which namespaces and warehouses may have as well."""

from __future__ import annotations

from typing import Final

from app.engine.model.jobs import Job
from app.engine.model.settings.guard_settings import GUARD, GUARD_IGNORE, FindingKind, GuardMode
from app.engine.model.settings.rebase_settings import REBASE, REBASE_EXACTLY_ONCE, RebaseMode
from app.engine.properties.known import Group, KnownProperty, Origin
from app.engine.properties.value_kinds import (
    AnyText,
    DailyWindows,
    Fraction,
    ListOf,
    OneOf,
    ValueKind,
    WholeNumber,
    bytes_from,
    milliseconds,
)

_GUARDED = (Origin.WAREHOUSE_OVERRIDE, Origin.TABLE, Origin.WAREHOUSE)
"""Writers may set properties of a table; an override of its warehouse keeps the guard on all the same."""
_OF_WAREHOUSE = (Origin.WAREHOUSE_OVERRIDE, Origin.WAREHOUSE)
NEAREST = (Origin.TABLE, Origin.NAMESPACE, Origin.WAREHOUSE_OVERRIDE, Origin.WAREHOUSE)

PROTECTED: Final = "icetower.protected"
UNDROP_KEEP: Final = "icetower.undrop.keep-ms"
UNDROP_PURGE_WAITS: Final = "icetower.undrop.purge-waits"
AS_OF_METADATA_KEEP: Final = "icetower.as-of.metadata-keep-ms"
TABLE_LOCATIONS: Final = "icetower.table-locations"
UNIQUE, PLAIN = "unique", "plain"
"""Values of `TABLE_LOCATIONS`."""
MOVED_TO: Final = "icetower.moved-to"
"""Set by an import at the source, to say where a table went; it has no meaning to the server itself."""
UPKEEP: Final = "icetower.maintenance"
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
MOST_KEPT_MS = 36_500 * DAY_MS
_TRUE_FALSE = OneOf(("true", "false"))


def of_upkeep(end: str) -> str:
    """Return the name of a property of upkeep."""
    return f"{UPKEEP}.{end}"


_OWN = (
    KnownProperty(
        GUARD,
        OneOf(tuple(GuardMode)),
        GuardMode.WARN,
        "What becomes of a commit whose claims its manifests do not bear out.",
        Group.ICETOWER,
        _GUARDED,
    ),
    KnownProperty(
        GUARD_IGNORE,
        ListOf(tuple(sorted(FindingKind))),
        "",
        "Findings of the guard that are ignored.",
        Group.ICETOWER,
        _GUARDED,
    ),
    KnownProperty(
        REBASE,
        OneOf(tuple(RebaseMode)),
        RebaseMode.OFF,
        "Which commits that lost a race are put on the new head by the server.",
        Group.ICETOWER,
        NEAREST,
    ),
    KnownProperty(
        REBASE_EXACTLY_ONCE,
        OneOf(("allow", "refuse")),
        "refuse",
        "Whether that may be done with commits of exactly-once writers.",
        Group.ICETOWER,
        NEAREST,
    ),
    KnownProperty(
        PROTECTED,
        _TRUE_FALSE,
        "false",
        "Whether drops, purges and renames are refused.",
        Group.ICETOWER,
        NEAREST,
    ),
    KnownProperty(
        UNDROP_KEEP,
        milliseconds(MOST_KEPT_MS),
        str(7 * DAY_MS),
        "How long what is dropped can come back; 0 if it cannot.",
        Group.ICETOWER,
        _OF_WAREHOUSE,
    ),
    KnownProperty(
        UNDROP_PURGE_WAITS,
        _TRUE_FALSE,
        "false",
        "Whether a table that is dropped with purge can come back, too: its files are deleted later.",
        Group.ICETOWER,
        _OF_WAREHOUSE,
    ),
    KnownProperty(
        TABLE_LOCATIONS,
        OneOf((UNIQUE, PLAIN), exactly=True),
        PLAIN,
        "Whether new tables lie at `<name>` where that is free, or all at `<name>-<piece of the uuid>`.",
        Group.ICETOWER,
        _OF_WAREHOUSE,
    ),
    KnownProperty(
        AS_OF_METADATA_KEEP,
        milliseconds(MOST_KEPT_MS),
        "0",
        "How long metadata files stay after `write.metadata.delete-after-commit.enabled` has let them go.",
        Group.ICETOWER,
        NEAREST,
    ),
)


def _upkeep(*rows: tuple[str, ValueKind, str | None, str]) -> tuple[KnownProperty, ...]:
    return tuple(
        KnownProperty(of_upkeep(end), kind, default, meaning, Group.UPKEEP, NEAREST)
        for end, kind, default, meaning in rows
    )


_COUNT = WholeNumber(0)
_ON_OFF = OneOf(("on", "off"))

_UPKEEP = (
    KnownProperty(
        UPKEEP,
        OneOf(("off", "recommended")),
        "off",
        "Which jobs `icetower maintain` does: none, or all but statistics of tables.",
        Group.UPKEEP,
        NEAREST,
    ),
    *_upkeep(
        *((job.value, _ON_OFF, None, f"Whether it does this job: {job.does}.") for job in Job),
        ("windows", DailyWindows(), "", "Times of day at which jobs may begin, in UTC; always if empty."),
        (
            "daily-bytes",
            bytes_from(0),
            None,
            "Most bytes that jobs may rewrite in 24 hours; no limit if not set.",
        ),
        ("wait-after-success-ms", milliseconds(), str(HOUR_MS), "Pause of a job after it has succeeded."),
        (
            "wait-after-failure-ms",
            milliseconds(),
            str(HOUR_MS),
            "Pause of a job after it has failed; doubled with each failure in a row, up to a day.",
        ),
        ("rewrite-data-files.min-files", _COUNT, "20", "Data files that a rewrite must save to be worth it."),
        (
            "rewrite-data-files.delete-files-ratio",
            Fraction(with_bounds=True),
            "0.5",
            "Delete files for each data file that make a rewrite worth it.",
        ),
        (
            "rewrite-data-files.deleted-rows-ratio",
            Fraction(with_bounds=True),
            "0.1",
            "Rows of data files, deleted by position, of all rows, that make a rewrite worth it.",
        ),
        (
            "rewrite-data-files.strategy",
            OneOf(("binpack", "sort")),
            "binpack",
            "How data files are rewritten.",
        ),
        (
            "rewrite-data-files.sort-order",
            AnyText("order"),
            None,
            "Order of `sort`, as `zorder(a, b)`; the table's if not set.",
        ),
        (
            "rewrite-data-files.where",
            AnyText("filter"),
            None,
            "Only files that may match this filter are rewritten.",
        ),
        (
            "rewrite-data-files.cold-after-ms",
            milliseconds(),
            str(HOUR_MS),
            "Where rows were deleted or changed so lately, partitions that were written so lately are left out.",
        ),
        (
            "rewrite-data-files.max-group-bytes",
            bytes_from(1),
            None,
            "Most bytes of one group; 100 GiB, or 2 GiB where rows are often changed, if not set.",
        ),
        (
            "rewrite-position-deletes.min-files",
            _COUNT,
            "10",
            "Position delete files that make a rewrite worth it.",
        ),
        (
            "remove-dangling-deletes.min-files",
            _COUNT,
            "1",
            "Dangling delete files that make it worth a commit.",
        ),
        (
            "rewrite-manifests.min-manifests",
            _COUNT,
            "10",
            "Manifests that a rewrite must save to be worth it.",
        ),
        (
            "rewrite-manifests.overlap",
            _COUNT,
            "4",
            "Manifests to be read for one partition value that make a rewrite worth it.",
        ),
        (
            "rewrite-manifests.cluster-by",
            AnyText("field"),
            None,
            "Partition field, or column of one, whose values lead the order; all fields if not set.",
        ),
        ("expire-snapshots.min-snapshots", _COUNT, "20", "Snapshots that must go to be worth it."),
        (
            "partition-statistics.min-snapshots",
            _COUNT,
            "10",
            "Snapshots since the last ones that make new ones worth it.",
        ),
        (
            "remove-orphan-files.older-than-ms",
            milliseconds(),
            str(3 * DAY_MS),
            "Younger files are left alone.",
        ),
        ("remove-orphan-files.wait-ms", milliseconds(), str(7 * DAY_MS), "Time between two searches."),
        ("table-statistics.wait-ms", milliseconds(), str(7 * DAY_MS), "Time between two computations."),
    ),
)

OWN_PROPERTIES = (*_OWN, *_UPKEEP)
OWN_PREFIX: Final = "icetower."
"""No one else's property begins so: what is not one of these names is a mistake."""
OWN_NAMES = (*(known.name for known in OWN_PROPERTIES), MOVED_TO)

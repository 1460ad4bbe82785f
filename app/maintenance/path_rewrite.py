"""Rewriting paths: metadata for another place, and a list of what to copy there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.engine.model.settings.properties import ENCRYPTION_KEY_ID
from app.fileio.locations import flaw_of
from app.fileio.network.network_stores import SETTINGS
from app.fileio.schemes import files_for
from app.maintenance.spark.mounted_catalogs import mounted
from app.maintenance.spark.procedures import JobRefused
from app.maintenance.spark.spark_failures import SparkFailure, attempted
from app.maintenance.spark.spark_sessions import SqlSession
from app.maintenance.spark.spark_sql import ProcedureCall
from app.maintenance.staged_copies import PathChange, StagedCopy, check_copy

_FIRST_SOUND: Final = (1, 12)
"""Iceberg before it mixes up position deletes of one manifest (15155) and leaves their old sizes (16905)."""


@dataclass(frozen=True, slots=True)
class RewrittenPaths:
    """A copy of a table's metadata that is staged, and what was found in it."""

    metadata_location: Location
    """Where the metadata file will be after all files of the list are copied."""
    copy: StagedCopy
    iceberg_version: str


def plan(change: PathChange, staging: Location | None, properties: Mapping[str, str]) -> ProcedureCall:
    """Return the call.

    Raises:
        JobRefused: a prefix is no location, both are the same, or the table is encrypted.
    """
    for prefix in (change.source, change.target):
        flaw = flaw_of(prefix)
        if flaw is not None:
            raise JobRefused(f"{prefix} cannot be a prefix of locations: {flaw}")
    if change.source == change.target:
        raise JobRefused(f"Both prefixes are {change.source}: nothing would be rewritten")
    if ENCRYPTION_KEY_ID in properties:
        raise JobRefused("The table is encrypted: what is staged could not be verified")
    places = {} if staging is None else {"staging_location": staging}
    prefixes = {"source_prefix": change.source, "target_prefix": change.target}
    return ProcedureCall("rewrite_table_path", {**prefixes, **places})


def check_version(version: str, delete_files: int) -> None:
    """Make sure that this version of Iceberg does no harm to a table.

    Raises:
        JobRefused: it damages delete files, and the table has some, in any of its snapshots.
    """
    numbers = version.split(".")[:2]
    is_old = all(number.isdecimal() for number in numbers) and tuple(map(int, numbers)) < _FIRST_SOUND
    if delete_files and is_old:
        raise JobRefused(
            f"Iceberg {version} mixes up delete files when it rewrites paths (apache/iceberg 15155, 16905): use 1.12,"
            " or rewrite data files first, and expire the snapshots that have delete files"
        )


def rewrite_paths(
    catalog: RemoteCatalog,
    open_session: Callable[[], SqlSession],
    table: TableIdentifier,
    change: PathChange,
    *,
    staging: Location | None = None,
    copied: Sequence[Location] = (),
    spark_catalog: Mapping[str, str],
) -> RewrittenPaths | SparkFailure:
    """Stage a copy of a table's metadata for another place, and verify it. The table is not changed.

    Args:
        catalog: the warehouse.
        open_session: returns a session of Spark.
        table: the table.
        change: which prefix becomes which.
        staging: where the copy is written; a new folder beside the metadata if None.
        copied: lists of files of earlier runs, all of which are copied: only what came since is listed.
        spark_catalog: properties of Iceberg's REST catalog in Spark; those of storage are used for verifying, too.

    Raises:
        JobRefused: it would do harm, or nothing.
        CallFailed: the server does not answer, or the table is not there.
        SparkMissing: Spark does not start here.
        IcetowerError: the staged files cannot be read.
    """
    loaded = catalog.tables.load(table)
    call = plan(change, staging, loaded.metadata.get("properties", {}))
    location = Location(loaded.metadata_location or "")
    with mounted(open_session(), table, uuid4().hex, spark_catalog) as seen:
        version = f"{seen.function('iceberg_version')}() AS version"
        counted = f"SELECT count(*), {version} FROM {seen.metadata_table('all_delete_files')}"
        facts = attempted(lambda: seen.one(counted))
        if isinstance(facts, SparkFailure):
            return facts
        delete_files, iceberg = facts
        check_version(iceberg, delete_files)
        answers = attempted(lambda: seen.call(call))
        if isinstance(answers, SparkFailure):
            seen.is_lost = answers.is_connection_lost
            return answers
    known = {**catalog.properties, **loaded.config, **spark_catalog}
    files = files_for({name: text for name, text in known.items() if name in SETTINGS})
    file_list = Location(answers[0]["file_list_location"])
    copy = check_copy(files, change, location, file_list, copied)
    return RewrittenPaths(Location(change.moved(location)), copy, iceberg)

"""Steps that keep a table fast and small: its health, its upkeep, and forgetting old snapshots."""

from __future__ import annotations

import json
from typing import Any
from urllib.request import urlopen

from examples.flights.pipeline import Pipeline


def look_at_health(pipeline: Pipeline) -> None:
    """Ask the catalog how the table is: its files, its manifests, and what should be done about them."""
    health = _health(pipeline)
    _tell(pipeline, health)
    for finding in health["findings"]:
        pipeline.narrator.say(f"{finding['severity']}: {finding['message']}")
    pipeline.narrator.check(
        "data files, Spark counts as many", health["files"]["data-files"], pipeline.files("nyc.flights")
    )


def maintain(pipeline: Pipeline) -> None:
    """Let a policy say what the table needs, and `icetower maintain` do it, on a Spark of its own."""
    rows = pipeline.rows("nyc.flights")
    month = "date_trunc('month', time_hour)"
    partitions = pipeline.number(f"SELECT count(DISTINCT {month}, origin) FROM nyc.flights")
    pipeline.sql(
        """
        ALTER TABLE nyc.flights SET TBLPROPERTIES (
            'icetower.maintenance' = 'recommended',
            'icetower.maintenance.rewrite-manifests.min-manifests' = '2')
        """
    )
    pipeline.icetower("maintain", "nyc.flights", "--spark", "local[2]")
    pipeline.spark.sql("REFRESH TABLE nyc.flights")
    after = _health(pipeline)
    _tell(pipeline, after)
    pipeline.narrator.check("data files, one a month and airport", after["files"]["data-files"], partitions)
    pipeline.narrator.check("rows in nyc.flights", pipeline.rows("nyc.flights"), rows)
    pipeline.narrator.check("delete files that are left", _delete_files(after), 0)


def _health(pipeline: Pipeline) -> dict[str, Any]:
    with urlopen(f"{pipeline.uri}/v1/namespaces/nyc/tables/flights/health") as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def _tell(pipeline: Pipeline, health: dict[str, Any]) -> None:
    files, manifests = health["files"], health["manifests"]
    pipeline.narrator.say(
        f"{files['data-files']} data files, {files['small-files']} of them small, {_delete_files(health)} delete files,"
        f" {manifests['data-manifests']} data manifests: {health['severity']}"
    )


def _delete_files(health: dict[str, Any]) -> int:
    kinds = ("position-delete-files", "equality-delete-files", "deletion-vectors")
    return sum(health["files"][kind] for kind in kinds)


def expire_snapshots(pipeline: Pipeline) -> None:
    """Forget the snapshots that nothing names, and delete the files that only they needed."""
    before = pipeline.rows("nyc.flights.snapshots")
    answer = pipeline.sql(
        """
        CALL system.expire_snapshots(
            table => 'nyc.flights', older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)
        """
    )[0]
    pipeline.narrator.say(
        f"of {before} snapshots, the current and the tagged one stay;"
        f"\n       deleted {answer.deleted_data_files_count} data files,"
        f" {answer.deleted_position_delete_files_count} delete files,"
        f" {answer.deleted_manifest_files_count} manifests,"
        f" {answer.deleted_manifest_lists_count} manifest lists"
    )
    pipeline.narrator.check("snapshots", pipeline.rows("nyc.flights.snapshots"), 2)

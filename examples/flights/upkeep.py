"""Steps that keep a table fast and small: compaction, and forgetting old snapshots."""

from __future__ import annotations

from examples.flights.pipeline import Pipeline


def compact(pipeline: Pipeline) -> None:
    """Rewrite everything into one file a month and airport, and apply what delete files say."""
    rows, files = pipeline.rows("nyc.flights"), pipeline.files("nyc.flights", "files")
    month = "date_trunc('month', time_hour)"
    partitions = pipeline.number(f"SELECT count(DISTINCT {month}, origin) FROM nyc.flights")
    answer = pipeline.sql(
        """
        CALL system.rewrite_data_files(
            table => 'nyc.flights',
            options => map('rewrite-all', 'true', 'remove-dangling-deletes', 'true'))
        """
    )
    rewritten, added = answer[0].rewritten_data_files_count, answer[0].added_data_files_count
    pipeline.narrator.say(f"{rewritten} data files became {added}")
    pipeline.sql("CALL system.rewrite_manifests('nyc.flights')")
    pipeline.narrator.check("data files, one a month and airport", pipeline.files("nyc.flights"), partitions)
    pipeline.narrator.check("rows in nyc.flights", pipeline.rows("nyc.flights"), rows)
    pipeline.narrator.say(f"{files} files before, {pipeline.files('nyc.flights', 'files')} after")


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

"""Upkeep of tables that moves no data: Icetower's own, beyond the protocol."""

from __future__ import annotations

from app.client.answers import DanglingDeletesAnswer, ManifestRewriteAnswer, PartitionStatisticsAnswer
from app.client.http.http_calls import CatalogCalls
from app.client.request_parts import given
from app.engine.model.identifiers import TableIdentifier


class UpkeepCalls(CatalogCalls):
    """Upkeep of one warehouse's tables."""

    def rewrite_manifests(
        self,
        identifier: TableIdentifier,
        *,
        dry_run: bool = False,
        spec_id: int | None = None,
        cluster_by: str | None = None,
        target_size_bytes: int | None = None,
        branch: str | None = None,
        rewrite_all: bool = False,
        max_bytes: int | None = None,
    ) -> ManifestRewriteAnswer:
        """Rewrite manifests in the order of their partitions.

        Args:
            identifier: the table.
            dry_run: change nothing, only return what would be rewritten.
            spec_id: only manifests of this partition spec.
            cluster_by: the partition field or source column whose values lead the order.
            target_size_bytes: the size of new manifests, in place of the table's property.
            branch: which branch; main unless given.
            rewrite_all: rewrite manifests that are not worth it, too.
            max_bytes: rewrite no more bytes of manifests, and leave the rest.
        """
        body = given(
            {
                "dry-run": dry_run,
                "spec-id": spec_id,
                "cluster-by": cluster_by,
                "target-size-bytes": target_size_bytes,
                "branch": branch,
                "all": rewrite_all or None,
                "max-bytes": max_bytes,
            }
        )
        path = self._below_table(identifier, "rewrite-manifests")
        return self._calls.read(ManifestRewriteAnswer, "POST", path, body=body)

    def remove_dangling_deletes(
        self, identifier: TableIdentifier, *, dry_run: bool = False, branch: str | None = None
    ) -> DanglingDeletesAnswer:
        """Remove delete files that apply to no live data file; a dry run only returns how many."""
        body = given({"dry-run": dry_run, "branch": branch})
        path = self._below_table(identifier, "remove-dangling-deletes")
        return self._calls.read(DanglingDeletesAnswer, "POST", path, body=body)

    def write_partition_statistics(
        self, identifier: TableIdentifier, *, dry_run: bool = False, snapshot_id: int | None = None
    ) -> PartitionStatisticsAnswer:
        """Write the statistics of a snapshot's partitions; of the current one unless given."""
        body = given({"dry-run": dry_run, "snapshot-id": snapshot_id})
        path = self._below_table(identifier, "partition-statistics")
        return self._calls.read(PartitionStatisticsAnswer, "POST", path, body=body)

"""Upkeep of a table that moves no data: an extension."""

from __future__ import annotations

import orjson
from fastapi import APIRouter
from starlette.responses import Response

from app.api.bodies.table.upkeep import DanglingDeletesBody, ManifestRewriteBody, PartitionStatisticsBody
from app.api.dependencies import Visited
from app.api.idempotency import run_once
from app.api.responses.answers import json_answer
from app.catalog.context.catalog import Catalog
from app.catalog.upkeep import dangling_deletes, manifest_rewrites, partition_statistics

router = APIRouter()


@router.post("/v1/namespaces/{namespace}/tables/{table}/rewrite-manifests")
def rewrite_manifests(visit: Visited) -> Response:
    """Rewrite manifests, or say which would be."""
    body = visit.extension_body(ManifestRewriteBody)
    request = body.request()
    if body.dry_run:
        # Nothing is changed, so there is nothing to remember under an Idempotency-Key.
        would, location = manifest_rewrites.preview_manifest_rewrite(visit.catalog, visit.table, request)
        return json_answer(orjson.dumps(would.facts(location, dry_run=True)))

    def mutate(catalog: Catalog) -> Response:
        done, location = manifest_rewrites.rewrite_manifests(catalog, visit.table, request)
        return json_answer(orjson.dumps(done.facts(location, dry_run=False)))

    return run_once(visit, mutate, lambda recorded: json_answer(recorded.encode()))


@router.post("/v1/namespaces/{namespace}/tables/{table}/remove-dangling-deletes")
def remove_dangling_deletes(visit: Visited) -> Response:
    """Remove delete files that apply to nothing any more, or say which would go."""
    body = visit.extension_body(DanglingDeletesBody)
    if body.dry_run:
        would, location = dangling_deletes.preview_dangling_deletes(visit.catalog, visit.table, body.branch)
        return json_answer(orjson.dumps(would.facts(location, dry_run=True)))

    def mutate(catalog: Catalog) -> Response:
        done, location = dangling_deletes.remove_dangling_deletes(catalog, visit.table, body.branch)
        return json_answer(orjson.dumps(done.facts(location, dry_run=False)))

    return run_once(visit, mutate, lambda recorded: json_answer(recorded.encode()))


@router.post("/v1/namespaces/{namespace}/tables/{table}/partition-statistics")
def write_partition_statistics(visit: Visited) -> Response:
    """Write the statistics of a snapshot's partitions, or say of how many."""
    body = visit.extension_body(PartitionStatisticsBody)
    wanted = body.snapshot_id
    if body.dry_run:
        would, location = partition_statistics.preview_partition_statistics(
            visit.catalog, visit.table, wanted
        )
        return json_answer(orjson.dumps(would.facts(location, dry_run=True)))

    def mutate(catalog: Catalog) -> Response:
        done, location = partition_statistics.write_statistics_of_partitions(catalog, visit.table, wanted)
        return json_answer(orjson.dumps(done.facts(location, dry_run=False)))

    return run_once(visit, mutate, lambda recorded: json_answer(recorded.encode()))

"""Dry runs of commits that lost a race."""

from __future__ import annotations

import pytest

from app.catalog.commits.dry_runs import dry_run_commit
from app.catalog.commits.rebases import RebaseRequest
from app.catalog.context.catalog import Catalog
from app.engine.model.settings.rebase_settings import RebaseMode
from app.errors import RequirementFailed
from app.formats.manifests.source import ManifestCache
from tests.builders.catalogs import with_server
from tests.builders.racing_writers import commit, rebasing_table, sent, writer
from tests.builders.tables import DEPARTURES
from tests.unit.catalog.commits.interference import files_in


@pytest.mark.parametrize("cache_bytes", [64 << 20, 0])
def test_dry_run_says_that_it_would_be_rebased_and_writes_nothing(catalog: Catalog, cache_bytes: int) -> None:
    rebasing_table(catalog)
    catalog = with_server(catalog, manifest_cache=ManifestCache(cache_bytes))
    late, rival = writer(catalog).append(["late"]), writer(catalog).append(["rival"])
    commit(catalog, rival)
    files, wanted = files_in(catalog), sent(late)

    verdict = dry_run_commit(catalog, DEPARTURES, wanted.requirements, wanted.updates)

    assert verdict.error is None
    assert [item.result for item in verdict.requirements] == ["passed", "rebased"]
    assert [rebase.onto for rebase in verdict.rebases] == [rival.snapshot.snapshot_id]
    assert not verdict.findings
    assert files_in(catalog) == files
    assert commit(catalog, late).rebased


def test_dry_run_says_why_it_would_not_be_rebased(catalog: Catalog) -> None:
    rebasing_table(catalog)
    commit(catalog, writer(catalog).append(["first"]))
    late = writer(catalog).append(["late"], merge=True)
    commit(catalog, writer(catalog).append(["rival"]))
    wanted = sent(late)

    refused = dry_run_commit(catalog, DEPARTURES, wanted.requirements, wanted.updates)
    off = dry_run_commit(
        catalog, DEPARTURES, wanted.requirements, wanted.updates, RebaseRequest(RebaseMode.OFF)
    )

    for verdict, reason in ((refused, "manifests"), (off, None)):
        assert isinstance(verdict.error, RequirementFailed)
        assert [item.result for item in verdict.requirements] == ["passed", "failed"]
        assert not verdict.rebases
        assert (verdict.error.not_rebased.reason if verdict.error.not_rebased else None) == reason

"""What is wanted of a rewrite of manifests means one order of a table's partitions."""

from __future__ import annotations

from app.engine.manifest_rewrite.wishes import RewriteRules, RewriteWish
from app.engine.model.ids import SpecId
from tests.unit.engine.documents import part, spec_json, table


def test_fields_that_are_void_lead_nothing_in_whatever_case_that_is_written() -> None:
    metadata = table(partition_specs=[spec_json(part("gone", 1, 1000, "VOID"), part("category", 2, 1001))])

    assert RewriteRules.of(RewriteWish(), metadata).leading == {SpecId(0): (1,)}

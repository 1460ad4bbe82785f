from __future__ import annotations

import pytest

from app.catalog.context.catalog import Catalog
from app.catalog.context.places.table_places import places_of
from app.engine.model.ids import Location
from app.engine.model.table_metadata import TableMetadata
from tests.builders.catalogs import with_rules, with_warehouse
from tests.builders.histories import history


def table_at(location: str, **properties: str) -> TableMetadata:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return history([], {}, named).replace(location=Location(location))


@pytest.mark.parametrize(
    ("table", "inside", "outside"),
    [
        ("s3://b/t", ["s3://b/t/data/a", "s3a://b/t/data/a", "s3://b/t/x?y#z"], ["s3://b/t2/a", "s3://c/t/a"]),
        ("s3a://b/t", ["s3://b/t/data/a"], ["s3a://b/t/../u/a", "s3://b/t/%2e%2E/u"]),
        ("file:///w/t", ["file:/w/t/a", "/w/t/a", "file:///w/t/a b%20c"], ["file:/w/a", "/w/t/./../a"]),
        ("/w/t", ["file:///w/t/a", "file:/w//t/a"], ["hdfs:///w/t/a"]),
        ("abfss://c@h/t", ["abfs://c@h/t/a"], ["abfss://c@other/t/a"]),
        ("gs://b/t", ["gs://b/t/.hidden/a", "gs://b/t/a..b"], ["gs://b/t/..", "gs://b/T/a"]),
    ],
)  # fmt: skip
def test_what_lies_below_a_table(catalog: Catalog, table: str, inside: list[str], outside: list[str]) -> None:
    is_inside = places_of(catalog, None, table_at(table))

    assert [location for location in inside if not is_inside(location)] == []
    assert [location for location in outside if is_inside(location)] == []


def test_places_that_properties_name_before_or_after_the_commit(catalog: Catalog) -> None:
    before = table_at("memory://wh/old", write_data_path="memory://wh/data-of-old")
    after = table_at("memory://wh/t", write_metadata_path="memory://wh/meta/")

    is_inside = places_of(catalog, before, after)

    for place in ("old", "data-of-old", "t", "meta"):
        assert is_inside(f"memory://wh/{place}/x")
    assert not is_inside("memory://wh/x")
    assert not is_inside("memory://wh/meta2/x")


def test_roots_beside_the_warehouse_s_own(catalog: Catalog) -> None:
    ruled = with_rules(catalog, allowed_locations=("memory://landing",))
    stored = with_warehouse(ruled, storage={"allowed-locations": "memory://one, memory://two/x"})

    is_inside = places_of(stored, None, table_at("memory://wh/t"))

    for location in ("memory://landing/a", "memory://one/a", "memory://two/x/a"):
        assert is_inside(location)
    assert not is_inside("memory://two/a")


def test_a_writer_s_own_location_provider_may_put_files_anywhere(catalog: Catalog) -> None:
    table = table_at("memory://wh/t").replace(
        properties={"write.location-provider.impl": "com.acme.Anywhere"}
    )

    assert places_of(catalog, None, table)("s3://anywhere/a")

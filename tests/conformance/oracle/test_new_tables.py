"""The first metadata of a table that one request creates: fresh ids, defaults, stripped properties."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.oracle import engine
from tests.conformance.oracle.columns import orders, schemas, specs
from tests.conformance.oracle.creation_differences import CREATING
from tests.conformance.oracle.differences import Case
from tests.conformance.oracle.outcomes import Accepted
from tests.conformance.oracle.reference import Reference
from tests.conformance.oracle.table_documents import UUID

pytestmark = pytest.mark.spark

PROPERTIES: tuple[dict[str, str], ...] = (
    {},
    {"format-version": "1"},
    {"format-version": "2", "owner": "me"},
    {"format-version": "3"},
    {"format-version": "3", "encryption.key-id": "k"},
    {"format-version": "0"},
    {"format-version": "4"},
    {"format-version": "two"},
    {"encryption.key-id": "k"},
    {"uuid": UUID, "current-schema": "x", "snapshot-count": "0", "default-sort-order": "x"},
    {"write.parquet.compression-codec": "gzip"},
    {"write.metadata.metrics.column.id": "full"},
    {"write.metadata.metrics.column.point.x": "counts"},
    {"commit.retry.num-retries": "4"},
    {"commit.retry.num-retries": "-1"},
    {"commit.retry.max-wait-ms": "soon"},
)
LOCATIONS = ("s3://bucket/db/t", "s3://bucket/db/t/", "file:/tmp/t//", "/tmp/größe t")


@given(data=st.data())
def test_a_create_request_makes_the_same_table(reference: Reference, data: st.DataObject) -> None:
    properties = data.draw(st.sampled_from(PROPERTIES), "properties")
    version = {"1": 1, "3": 3}.get(properties.get("format-version", ""), 2)
    first_id = data.draw(st.sampled_from((0, 1, 1, 1, 30)), "first id")
    schema = data.draw(schemas(version=version, first_id=first_id), "schema")
    spec = data.draw(st.none() | specs(schema), "spec")
    order = data.draw(st.none() | orders(schema), "order")
    location = data.draw(st.sampled_from(LOCATIONS), "location")

    theirs = reference.new_table(schema, spec, order, location, properties)
    ours = engine.new_table(schema, spec, order, location, properties, UUID, int(time.time() * 1000))

    CREATING.check(Case(), theirs, ours)
    if isinstance(ours, Accepted):
        read = reference.read_table(ours.document)
        assert isinstance(read, Accepted), read
        assert CREATING.normalised(read.document, Case()) == CREATING.normalised(ours.document, Case())

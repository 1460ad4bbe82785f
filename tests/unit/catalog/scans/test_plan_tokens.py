"""Tokens of plan tasks: which are refused."""

from __future__ import annotations

import base64

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.engine.change.numbering import LAST_ADDED
from app.engine.change.updates import AddSchema, RemoveSchemas, RemoveSnapshots, SetCurrentSchema, Update
from app.engine.model.data_types.types import NestedField, PrimitiveType
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import FieldId, SchemaId, SnapshotId
from app.engine.scan.scan_scope import ScanRequest
from app.errors import NoSuchPlanTask, NoSuchTable
from tests.builders.catalogs import with_rules
from tests.builders.commits import commit_table
from tests.builders.planned_scans import expand_task, names, page_of, plan_scan
from tests.builders.tables import DEPARTURES, FLIGHTS, load_table, table_in

EVERYTHING = ScanRequest()
OTHER = TableIdentifier(FLIGHTS, "other")


@pytest.mark.usefixtures("filled")
def test_tokens_that_we_did_not_write_are_refused(catalog: Catalog) -> None:
    small = with_rules(catalog, scan_page_files=2)
    token = page_of(plan_scan(small, DEPARTURES, EVERYTHING)).tasks[0]
    content = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))

    for place in range(0, len(content), 7):
        tampered = bytearray(content)
        tampered[place] ^= 1
        forged = base64.urlsafe_b64encode(bytes(tampered)).decode().rstrip("=")
        with pytest.raises(NoSuchPlanTask):
            expand_task(catalog, DEPARTURES, forged)
    for nonsense in ("", "a", "é", "====", token[:-5], token + "AAAA"):
        with pytest.raises(NoSuchPlanTask):
            expand_task(catalog, DEPARTURES, nonsense)


@pytest.mark.usefixtures("filled")
def test_token_is_good_for_its_own_table_only_under_any_name(catalog: Catalog) -> None:
    small = with_rules(catalog, scan_page_files=2)
    token = page_of(plan_scan(small, DEPARTURES, EVERYTHING)).tasks[0]
    table_in(catalog, OTHER)

    with pytest.raises(NoSuchPlanTask):
        expand_task(catalog, OTHER, token)
    named.drop(catalog, TABLES, OTHER)
    named.rename(catalog, TABLES, DEPARTURES, OTHER)
    assert names(expand_task(small, OTHER, token))
    with pytest.raises(NoSuchTable):
        expand_task(small, DEPARTURES, token)


@pytest.mark.usefixtures("filled")
def test_token_of_a_table_that_was_dropped_and_made_again_is_refused(catalog: Catalog) -> None:
    small = with_rules(catalog, scan_page_files=2)
    token = page_of(plan_scan(small, DEPARTURES, EVERYTHING)).tasks[0]
    named.drop(catalog, TABLES, DEPARTURES)
    with pytest.raises(NoSuchTable):
        expand_task(catalog, DEPARTURES, token)

    table_in(catalog)
    with pytest.raises(NoSuchPlanTask):
        expand_task(catalog, DEPARTURES, token)


def test_token_of_a_snapshot_that_expired_is_refused(catalog: Catalog, filled: list[SnapshotId]) -> None:
    small = with_rules(catalog, scan_page_files=2)
    token = page_of(plan_scan(small, DEPARTURES, ScanRequest(snapshot_id=filled[0]))).tasks[0]
    commit_table(catalog, DEPARTURES, [], [RemoveSnapshots(snapshot_ids=(filled[0],))])

    with pytest.raises(NoSuchPlanTask):
        expand_task(catalog, DEPARTURES, token)


def test_token_of_a_schema_whose_id_was_given_again_is_refused(
    catalog: Catalog, filled: list[SnapshotId]
) -> None:
    schema = load_table(catalog, DEPARTURES).metadata.current_schema

    def make_current_with(column: str) -> None:
        field = NestedField(
            id=FieldId(schema.highest_field_id + 1),
            name=column,
            required=False,
            type=PrimitiveType("string", "string"),
        )
        wider = schema.replace(fields=(*schema.fields, field))
        updates: list[Update] = [AddSchema(schema_=wider), SetCurrentSchema(schema_id=SchemaId(LAST_ADDED))]
        commit_table(catalog, DEPARTURES, [], updates)

    make_current_with("gate")
    small = with_rules(catalog, scan_page_files=2)
    token = page_of(plan_scan(small, DEPARTURES, EVERYTHING)).tasks[0]
    assert expand_task(catalog, DEPARTURES, token).files
    changes: list[Update] = [
        SetCurrentSchema(schema_id=schema.schema_id),
        RemoveSchemas(schema_ids=(SchemaId(1),)),
    ]
    commit_table(catalog, DEPARTURES, [], changes)
    make_current_with("wing")
    assert load_table(catalog, DEPARTURES).metadata.current_schema.schema_id == 1

    with pytest.raises(NoSuchPlanTask):
        expand_task(catalog, DEPARTURES, token)

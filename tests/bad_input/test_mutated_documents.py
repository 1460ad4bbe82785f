"""Metadata files, new tables and views, damaged at random: refused in words, or taken and still usable."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bad_input.commit_bodies import NEXT_COLUMNS, Json, act, schema, snapshot
from tests.bad_input.fuzzing_ground import NS, Ground, check_answered, check_readable, fuzzing_ground
from tests.bad_input.mutations import as_json, mutated
from tests.builders.http_catalog import VIEW_VERSION

pytestmark = pytest.mark.filterwarnings("ignore:Encountered invalid snapshot summary")

MANY = settings().max_examples
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with fuzzing_ground(tmp_path_factory.mktemp("ground")) as made:
        yield made


def early_document(ground: Ground) -> Json:
    """Return metadata as the first writers of v1 left it."""
    table = ground.tables[1]["metadata"]
    return {
        "format-version": 1,
        "location": table["location"],
        "last-updated-ms": table["last-updated-ms"],
        "last-column-id": 6,
        "schema": schema(),
        "partition-spec": [{"name": "p", "transform": "bucket[3]", "source-id": 1}],
        "properties": {},
        "current-snapshot-id": table["current-snapshot-id"],
        "snapshots": table["snapshots"],
    }


def later_commits(metadata: Json) -> list[list[Json]]:
    """Return what a table goes through after it was registered."""
    version = metadata["format-version"]
    sequence = metadata.get("last-sequence-number", 0) + 1
    added = snapshot(version, 7, sequence, metadata["location"])
    if version > 2:
        added["first-row-id"] = metadata["next-row-id"]
    return [
        [act("set-properties", updates={"a": "b"})],
        [
            act("add-snapshot", snapshot=added),
            act("set-snapshot-ref", ref_name="main", type="branch", snapshot_id=7),
        ],
        [act("add-schema", schema=schema(*NEXT_COLUMNS)), act("set-current-schema", schema_id=-1)],
        [act("add-spec", spec={"fields": []}), act("set-default-spec", spec_id=-1)],
        [act("remove-snapshot-ref", ref_name="audit"), act("remove-snapshots", snapshot_ids=[1_001])],
        [act("upgrade-format-version", format_version=3)],
    ]


@settings(max_examples=MANY)
@given(data=st.data())
def test_damaged_metadata_file_is_refused_or_becomes_a_table_that_works(
    ground: Ground, data: st.DataObject
) -> None:
    documents = [*(table["metadata"] for table in ground.tables.values()), early_document(ground)]
    number = next(_NUMBERS)
    location = ground.write(f"{number}.json", data.draw(mutated(documents)))
    path = f"{NS}/tables/r{number}"

    registered = ground.client.post(
        f"{NS}/register", json={"name": f"r{number}", "metadata-location": location}
    )

    check_answered(registered)
    if registered.status_code != 200:
        return
    for mode in ("all", "refs"):
        assert ground.client.get(path, params={"snapshots": mode}).status_code == 200
    for updates in later_commits(registered.json()["metadata"]):
        check_answered(ground.client.post(path, json={"requirements": [], "updates": updates}))
    ground.client.delete(path).raise_for_status()
    ground.forget()


@settings(max_examples=MANY)
@given(data=st.data())
def test_damaged_view_file_is_refused_or_becomes_a_view_that_works(
    ground: Ground, data: st.DataObject
) -> None:
    number = next(_NUMBERS)
    location = ground.write(f"{number}.json", data.draw(mutated([ground.view["metadata"]])))
    body = {"name": f"r{number}", "metadata-location": location}

    registered = ground.client.post(f"{NS}/register-view", json=body)

    check_answered(registered)
    if registered.status_code == 200:
        _use_view(ground, f"{NS}/views/r{number}")


@settings(max_examples=MANY)
@given(data=st.data())
def test_damaged_view_is_refused_or_works(ground: Ground, data: st.DataObject) -> None:
    body = {"name": "new", "schema": schema(), "view-version": VIEW_VERSION, "properties": {"a": "b"}}

    made = ground.client.post(f"{NS}/views", content=as_json(data.draw(mutated([body]))))

    check_answered(made)
    if made.status_code == 200:
        _use_view(ground, _only_new(ground, "views"))


@settings(max_examples=MANY)
@given(data=st.data())
def test_damaged_view_commit_is_refused_or_leaves_a_view_that_works(
    ground: Ground, data: st.DataObject
) -> None:
    uuid = ground.view["metadata"]["view-uuid"]
    trino = {"type": "sql", "dialect": "trino", "sql": "SELECT 2"}
    version = {**VIEW_VERSION, "schema-id": -1, "representations": [*VIEW_VERSION["representations"], trino]}
    updates = [
        act("add-schema", schema=schema(*NEXT_COLUMNS)),
        act("add-view-version", view_version=version),
        act("set-current-view-version", view_version_id=-1),
        act("set-properties", updates={"version.history.num-entries": "2"}),
        act("remove-properties", removals=["a"]),
    ]
    body = {"requirements": [{"type": "assert-view-uuid", "uuid": uuid}], "updates": updates}
    path = f"{NS}/views/c{next(_NUMBERS)}"
    location = ground.view["metadata-location"]
    register = {"name": path.rpartition("/")[2], "metadata-location": location}
    ground.client.post(f"{NS}/register-view", json=register).raise_for_status()

    check_answered(ground.client.post(path, content=as_json(data.draw(mutated([body])))))

    _use_view(ground, path)


@settings(max_examples=MANY)
@given(data=st.data())
def test_damaged_table_is_refused_or_readable(ground: Ground, data: st.DataObject) -> None:
    table = ground.tables[2]["metadata"]
    body = {
        "name": "new",
        "schema": schema(*NEXT_COLUMNS),
        "partition-spec": table["partition-specs"][0],
        "write-order": table["sort-orders"][0],
        "properties": {"format-version": "3", "owner": "ada"},
        "location": f"{table['location']}-new",
        "stage-create": False,
    }

    made = ground.client.post(f"{NS}/tables", content=as_json(data.draw(mutated([body]))))

    check_answered(made)
    if made.status_code == 200:
        check_readable(made.json()["metadata"])
        if "metadata-location" in made.json():
            ground.client.delete(_only_new(ground, "tables")).raise_for_status()
            ground.forget()


def _only_new(ground: Ground, kind: str) -> str:
    """Return the path of the one table or view that was not there in the beginning."""
    found = ground.client.get(f"{NS}/{kind}").json()["identifiers"]
    names = {item["name"] for item in found} - {"v", *(f"v{version}" for version in ground.tables)}
    (name,) = names
    return f"{NS}/{kind}/{quote(name, safe='')}"


def _use_view(ground: Ground, path: str) -> None:
    """Load a view, change it, and drop it."""
    version = {
        **VIEW_VERSION,
        "schema-id": -1,
        "representations": [{"type": "sql", "dialect": "spark", "sql": "SELECT 9"}],
    }
    updates = [
        act("add-schema", schema=schema()),
        act("add-view-version", view_version=version),
        act("set-current-view-version", view_version_id=-1),
    ]
    loaded = ground.client.get(path)
    changed = ground.client.post(path, json={"requirements": [], "updates": updates})

    assert loaded.status_code == 200, loaded.text
    check_answered(changed)
    ground.client.delete(path).raise_for_status()
    ground.forget()

"""What is not rebased, each for its own reason, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from app.catalog.commits.table_commits import TableCommit
from app.catalog.context.catalog import Catalog
from app.engine.change.requirements import AssertCurrentSchemaId, AssertRefSnapshotId, Requirement
from app.engine.change.updates import (
    AddSchema,
    AddSnapshot,
    AddSpec,
    RemovePartitionSpecs,
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetCurrentSchema,
    SetDefaultSpec,
    SetProperties,
    SetSnapshotRef,
    Update,
)
from app.engine.model.files.manifests import ManifestFile
from app.engine.model.ids import FieldId, Location, SchemaId, SnapshotId, SpecId
from app.engine.model.partition_spec import UnboundPartitionField, UnboundPartitionSpec
from app.errors import CommitFailed, RequirementFailed
from tests.builders.commits import commit_table
from tests.builders.racing_writers import commit, live_files, rebasing_table, sent, writer
from tests.builders.tables import DEPARTURES, SCHEMA, commit_to, load_table
from tests.builders.writing_engine import Commit, Made
from tests.unit.catalog.commits.interference import files_in


@pytest.fixture(autouse=True)
def raced(catalog: Catalog) -> None:
    """Make a table that asks for rebases and has a snapshot."""
    rebasing_table(catalog)
    commit(catalog, writer(catalog).append(["first"]))


def with_snapshot(made: Commit, **fields: object) -> Commit:
    """Return a commit whose snapshot differs in some fields."""
    updates: list[Update] = [
        AddSnapshot(snapshot=item.snapshot.replace(**fields)) if isinstance(item, AddSnapshot) else item
        for item in made.updates
    ]
    return replace(made, updates=updates)


def with_summary(made: Commit, **keys: str) -> Commit:
    summary = {
        **(made.snapshot.summary or {}),
        **{key.replace("_", "."): value for key, value in keys.items()},
    }
    return with_snapshot(made, summary=summary)


def with_keys(made: Commit, keys: tuple[str, ...]) -> Commit:
    return with_snapshot(made, summary={**(made.snapshot.summary or {}), **dict.fromkeys(keys, "7")})


def why_not(catalog: Catalog, late: Commit | TableCommit, rival: Commit | None = None) -> str:
    """Return why a commit is not rebased after another one won."""
    commit(catalog, rival or writer(catalog).append(["rival"]))
    before, files = load_table(catalog).location, files_in(catalog)
    wanted = late if isinstance(late, TableCommit) else sent(late)
    with pytest.raises(CommitFailed) as refused:
        commit_table(catalog, DEPARTURES, wanted.requirements, wanted.updates)
    assert (load_table(catalog).location, files_in(catalog)) == (before, files)
    assert refused.value.not_rebased is not None
    return f"{refused.value.not_rebased.reason}: {refused.value.not_rebased.message}"


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("wap.id", "published"),
        ("published-wap-id", "published"),
        ("source-snapshot-id", "published"),
        ("icetower.rebased-from", "published"),
        ("flink.max-committed-checkpoint-id", "exactly-once"),
        ("kafka.connect.offsets.orders", "exactly-once"),
    ],
)
def test_summary_that_asks_for_the_clients_own_checks(catalog: Catalog, key: str, reason: str) -> None:
    late = writer(catalog).append(["late"])
    summary = {**(late.snapshot.summary or {}), key: "7"}

    assert why_not(catalog, with_snapshot(late, summary=summary)).startswith(
        f"{reason}: Its summary has {key}"
    )


def test_exactly_once_writers_may_be_allowed(catalog: Catalog) -> None:
    commit_to(catalog, SetProperties(updates={"icetower.rebase.exactly-once": "allow"}))
    late = with_summary(writer(catalog).append(["late"]), flink_job="1")
    commit(catalog, writer(catalog).append(["rival"]))

    assert commit(catalog, late).rebased


KAFKA, OTHER_KAFKA = "kafka.connect.offsets.control.one", "kafka.connect.offsets.control.two"
FLINK = "flink.job-id", "flink.operator-id"


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ((KAFKA, "kafka.connect.commit-id"), (KAFKA, "kafka.connect.commit-id")),
        (("kafka.connect.commit-id",), (KAFKA, "kafka.connect.commit-id")),
        (FLINK, FLINK),
        (FLINK, ("flink.max-committed-checkpoint-id",)),
    ],
)
@pytest.mark.parametrize("between", [False, True])
def test_allowed_exactly_once_writer_that_has_committed_since(
    catalog: Catalog, mine: tuple[str, ...], theirs: tuple[str, ...], between: bool
) -> None:
    commit_to(catalog, SetProperties(updates={"icetower.rebase.exactly-once": "allow"}))
    late = with_keys(writer(catalog).append(["late"]), mine)
    successor = with_keys(writer(catalog).append(["successor"]), theirs)
    if between:
        commit(catalog, successor)
        successor = writer(catalog).append(["last"])

    assert why_not(catalog, late, successor).startswith("exactly-once: Snapshot ")


def test_allowed_exactly_once_writers_beside_others(catalog: Catalog) -> None:
    commit(catalog, with_keys(writer(catalog).append(["before"]), (KAFKA,)))
    commit_to(catalog, SetProperties(updates={"icetower.rebase.exactly-once": "allow"}))
    late = with_keys(writer(catalog).append(["late"]), (KAFKA, "kafka.connect.commit-id"))
    commit(catalog, with_keys(writer(catalog).append(["a"]), (OTHER_KAFKA, "kafka.connect.commit-id")))
    commit(catalog, with_keys(writer(catalog).append(["b"]), FLINK))

    assert commit(catalog, late).rebased


@pytest.mark.parametrize("name", FLINK)
def test_allowed_sink_of_flink_beside_another_one(catalog: Catalog, name: str) -> None:
    commit_to(catalog, SetProperties(updates={"icetower.rebase.exactly-once": "allow"}))
    late = with_keys(writer(catalog).append(["late"]), FLINK)
    other = writer(catalog).append(["other"])
    names = {**dict.fromkeys(FLINK, "7"), name: "8"}
    commit(catalog, with_snapshot(other, summary={**(other.snapshot.summary or {}), **names}))

    assert commit(catalog, late).rebased


@pytest.mark.parametrize("operation", ["overwrite", "delete", "replace"])
def test_other_operations(catalog: Catalog, operation: str) -> None:
    late = with_snapshot(writer(catalog).append(["late"]), summary={"operation": operation})

    assert why_not(catalog, late).startswith(f"mode: It is of operation {operation}")


def test_summary_without_an_operation(catalog: Catalog) -> None:
    late = with_snapshot(writer(catalog).append(["late"]), summary=None)

    assert why_not(catalog, late).startswith("mode: ")


def test_encrypted_list(catalog: Catalog) -> None:
    assert why_not(catalog, with_snapshot(writer(catalog).append(["late"]), key_id="k")).startswith(
        "format: "
    )


def test_merged_manifests(catalog: Catalog) -> None:
    late = writer(catalog).append(["late"], merge=True)

    assert why_not(catalog, late) == "manifests: It merged or rewrote manifests of its parent."


def test_append_that_removes_files(catalog: Catalog) -> None:
    (path,) = live_files(catalog)
    late = writer(catalog).delete([path], ["new"], operation="append")

    assert why_not(catalog, late).startswith("manifests: ")


def test_append_that_adds_delete_files(catalog: Catalog) -> None:
    late = with_snapshot(writer(catalog).delete_rows(["deletes"]), summary={"operation": "append"})

    assert why_not(catalog, late).startswith("manifests: It adds delete files")


@pytest.mark.parametrize(
    ("falsify", "reason"),
    [
        (lambda item: replace(item, added_snapshot_id=SnapshotId(5)), "manifests: It lists manifest"),
        (lambda item: replace(item, key_metadata=b"k"), "format: "),
        (lambda item: replace(item, added_rows_count=99), "manifests: Its list counts"),
        (
            lambda item: replace(item, partition_spec_id=SpecId(7)),
            "schema: The table has no partition spec 7",
        ),
    ],
)
def test_own_manifest_that_is_not_plain(
    catalog: Catalog, falsify: Callable[[ManifestFile], ManifestFile], reason: str
) -> None:
    def change(made: Made) -> None:
        made.manifests[0] = falsify(made.manifests[0])

    late = writer(catalog).append(["late"], falsify=change, totals=False)

    assert why_not(catalog, late).startswith(reason)


def test_list_that_names_a_manifest_twice(catalog: Catalog) -> None:
    def change(made: Made) -> None:
        made.manifests.append(made.manifests[0])

    late = writer(catalog).append(["late"], falsify=change, totals=False)

    assert why_not(catalog, late).startswith("manifests: Its list names a manifest twice")


def test_list_that_is_not_there(catalog: Catalog) -> None:
    late = with_snapshot(
        writer(catalog).append(["late"]),
        manifest_list=Location(f"{load_table(catalog).metadata.location}/no"),
    )

    assert why_not(catalog, late).startswith("unreadable: ")


def test_schema_that_has_moved(catalog: Catalog) -> None:
    late = writer(catalog).append(["late"])
    wider = SCHEMA.replace(
        fields=(*SCHEMA.fields, SCHEMA.fields[0].replace(id=FieldId(9), name="more", required=False))
    )
    commit_to(catalog, AddSchema(schema_=wider), SetCurrentSchema(schema_id=SchemaId(-1)))

    assert why_not(catalog, late).startswith("schema: It was written with schema 0; the current one is 1")


def test_snapshot_without_schema(catalog: Catalog) -> None:
    late = with_snapshot(writer(catalog).append(["late"]), schema_id=None)

    assert why_not(catalog, late).startswith("schema: ")


def identity_of(position: int) -> UnboundPartitionSpec:
    source = SCHEMA.fields[position]
    field = UnboundPartitionField(source_id=source.id, name=f"by_{source.name}", transform="identity")
    return UnboundPartitionSpec(fields=(field,))


def test_spec_that_has_moved(catalog: Catalog) -> None:
    late, rival = writer(catalog).append(["late"]), writer(catalog).append(["rival"])
    commit(catalog, rival)
    field = UnboundPartitionField(source_id=SCHEMA.fields[0].id, name="part", transform="identity")
    commit_to(
        catalog, AddSpec(spec=UnboundPartitionSpec(fields=(field,))), SetDefaultSpec(spec_id=SpecId(-1))
    )

    with pytest.raises(RequirementFailed) as refused:
        commit(catalog, late)

    assert refused.value.not_rebased is not None
    assert refused.value.not_rebased.reason == "schema"


def test_spec_whose_id_another_one_has_by_now(catalog: Catalog) -> None:
    commit_to(catalog, AddSpec(spec=identity_of(0)), SetDefaultSpec(spec_id=SpecId(-1)))
    late = writer(catalog).append(["late"])
    commit_to(catalog, SetDefaultSpec(spec_id=SpecId(0)), RemovePartitionSpecs(spec_ids=(SpecId(1),)))
    rival = writer(catalog).append(["rival"])
    commit(catalog, rival)
    commit_to(catalog, AddSpec(spec=identity_of(1)), SetDefaultSpec(spec_id=SpecId(-1)))
    assert load_table(catalog).metadata.default_spec_id == 1

    with pytest.raises(RequirementFailed) as refused:
        commit(catalog, late)

    assert refused.value.not_rebased is not None
    assert refused.value.not_rebased.reason == "schema"
    assert "was written with another partition spec 1 than the table has now" in (
        refused.value.not_rebased.message
    )


def test_more_than_one_snapshot(catalog: Catalog) -> None:
    one = writer(catalog)
    first, second = one.append(["a"]), one.append(["b"])
    late = replace(first, updates=[*first.updates, *second.updates])

    assert why_not(catalog, late) == "commit: It does more than add one snapshot to one branch."


def test_other_updates_beside_the_snapshot(catalog: Catalog) -> None:
    late = writer(catalog).append(["late"])
    late = replace(late, updates=[*late.updates, SetProperties(updates={"a": "b"})])

    assert why_not(catalog, late).startswith("commit: ")


def test_tag(catalog: Catalog) -> None:
    late = writer(catalog).append(["late"])
    updates = [
        item.model_copy(update={"type": "tag"}) if isinstance(item, SetSnapshotRef) else item
        for item in late.updates
    ]

    assert why_not(catalog, replace(late, updates=updates)) == "commit: main is a tag."


def test_retention_that_the_branch_has_not(catalog: Catalog) -> None:
    late = writer(catalog).append(["late"])
    updates = [
        item.model_copy(update={"min_snapshots_to_keep": 3}) if isinstance(item, SetSnapshotRef) else item
        for item in late.updates
    ]

    assert why_not(catalog, replace(late, updates=updates)).startswith("commit: It sets how long")


def test_requirement_of_another_snapshot_than_the_parent(catalog: Catalog) -> None:
    late = sent(writer(catalog).append(["late"]))
    needed: list[Requirement] = [AssertRefSnapshotId(ref="main", snapshot_id=SnapshotId(4))]

    assert why_not(catalog, replace(late, requirements=needed)).startswith(
        "commit: It expects another snapshot"
    )


def test_parent_that_is_no_ancestor_because_the_branch_went_back(catalog: Catalog) -> None:
    root = load_table(catalog).metadata.current_snapshot_id
    assert root is not None
    commit(catalog, writer(catalog).append(["second"]))
    late = writer(catalog).append(["late"])
    commit_to(catalog, SetSnapshotRef(ref_name="main", snapshot_id=root, type="branch"))

    assert why_not(catalog, late).startswith("history: ")


def test_parent_that_has_expired(catalog: Catalog) -> None:
    parent = load_table(catalog).metadata.current_snapshot_id
    assert parent is not None
    late = writer(catalog).append(["late"])
    commit(catalog, writer(catalog).append(["second"]))
    commit_to(catalog, RemoveSnapshots(snapshot_ids=(parent,)))

    assert why_not(catalog, late).startswith("history: ")


def test_branch_that_is_gone(catalog: Catalog) -> None:
    one = writer(catalog)
    one.append(["on a branch"], branch="b")
    start = load_table(catalog).metadata.current_snapshot_id
    assert start is not None
    commit_to(catalog, SetSnapshotRef(ref_name="b", snapshot_id=start, type="branch"))
    two = writer(catalog)
    late = two.append(["late"], branch="b")
    commit_to(catalog, RemoveSnapshotRef(ref_name="b"))

    assert why_not(catalog, late).startswith("history: ")


def test_other_requirements_refuse_as_ever(catalog: Catalog) -> None:
    late = sent(writer(catalog).append(["late"]))
    commit(catalog, writer(catalog).append(["rival"]))
    needed = [*late.requirements, AssertCurrentSchemaId(current_schema_id=SchemaId(4))]

    with pytest.raises(RequirementFailed) as refused:
        commit_table(catalog, DEPARTURES, needed, late.updates)

    assert refused.value.not_rebased is None

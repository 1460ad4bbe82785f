from __future__ import annotations

from dataclasses import replace

import pytest

from app.catalog import named
from app.catalog.commits.dry_runs import dry_run_commit
from app.catalog.context.callers import Caller
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.named import unregister
from app.database.outcomes.idempotency_keys import IdempotencyClaim
from app.database.pointers.moves import Advance
from app.database.pointers.pointers import PutOutcome
from app.engine.change.requirements import (
    AssertCreate,
    AssertRefSnapshotId,
    AssertTableUuid,
    Requirement,
)
from app.engine.change.updates import (
    AddSnapshot,
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetLocation,
    SetProperties,
    SetSnapshotRef,
    Update,
)
from app.engine.model.ids import Location
from app.errors import (
    CommitStateUnknown,
    CorruptMetadata,
    DatabaseUnavailable,
    InvalidLocation,
    MetadataFileMissing,
    NoSuchNamespace,
    NoSuchTable,
    PointerMoved,
    RequirementFailed,
    StaleUpdate,
    ViewExists,
)
from app.standings import LandedSnapshot, Standing
from tests.builders.catalogs import with_rules, with_server
from tests.builders.commits import commit_table
from tests.builders.tables import (
    DEPARTURES,
    append,
    append_to,
    head,
    load_table,
    namespace_in,
    snapshot_on,
    table_in,
    view_in,
)
from tests.unit.catalog.commits.interference import ARRIVALS, creation_updates, files_in, interfering


def test_commit_moves_the_pointer_to_a_new_file_and_logs_the_old_one(catalog: Catalog) -> None:
    created = table_in(catalog)

    committed = commit_table(catalog, DEPARTURES, [], [SetProperties(updates={"owner": "tower"})])

    assert load_table(catalog, DEPARTURES).location == committed.location
    assert [entry.metadata_file for entry in committed.metadata.metadata_log] == [created.location]
    assert committed.location is not None
    assert committed.location.rsplit("/", 1)[1].startswith("00001-")


def test_commit_without_effect_writes_nothing(catalog: Catalog) -> None:
    created = table_in(catalog)
    before = files_in(catalog)

    same = commit_table(catalog, DEPARTURES, [], [SetLocation(location=created.metadata.location)])

    assert same.location == created.location
    assert files_in(catalog) == before


def test_commit_after_lost_race_discards_staged_file_and_lands_on_the_new_base(catalog: Catalog) -> None:
    table_in(catalog)
    rival = commit_table(catalog, DEPARTURES, [], [SetProperties(updates={"rival": "first"})])
    meddled, pointers = interfering(catalog)
    seen = pointers.find(catalog.warehouse.id, DEPARTURES)
    assert seen is not None
    other = f"{rival.metadata.location}/metadata/00002-rival.metadata.json"
    catalog.files.write_new(Location(other), rival.json)
    pointers.rivals = [[Advance(seen, Location(other), seen.uuid)]]
    before = files_in(catalog)

    landed = commit_table(meddled, DEPARTURES, [], [SetProperties(updates={"mine": "second"})])

    assert landed.metadata.properties["rival"] == "first"
    assert landed.metadata.properties["mine"] == "second"
    assert landed.metadata.metadata_log[-1].metadata_file == other
    assert files_in(catalog) - before == {landed.location}


def test_requirement_that_fails_after_a_lost_race_is_not_retried(catalog: Catalog) -> None:
    created = table_in(catalog)
    mine = append(snapshot_on(created.metadata))
    rival = append_to(catalog, created)

    with pytest.raises(RequirementFailed, match="branch main was created concurrently"):
        commit_table(catalog, DEPARTURES, [AssertRefSnapshotId(ref="main")], mine)

    assert load_table(catalog, DEPARTURES).location == rival.location


def test_commit_that_loses_every_race_is_refused_and_leaves_no_file(catalog: Catalog) -> None:
    table_in(catalog)
    meddled = with_rules(catalog, commit_attempts=3)
    meddled, pointers = interfering(meddled)
    pointers.check_and_put = lambda *_args, **_kwargs: PutOutcome.MOVED  # type: ignore[method-assign]  # every race is lost
    before = files_in(catalog)

    with pytest.raises(PointerMoved, match="all 3 attempts"):
        commit_table(meddled, DEPARTURES, [], [SetProperties(updates={"a": "b"})])

    assert files_in(catalog) == before


def test_lost_reply_of_a_commit_that_landed_is_success(catalog: Catalog) -> None:
    table_in(catalog)
    meddled, pointers = interfering(catalog)
    pointers.lose_reply = True

    landed = commit_table(meddled, DEPARTURES, [], [SetProperties(updates={"a": "b"})])

    assert load_table(catalog, DEPARTURES).location == landed.location


@pytest.mark.parametrize("blind", [False, True])
def test_unknown_outcome_is_told_as_unknown_and_deletes_nothing(catalog: Catalog, blind: bool) -> None:
    table_in(catalog)
    meddled, pointers = interfering(catalog)
    pointers.lose_request = True
    pointers.blind = blind
    before = files_in(catalog)

    with pytest.raises(CommitStateUnknown):
        commit_table(meddled, DEPARTURES, [], [SetProperties(updates={"a": "b"})])

    assert len(files_in(catalog) - before) == 1


def test_refusal_by_the_database_before_commit_discards_the_staged_file(catalog: Catalog) -> None:
    table_in(catalog)
    meddled, pointers = interfering(catalog)

    def refuse(*_args: object, **_kwargs: object) -> PutOutcome:
        raise DatabaseUnavailable("nothing was changed")

    pointers.check_and_put = refuse  # type: ignore[method-assign]  # a database that refuses
    before = files_in(catalog)

    with pytest.raises(DatabaseUnavailable):
        commit_table(meddled, DEPARTURES, [], [SetProperties(updates={"a": "b"})])

    assert files_in(catalog) == before


def test_publishing_a_staged_snapshot_is_no_repetition_of_staging_it(catalog: Catalog) -> None:
    table = append_to(catalog, table_in(catalog))
    staged = snapshot_on(table.metadata)
    commit_table(catalog, DEPARTURES, [], [AddSnapshot(snapshot=staged)])
    wanted = [*append(staged), SetProperties(updates={"audited": "yes"})]

    with pytest.raises(RequirementFailed):
        commit_table(catalog, DEPARTURES, [AssertRefSnapshotId(ref="main", snapshot_id=None)], wanted)

    assert head(load_table(catalog, DEPARTURES)) == head(table)


def test_commit_sent_again_after_its_branch_was_dropped_is_not_refused(catalog: Catalog) -> None:
    """On a refusal the client would delete manifests that the table still has."""
    table = append_to(catalog, table_in(catalog))
    updates = append(snapshot_on(table.metadata), "audit")
    commit_table(catalog, DEPARTURES, [], updates)
    commit_table(catalog, DEPARTURES, [], [RemoveSnapshotRef(ref_name="audit")])

    with pytest.raises(CommitStateUnknown, match="audit is not on it"):
        commit_table(catalog, DEPARTURES, [AssertRefSnapshotId(ref="audit")], updates)


@pytest.mark.parametrize("end", ["renamed", "dropped", "forgotten", "unregistered", "expired"])
@pytest.mark.parametrize("is_made_anew", [False, True])
def test_commit_sent_again_after_its_table_lost_the_name_is_not_refused(
    catalog: Catalog, *, end: str, is_made_anew: bool
) -> None:
    """On a refusal the client would delete manifests that the table still has, here, in another catalog, or later."""
    table = append_to(catalog, table_in(catalog))
    updates = append(snapshot_on(table.metadata))
    requirements: list[Requirement] = [
        AssertTableUuid(uuid=table.metadata.uuid),
        AssertRefSnapshotId(ref="main"),
    ]
    landed = commit_table(catalog, DEPARTURES, [], updates)
    other = append(snapshot_on(landed.metadata))
    if end == "expired":
        append_to(catalog, landed)
        commit_table(catalog, DEPARTURES, [], [RemoveSnapshots(snapshot_ids=(head(landed).snapshot_id,))])
    if end == "dropped":
        named.drop(catalog, TABLES, DEPARTURES)
    elif end == "forgotten":
        forgets = replace(catalog.warehouse, default_properties={"icetower.undrop.keep-ms": "0"})
        named.drop(replace(catalog, warehouse=forgets), TABLES, DEPARTURES)
    elif end == "unregistered":
        unregister(catalog, TABLES, DEPARTURES)
    else:
        named.rename(catalog, TABLES, DEPARTURES, ARRIVALS)
    if is_made_anew:
        table_in(catalog)

    for asked in (commit_table, dry_run_commit):
        with pytest.raises(CommitStateUnknown, match="has landed before"):
            asked(catalog, DEPARTURES, requirements, updates)
    with pytest.raises((NoSuchTable, RequirementFailed)):
        commit_table(catalog, DEPARTURES, requirements, other)


def test_commit_sent_again_after_its_branch_was_moved_back_is_not_refused(catalog: Catalog) -> None:
    """On a refusal the client would delete manifests of a snapshot that a tag may still name."""
    table = append_to(catalog, table_in(catalog))
    updates = append(snapshot_on(table.metadata), "audit")
    commit_table(catalog, DEPARTURES, [], updates)
    back = SetSnapshotRef(ref_name="audit", snapshot_id=head(table).snapshot_id, type="branch")
    commit_table(catalog, DEPARTURES, [], [back])

    with pytest.raises(CommitStateUnknown, match="audit is not on it"):
        commit_table(catalog, DEPARTURES, [AssertRefSnapshotId(ref="audit")], updates)


def test_same_snapshot_id_with_another_manifest_list_is_refused(catalog: Catalog) -> None:
    created = table_in(catalog)
    snapshot = snapshot_on(created.metadata)
    commit_table(catalog, DEPARTURES, [], append(snapshot))
    impostor = snapshot.replace(manifest_list=Location("memory://wh/other.avro"))

    with pytest.raises(RequirementFailed):
        commit_table(
            catalog,
            DEPARTURES,
            [AssertRefSnapshotId(ref="main")],
            append(impostor),
        )


def test_snapshot_of_a_stale_base_is_told_to_retry(catalog: Catalog) -> None:
    created = table_in(catalog)
    first = append_to(catalog, created)
    stale = snapshot_on(first.metadata)
    append_to(catalog, first)

    with pytest.raises(
        StaleUpdate, match="Validation failed, please retry: Cannot add snapshot with sequence"
    ):
        commit_table(catalog, DEPARTURES, [], append(stale, "audit"))


def test_commit_with_assert_create_makes_the_table_as_sent(catalog: Catalog) -> None:
    namespace_in(catalog)

    made = commit_table(catalog, DEPARTURES, [AssertCreate()], creation_updates())

    assert made.metadata.uuid == "11111111-1111-1111-1111-111111111111"
    assert made.metadata.metadata_log == ()
    assert load_table(catalog, DEPARTURES).location == made.location


def test_commit_with_assert_create_on_a_taken_name_says_what_has_it(catalog: Catalog) -> None:
    table_in(catalog)
    view_in(catalog, ARRIVALS)

    with pytest.raises(RequirementFailed, match=r"^Requirement failed: table already exists"):
        commit_table(catalog, DEPARTURES, [AssertCreate()], creation_updates())
    with pytest.raises(ViewExists, match=r"^View with same name already exists: flights\.arrivals"):
        commit_table(catalog, ARRIVALS, [AssertCreate()], creation_updates())


def test_creation_sent_again_after_a_view_took_the_name_is_not_refused(catalog: Catalog) -> None:
    """On a refusal the client would delete manifests that the table has under its new name."""
    namespace_in(catalog)
    made = commit_table(catalog, DEPARTURES, [AssertCreate()], creation_updates())
    appended = append(snapshot_on(made.metadata))
    updates = [*creation_updates(), *appended]
    commit_table(catalog, DEPARTURES, [], appended)
    named.rename(catalog, TABLES, DEPARTURES, ARRIVALS)
    view_in(catalog)

    for asked in (commit_table, dry_run_commit):
        with pytest.raises(CommitStateUnknown, match="has landed before"):
            asked(catalog, DEPARTURES, [AssertCreate()], updates)
    with pytest.raises(ViewExists):
        commit_table(catalog, DEPARTURES, [AssertCreate()], creation_updates())


def test_commit_with_assert_create_needs_the_namespace_and_leaves_no_file(catalog: Catalog) -> None:
    with pytest.raises(NoSuchNamespace, match="Namespace does not exist: flights"):
        commit_table(catalog, DEPARTURES, [AssertCreate()], creation_updates())

    assert files_in(catalog) == set()


def test_commit_to_a_view_or_to_nothing_finds_no_table(catalog: Catalog) -> None:
    view_in(catalog)

    for identifier in (DEPARTURES, ARRIVALS):
        with pytest.raises(NoSuchTable, match=f"Table does not exist: {identifier}"):
            commit_table(catalog, identifier, [], [SetProperties(updates={"a": "b"})])


def test_commit_cannot_move_a_table_out_of_its_warehouse(catalog: Catalog) -> None:
    table_in(catalog)
    moves: list[Update] = [
        SetLocation(location=Location("memory://elsewhere/t")),
        SetProperties(updates={"write.metadata.path": "memory://elsewhere/metadata"}),
        SetProperties(updates={"write.data.path": "memory://wh/../elsewhere"}),
    ]

    for move in moves:
        with pytest.raises(InvalidLocation):
            commit_table(catalog, DEPARTURES, [], [move])


def test_external_locations_are_allowed_when_the_rules_say_so(catalog: Catalog) -> None:
    table_in(catalog)
    open_catalog = with_rules(catalog, allow_external_locations=True)

    moved = commit_table(
        open_catalog,
        DEPARTURES,
        [],
        [SetLocation(location=Location("memory://elsewhere/t"))],
    )

    assert moved.metadata.location == "memory://elsewhere/t"


def test_metadata_path_property_decides_where_the_next_file_goes(catalog: Catalog) -> None:
    table_in(catalog)

    moved = commit_table(
        catalog,
        DEPARTURES,
        [],
        [
            SetProperties(
                updates={
                    "write.metadata.path": "memory://wh/meta",
                    "write.metadata.compression-codec": "gzip",
                }
            )
        ],
    )

    assert moved.location is not None
    assert moved.location.startswith("memory://wh/meta/00001-")
    assert moved.location.endswith(".gz.metadata.json")
    assert load_table(catalog, DEPARTURES).metadata == moved.metadata


def test_old_metadata_files_go_when_the_table_asks_for_it(catalog: Catalog) -> None:
    table = table_in(
        catalog,
        properties={
            "write.metadata.delete-after-commit.enabled": "true",
            "write.metadata.previous-versions-max": "2",
        },
    )
    for _ in range(5):
        table = append_to(catalog, table)

    kept = {table.location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
    assert len(kept) == 3
    assert files_in(catalog) == kept


def test_old_metadata_files_stay_while_another_name_shares_them(catalog: Catalog) -> None:
    table = table_in(
        catalog,
        properties={
            "write.metadata.delete-after-commit.enabled": "true",
            "write.metadata.previous-versions-max": "1",
        },
    )
    assert table.location is not None
    named.register(catalog, TABLES, ARRIVALS, table.location, overwrite=False)
    for _ in range(3):
        append_to(catalog, load_table(catalog, DEPARTURES))

    assert load_table(catalog, ARRIVALS).location == table.location


def test_commit_follows_a_table_that_is_renamed_meanwhile(catalog: Catalog) -> None:
    table = table_in(catalog)
    named.rename(catalog, TABLES, DEPARTURES, ARRIVALS)

    with pytest.raises(NoSuchTable):
        append_to(catalog, table)
    renamed = load_table(catalog, ARRIVALS)
    assert append_to(catalog, renamed).metadata.location == table.metadata.location


def test_vanished_and_broken_metadata_files_are_told_apart(catalog: Catalog) -> None:
    table = table_in(catalog)
    assert table.location is not None
    files = catalog.files
    files.delete(table.location)

    with pytest.raises(MetadataFileMissing, match="Failed to open input stream for file: memory://wh/"):
        load_table(catalog, DEPARTURES)

    files.write_new(table.location, b"{not json")
    cold = with_server(catalog, metadata_files=type(catalog.server.metadata_files)(1, 0))
    with pytest.raises(CorruptMetadata):
        load_table(cold, DEPARTURES)


def test_commit_remembers_its_idempotency_key_with_where_it_landed(catalog: Catalog) -> None:
    table_in(catalog)
    claim = IdempotencyClaim("tester", "key-1", "hash", catalog.now_ms(), catalog.now_ms() + 60_000)

    calling = replace(catalog, caller=Caller("tester", "r", claim))
    landed = commit_table(calling, DEPARTURES, [], [SetProperties(updates={"a": "b"})])

    outcome = catalog.server.idempotency_keys.find("tester", "key-1", catalog.now_ms())
    assert outcome is not None
    assert (outcome.status, outcome.result) == (200, f"{landed.location}\n{landed.metadata.uuid}")


def test_commit_that_loses_every_race_tells_who_won_them(catalog: Catalog) -> None:
    """Each attempt meets a rival's snapshot that landed just before."""
    table = table_in(catalog)
    meddled, pointers = interfering(with_rules(catalog, commit_attempts=3))
    won: list[int] = []

    def lose(*_args: object, **_kwargs: object) -> PutOutcome:
        rival = append_to(catalog, load_table(catalog, DEPARTURES))
        won.append(head(rival).snapshot_id)
        return PutOutcome.MOVED

    pointers.check_and_put = lose  # type: ignore[method-assign]  # every race is lost

    with pytest.raises(PointerMoved, match="all 3 attempts") as caught:
        commit_table(meddled, DEPARTURES, [], [SetProperties(updates={"a": "b"})])

    standing = caught.value.standing
    assert standing is not None
    assert (standing.namespace, standing.name) == (("flights",), "departures")
    # Who won the last race was not looked at any more.
    assert [item.snapshot_id for item in standing.landed or ()] == won[-2::-1]
    assert standing.landed_count == 2
    assert table.location != standing.metadata_location


def test_failed_commit_tells_how_the_table_stands(catalog: Catalog) -> None:
    first = append_to(catalog, table_in(catalog))
    second = append_to(catalog, first)
    base, newest = head(first), head(second)
    requirement = AssertRefSnapshotId(ref="main", snapshot_id=base.snapshot_id)

    with pytest.raises(RequirementFailed) as caught:
        commit_table(catalog, DEPARTURES, [requirement], [])

    error = caught.value
    assert (error.requirement, error.expected, error.found) == (
        requirement,
        base.snapshot_id,
        newest.snapshot_id,
    )
    assert error.standing == Standing(
        namespace=("flights",),
        name="departures",
        metadata_location=second.location,
        landed=(LandedSnapshot(newest.snapshot_id, "append", newest.sequence, newest.timestamp_ms),),
        landed_count=1,
    )

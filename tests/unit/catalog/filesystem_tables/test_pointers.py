from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from app.catalog import history, named, namespaces, tables
from app.catalog.adoptions import adopt_table, adopted_from
from app.catalog.commits.table_commits import TableCommit, commit_transaction
from app.catalog.context.catalog import Catalog
from app.catalog.context.deletable import Owner, deletable
from app.catalog.context.kinds import TABLES, VIEWS
from app.catalog.context.listings import Page
from app.catalog.deletions.orphan_search import OrphanWish
from app.catalog.deletions.orphans import preview_orphans
from app.catalog.past.catalog_diff import load_catalog_diff
from app.catalog.past.dropped import Wanted, list_dropped, purge_dropped, undrop
from app.catalog.past.restore import restore_tables
from app.catalog.rebuild.planning import RebuildWish, plan_rebuild
from app.catalog.upkeep.jobs import begin_job
from app.catalog.upkeep.table_health import TableHealth, table_health
from app.catalog.upkeep.upkeep_plans import table_upkeep
from app.catalog.upkeep.warehouse_health import warehouse_health
from app.database.outcomes.idempotency_keys import IdempotencyClaim
from app.engine.change.updates import RemoveProperties, SetLocation, SetProperties
from app.engine.model.identifiers import Namespace
from app.engine.model.ids import Location, TableUuid
from app.engine.model.jobs import Job
from app.errors import (
    CorruptMetadata,
    IcetowerError,
    InvalidName,
    InvalidRequest,
    InvalidUpdate,
    NamespaceExists,
    NoSuchNamespace,
    NoSuchTable,
    OrphansRefused,
    PurgeRefused,
)
from app.formats.metadata.version_names import version_in
from app.tree_errors import TreeRefusal
from tests.builders.catalogs import CALLER, START_MS, new_warehouse, with_server
from tests.builders.commits import commit_table
from tests.builders.file_system import identifier, metadata_folder, new_table, write_version

T = identifier("ns.t")


def mark(catalog: Catalog, name: str, value: str = "here") -> None:
    commit_table(catalog, T, (), [SetProperties(updates={name: value})])


def properties(catalog: Catalog) -> dict[str, str]:
    return dict(catalog.read_now(TABLES, T)[1].properties)


def files_in(metadata: Path) -> list[str]:
    return sorted(path.name for path in metadata.iterdir())


def test_a_table_is_where_its_name_says(tree: Catalog, tmp_path: Path) -> None:
    pointer, metadata = tree.read_now(TABLES, T)

    assert metadata.location == f"file://{tmp_path}/tables/ns/t"
    assert pointer.metadata_location == f"{metadata.location}/metadata/v1.metadata.json"
    assert pointer.id < 0
    assert files_in(metadata_folder(tmp_path, "ns.t")) == ["v1.metadata.json", "version-hint.text"]


def test_versions_of_other_programs_are_taken_up_at_once(tree: Catalog, tmp_path: Path) -> None:
    folder = metadata_folder(tmp_path, "ns.t")
    write_version(folder, 2, properties={"theirs": "2"})
    mark(tree, "ours")
    write_version(folder, 4, properties={"theirs": "4"})

    assert properties(tree) == {"theirs": "4"}
    assert sorted(map(version_in, filter(version_in, files_in(folder)))) == [1, 2, 3, 4]  # type: ignore[type-var]  # none is None


def test_a_folder_that_was_restored_is_read_anew(tree: Catalog, tmp_path: Path) -> None:
    """The same uuid, the same version, other content: nothing that is kept may be believed."""
    folder = metadata_folder(tmp_path, "ns.t")
    mark(tree, "first")
    assert "first" in properties(tree)
    document = orjson.loads((folder / "v2.metadata.json").read_bytes())
    (folder / "v2.metadata.json").write_bytes(orjson.dumps(document | {"properties": {"other": "here"}}))

    assert properties(tree) == {"other": "here"}
    mark(tree, "third")
    assert properties(tree).keys() == {"other", "third"}


def test_the_codec_of_a_version_is_that_of_the_one_before(tree: Catalog, tmp_path: Path) -> None:
    folder = metadata_folder(tmp_path, "ns.t")
    mark(tree, "write.metadata.compression-codec", "gzip")
    mark(tree, "packed")
    commit_table(tree, T, (), [RemoveProperties(removals=("write.metadata.compression-codec",))])
    mark(tree, "plain")

    assert [name for name in files_in(folder) if version_in(name)] == [
        "v1.metadata.json",
        "v2.metadata.json",
        "v3.gz.metadata.json",
        "v4.gz.metadata.json",
        "v5.metadata.json",
    ]
    assert gzip.decompress((folder / "v3.gz.metadata.json").read_bytes()).startswith(b"{")
    assert properties(tree).keys() >= {"packed", "plain"}


def test_old_versions_go_where_the_table_asks_for_it(tree: Catalog, tmp_path: Path) -> None:
    mark(tree, "write.metadata.delete-after-commit.enabled", "true")
    mark(tree, "write.metadata.previous-versions-max", "1")
    for number in range(3):
        mark(tree, f"mark-{number}")

    names = [name for name in files_in(metadata_folder(tmp_path, "ns.t")) if version_in(name)]
    assert names == ["v5.metadata.json", "v6.metadata.json"]
    assert {f"mark-{number}" for number in range(3)} <= properties(tree).keys()


def test_a_commit_that_was_overtaken_long_ago_is_made_again(tree: Catalog, tmp_path: Path) -> None:
    """While it stands still before its file, others commit and delete the versions it would have followed."""
    mark(tree, "write.metadata.delete-after-commit.enabled", "true")
    mark(tree, "write.metadata.previous-versions-max", "1")
    others = with_server(tree)
    left = [5]

    def overtake(step: str) -> None:
        if step == "before_version" and left[0]:
            number, left[0] = left[0], 0
            for each in range(number):
                mark(others, f"theirs-{each}")

    mark(with_server(tree, step=overtake), "ours")

    assert properties(tree).keys() >= {"ours", *(f"theirs-{number}" for number in range(5))}


@pytest.mark.parametrize(
    ("update", "words"),
    [
        (SetLocation(location=Location("file:///elsewhere")), "Cannot move"),
        (SetProperties(updates={"write.metadata.path": "file:///elsewhere"}), "write.metadata.path"),
    ],
)
def test_metadata_may_not_move(
    tree: Catalog, tmp_path: Path, update: SetLocation | SetProperties, words: str
) -> None:
    with pytest.raises(InvalidUpdate, match=words):
        commit_table(tree, T, (), [update])

    assert files_in(metadata_folder(tmp_path, "ns.t")) == ["v1.metadata.json", "version-hint.text"]


def test_a_table_is_not_created_elsewhere(tree: Catalog, tmp_path: Path) -> None:
    with pytest.raises(InvalidUpdate, match="lies where its name says"):
        named.create(tree, new_table("ns.u", f"file://{tmp_path}/tables/ns/elsewhere"))

    named.create(tree, new_table("ns.u", f"{tmp_path}/tables/ns/u/"))
    named.check_exists(tree, TABLES, identifier("ns.u"))


@pytest.mark.parametrize(
    "name", ["a/b", "a\\b", "%2e%2e", "..%2f..%2fetc", "x" * 256, "ä" * 200, "/", "a\x00b", "..", "."]
)
def test_names_that_are_no_folder_lead_nowhere(tree: Catalog, tmp_path: Path, name: str) -> None:
    within, as_namespace = replace(T, name=name), Namespace(("ns", name))
    before = sorted(tmp_path.rglob("*"))

    assert tree.find(within) is None
    assert tree.namespaces.find(tree.warehouse.id, as_namespace) is None
    with pytest.raises(InvalidName):
        named.create(tree, replace(new_table("ns.t"), identifier=within))
    with pytest.raises(InvalidName):
        namespaces.create_namespace(tree, as_namespace, {})
    with pytest.raises(NoSuchTable):
        tables.purge_table(tree, within)
    with pytest.raises(NoSuchNamespace):
        namespaces.drop_namespace(tree, as_namespace)

    assert sorted(tmp_path.rglob("*")) == before


def test_links_lead_nowhere_outside(tree: Catalog, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    metadata_folder(tmp_path, "ns.t").parent.rename(outside)
    (tmp_path / "tables" / "ns" / "t").symlink_to(outside)
    (tmp_path / "tables" / "linked").symlink_to(tmp_path)
    before = sorted(tmp_path.rglob("*"))

    for attempt in (
        lambda: mark(tree, "ours"),
        lambda: tables.purge_table(tree, T),
        lambda: named.load(tree, TABLES, T),
        lambda: named.create(tree, new_table("linked.u")),
        lambda: namespaces.create_namespace(tree, Namespace(("linked", "deeper")), {}),
    ):
        with pytest.raises(IcetowerError):
            attempt()

    assert sorted(tmp_path.rglob("*")) == before
    assert tree.pointers.list_names(tree.warehouse.id, Namespace(("ns",)), TABLES.of_pointer) == ()
    assert tree.namespaces.list_children(tree.warehouse.id, None) == ("ns",)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\x1f\x8b broken", b'{"format-version": 2}', b"null"])
def test_a_version_that_cannot_be_read_is_said_so_and_nothing_is_written(
    tree: Catalog, tmp_path: Path, content: bytes
) -> None:
    folder = metadata_folder(tmp_path, "ns.t")
    (folder / "v2.metadata.json").write_bytes(content)

    with pytest.raises(CorruptMetadata):
        named.load(tree, TABLES, T)
    with pytest.raises(CorruptMetadata):
        mark(tree, "ours")

    assert [name for name in files_in(folder) if version_in(name)] == ["v1.metadata.json", "v2.metadata.json"]


def test_foreign_files_are_no_versions(tree: Catalog, tmp_path: Path) -> None:
    folder = metadata_folder(tmp_path, "ns.t")
    for name in (
        "00009-x.metadata.json",
        "v3.json",
        "v2.metadata.json.tmp",
        "V2.metadata.json",
        "v2_.metadata.json",
    ):
        (folder / name).write_bytes(b"{}")
    (folder / "v9.metadata.json").mkdir()
    (folder / "version-hint.text").unlink()

    mark(tree, "ours")

    assert (folder / "v2.metadata.json").is_file()


def test_a_folder_with_another_catalogs_metadata_is_neither_table_nor_namespace(
    tree: Catalog, tmp_path: Path
) -> None:
    other = tmp_path / "tables" / "ns" / "other" / "metadata"
    other.mkdir(parents=True)
    (other / "00000-x.metadata.json").write_bytes(b"{}")

    assert named.list_names(tree, TABLES, Namespace(("ns",)), Page()).items == ("t",)
    assert namespaces.list_namespaces(tree, Namespace(("ns",)), Page()).items == []
    with pytest.raises(NamespaceExists):
        namespaces.create_namespace(tree, Namespace(("ns", "other")), {})
    with pytest.raises(TreeRefusal, match="another catalog's table"):
        named.create(tree, new_table("ns.other"))
    with pytest.raises(NoSuchNamespace):
        namespaces.load_namespace(tree, Namespace(("ns", "other", "deeper")))


def test_a_folder_is_a_table_or_a_namespace(tree: Catalog) -> None:
    namespaces.create_namespace(tree, Namespace(("ns", "deep", "deeper")), {})

    with pytest.raises(NamespaceExists):
        named.create(tree, new_table("ns.deep"))
    with pytest.raises(NamespaceExists):
        namespaces.create_namespace(tree, Namespace(("ns", "t")), {})
    with pytest.raises(NamespaceExists):
        namespaces.create_namespace(tree, Namespace(("ns", "t", "below")), {})


def test_namespaces_have_no_properties(tree: Catalog, tmp_path: Path) -> None:
    namespaces.create_namespace(tree, Namespace(("by_spark",)), {"owner": "root"})

    assert namespaces.load_namespace(tree, Namespace(("by_spark",))) == {
        "location": f"file://{tmp_path}/tables/by_spark"
    }
    with pytest.raises(TreeRefusal, match="namespaces are folders"):
        namespaces.create_namespace(tree, Namespace(("other",)), {"a": "b"})
    with pytest.raises(TreeRefusal, match="namespaces are folders"):
        namespaces.update_namespace_properties(tree, Namespace(("ns",)), [], {"a": "b"})
    assert namespaces.update_namespace_properties(tree, Namespace(("ns",)), ["a"], {}).missing == ["a"]
    assert not (tmp_path / "tables" / "other").exists()


def test_what_files_alone_cannot_do_is_refused(tree: Catalog, tmp_path: Path) -> None:
    named.create(tree, new_table("ns.u"))
    before = {path: path.read_bytes() for path in tmp_path.glob("tables/**/*") if path.is_file()}
    commits = [TableCommit(name, (), [SetProperties(updates={"a": "b"})]) for name in (T, identifier("ns.u"))]
    location = named.load(tree, TABLES, T).location
    for attempt, words in (
        (lambda: named.drop(tree, TABLES, T), "purgeRequested=true"),
        (lambda: named.unregister(tree, TABLES, T), "unregister ns.t"),
        (lambda: named.rename(tree, TABLES, T, identifier("ns.v")), "the name is the folder"),
        (lambda: named.register(tree, TABLES, identifier("ns.v"), str(location)), "register a metadata file"),
        (lambda: commit_transaction(tree, commits), "several tables together"),
        (lambda: begin_job(tree, T, Job.EXPIRE_SNAPSHOTS, {}, 60_000), "upkeep of ns.t in jobs"),
        (lambda: table_upkeep(tree, T), "upkeep of ns.t in jobs"),
        (lambda: adopt_table(tree, identifier("ns.v"), f"file://{tmp_path}/tables/ns/t"), "adopt a table"),
    ):
        with pytest.raises(TreeRefusal, match=words):
            attempt()
    with pytest.raises(OrphansRefused, match="file-system table"):
        preview_orphans(tree, T, OrphanWish())
    wanted = Wanted(namespace=T.namespace, name=T.name)
    for look, words, instead in (
        (lambda: named.load(replace(tree, as_of_ms=START_MS), TABLES, T), "show files@", "TIMESTAMP AS OF"),
        (lambda: load_catalog_diff(tree, str(START_MS), None, Page()), "compare two times", "table diff"),
        (lambda: restore_tables(tree, [T], str(START_MS), dry_run=True), "restore tables", "table rollback"),
        (lambda: plan_rebuild(tree, RebuildWish()), "rebuild anything", "--layout hadoop"),
        (lambda: list_dropped(tree, Page()), "list what was dropped", "icetower.protected=true"),
        (lambda: undrop(tree, wanted), "bring back what was dropped", "table adopt"),
        (lambda: purge_dropped(tree, wanted), "purge what was dropped", "table adopt"),
    ):
        with pytest.raises(
            TreeRefusal, match=f"Cannot {words}.* in a warehouse of layout hadoop: .*{instead}"
        ):
            look()

    assert {path: path.read_bytes() for path in tmp_path.glob("tables/**/*") if path.is_file()} == before
    assert named.list_names(tree, VIEWS, Namespace(("ns",)), Page()).items == ()


def test_a_transaction_of_one_table_is_a_commit(tree: Catalog) -> None:
    commit_transaction(tree, [TableCommit(T, (), [SetProperties(updates={"a": "b"})])])

    assert properties(tree)["a"] == "b"


def test_dropping_deletes_the_folder_and_nothing_else(tree: Catalog, tmp_path: Path) -> None:
    named.create(tree, new_table("ns.u"))
    data = tmp_path / "tables" / "ns" / "t" / "data" / "day=1"
    data.mkdir(parents=True)
    (data / "x.parquet").write_bytes(b"x")

    tables.purge_table(tree, T)

    assert not (tmp_path / "tables" / "ns" / "t").exists()
    named.check_exists(tree, TABLES, identifier("ns.u"))
    with pytest.raises(NoSuchTable):
        tables.purge_table(tree, T)


def test_gc_enabled_false_keeps_a_table_from_being_dropped(tree: Catalog, tmp_path: Path) -> None:
    mark(tree, "gc.enabled", "false")

    with pytest.raises(PurgeRefused):
        tables.purge_table(tree, T)
    assert metadata_folder(tmp_path, "ns.t").exists()


def test_a_table_around_another_one_is_not_dropped(tree: Catalog, tmp_path: Path) -> None:
    inner = tmp_path / "tables" / "ns" / "t" / "data" / "inner" / "metadata"
    inner.mkdir(parents=True)
    (inner / "v1.metadata.json").write_bytes(b"{}")

    with pytest.raises(TreeRefusal, match="another table is in its folder"):
        tables.purge_table(tree, T)
    assert (metadata_folder(tmp_path, "ns.t") / "v1.metadata.json").exists()


def test_history_says_what_files_say(tree: Catalog) -> None:
    mark(tree, "one")

    found = history.load_history(tree, T, Page())

    assert [event.event for event in found.events.items] == ["committed", "created"]
    assert [event.author for event in found.events.items] == ["", ""]
    assert all(event.at_ms > 1_600_000_000_000 for event in found.events.items)


def test_a_key_is_remembered_with_what_it_did(tree: Catalog) -> None:
    claim = IdempotencyClaim("tester", "key", "hash", START_MS, START_MS + 10**9, "")
    caller = replace(tree, caller=replace(CALLER, claim=claim))

    mark(caller, "once")

    outcome = tree.server.idempotency_keys.find("tester", "key", START_MS)
    assert outcome is not None
    loaded = named.load(tree, TABLES, T)
    assert outcome.result == f"{loaded.location}\n{loaded.metadata.uuid}"


# ---------------------------------------------------------------------------------------------- adopting


@pytest.fixture
def beside(tree: Catalog, tmp_path: Path) -> Catalog:
    """A warehouse of rows whose root is the same folder."""
    catalog = new_warehouse(tree.server, "rows", f"file://{tmp_path}/tables")
    namespaces.create_namespace(catalog, Namespace(("sales",)), {})
    return catalog


S = identifier("sales.t")


def test_adopting_registers_the_newest_version(tree: Catalog, beside: Catalog, tmp_path: Path) -> None:
    mark(tree, "one")
    (metadata_folder(tmp_path, "ns.t") / "version-hint.text").write_text("1")

    adopted = adopt_table(beside, S, f"file://{tmp_path}/tables/ns/t/")

    assert (adopted.version, adopted.later) == (2, [])
    assert named.load(beside, TABLES, S).metadata.properties["one"] == "here"
    committed = commit_table(beside, S, (), [SetProperties(updates={"two": "here"})])
    assert committed.location is not None
    assert committed.location.rpartition("/")[2].startswith("00000-")


def test_after_adoption_the_old_name_takes_no_commits_and_is_not_dropped(
    tree: Catalog, beside: Catalog, tmp_path: Path
) -> None:
    adopt_table(beside, S, f"file://{tmp_path}/tables/ns/t")

    with pytest.raises(TreeRefusal, match="the table was adopted"):
        mark(tree, "fork")
    with pytest.raises(TreeRefusal, match="adopted"):
        tables.purge_table(tree, T)

    commit_table(beside, S, (), [SetProperties(updates={"two": "here"})])
    assert named.load(beside, TABLES, S).metadata.properties["two"] == "here"
    assert "two" not in properties(tree)


def test_forks_are_found_by_health_as_long_as_the_table_lives(
    tree: Catalog, beside: Catalog, tmp_path: Path
) -> None:
    location = adopt_table(beside, S, f"file://{tmp_path}/tables/ns/t").metadata_location
    commit_table(beside, S, (), [SetProperties(updates={"write.metadata.previous-versions-max": "1"})])
    for number in range(4):
        commit_table(beside, S, (), [SetProperties(updates={f"mark-{number}": "here"})])
    assert "forked" not in [finding.code for finding in table_health(beside, S).findings]

    write_version(metadata_folder(tmp_path, "ns.t"), 2)

    (finding,) = [finding for finding in table_health(beside, S).findings if finding.code == "forked"]
    assert "v2.metadata.json" in finding.message
    assert [where.rpartition("/")[2] for where in adopted_from(beside, location).later] == [
        "v2.metadata.json"
    ]


def forked_in_overview(catalog: Catalog) -> list[str]:
    """Return the versions that the overview of a warehouse shows as forks, without a look at their folder."""
    (table,) = warehouse_health(catalog, Page(None, 10)).items
    assert isinstance(table, TableHealth)
    shown = [finding.message for finding in table.findings if finding.code == "forked"]
    assert len(shown) == bool(table.facts.forks)
    return [fork.rpartition("/")[2] for fork in table.facts.forks]


def test_the_overview_shows_the_forks_that_the_last_look_has_found(
    tree: Catalog, beside: Catalog, tmp_path: Path
) -> None:
    adopt_table(beside, S, f"file://{tmp_path}/tables/ns/t")
    assert forked_in_overview(beside) == []
    fork = write_version(metadata_folder(tmp_path, "ns.t"), 2)
    assert forked_in_overview(beside) == []

    table_health(beside, S)
    assert forked_in_overview(beside) == ["v2.metadata.json"]
    fork.unlink()
    assert forked_in_overview(beside) == ["v2.metadata.json"]
    commit_table(beside, S, (), [SetProperties(updates={"next": "metadata file"})])
    assert forked_in_overview(beside) == []


def test_adopting_needs_a_table(beside: Catalog, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="No file-system table"):
        adopt_table(beside, S, f"file://{tmp_path}/tables/ns")
    with pytest.raises(NoSuchTable):
        named.load(beside, TABLES, S)


def test_rules_of_rows_delete_no_file_of_a_file_system_table(
    tree: Catalog, beside: Catalog, tmp_path: Path
) -> None:
    """A table of rows lies around the folders: by rows alone everything in them would be its own."""
    root = f"file://{tmp_path}/tables"
    around = Owner(
        TableUuid("another"), None, frozenset([f"file://{tmp_path}/tables/".replace("file:///", "file:///")])
    )
    owner = replace(around, places=frozenset([_folder(root)]))
    theirs = [Location(f"{root}/ns/t/metadata/v1.metadata.json"), Location(f"{root}/ns/t/data/x.parquet")]
    own = Location(f"{root}/ns/x.parquet")

    assert deletable(beside, owner, [*theirs, own]) == [own]
    adopted = replace(owner, places=frozenset([_folder(f"{root}/ns/t")]))
    assert deletable(beside, adopted, theirs) == theirs[1:]  # a version is that of another table
    adopted = replace(adopted, uuid=tree.read_now(TABLES, T)[1].uuid)
    assert deletable(beside, adopted, theirs) == theirs


def _folder(location: str) -> str:
    return "file://" + location.removeprefix("file://") + "/"

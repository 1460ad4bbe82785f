"""Deletes, overwrites and compactions that lost a race, and conflict with nothing that came first."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.catalog.commits.rebases import RebaseRequest
from app.catalog.context.catalog import Catalog
from app.engine.expressions.expression_json import parse_expression
from app.engine.model.files.manifests import DataFile
from app.engine.model.settings.rebase_settings import RebaseMode
from app.errors import RequirementFailed
from tests.builders.racing_writers import added_by, commit, live_files, rebasing_table, recount, writer
from tests.builders.tables import load_table
from tests.builders.writing_engine import Commit, Made, WritingEngine

NOTHING_READ = RebaseRequest(conflict_filter=parse_expression(False))


@pytest.fixture(params=[2, 3])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(autouse=True)
def filled(catalog: Catalog, version: int) -> list[str]:
    """Return the files of a table that has two manifests: three files in the first, one in the second."""
    rebasing_table(catalog, "conflict-free", version)
    commit(catalog, writer(catalog).append(["a", "b", "c"]))
    commit(catalog, writer(catalog).append(["d"]))
    return sorted(live_files(catalog))


def why_not(catalog: Catalog, made: Commit, request: RebaseRequest | None = None) -> str:
    before = load_table(catalog).location
    with pytest.raises(RequirementFailed) as refused:
        commit(catalog, made, *([request] if request else []))
    assert load_table(catalog).location == before
    assert refused.value.not_rebased is not None
    return f"{refused.value.not_rebased.reason}: {refused.value.not_rebased.message}"


def check_totals(catalog: Catalog) -> None:
    snapshot, tally = load_table(catalog).metadata.current_snapshot, recount(catalog)
    assert snapshot is not None
    summary = snapshot.summary or {}
    assert (summary["total-data-files"], summary["total-records"]) == (
        str(tally.data_files),
        str(tally.records),
    )


def test_compaction_and_append_do_not_make_each_other_fail(catalog: Catalog, filled: list[str]) -> None:
    compactor, other = writer(catalog), writer(catalog)
    rows = sum(live_files(catalog).values())
    compacted, appended = compactor.compact(filled[:2]), other.append(["e"])
    commit(catalog, appended)

    assert commit(catalog, compacted).rebased

    new = added_by(appended, other)
    assert live_files(catalog).keys() == {*filled[2:], *new, *added_by(compacted, compactor)}
    assert sum(live_files(catalog).values()) == rows + sum(live_files(catalog)[path] for path in new)
    check_totals(catalog)


def test_append_beside_a_compaction_lands(catalog: Catalog, filled: list[str]) -> None:
    compactor, other = writer(catalog), writer(catalog)
    compacted, appended = compactor.compact(filled[:2]), other.append(["e"])
    commit(catalog, compacted)

    assert commit(catalog, appended).rebased

    assert live_files(catalog).keys() == {
        *filled[2:],
        *added_by(appended, other),
        *added_by(compacted, compactor),
    }
    check_totals(catalog)


def test_two_compactions_of_files_of_one_manifest_both_land(catalog: Catalog, filled: list[str]) -> None:
    """The second one's rewritten manifest names files that the first one removed: the server writes another."""
    one, two = writer(catalog), writer(catalog)
    first, second = one.compact(filled[:1]), two.compact(filled[1:2])
    rows = sum(live_files(catalog).values())
    commit(catalog, first)

    landed = commit(catalog, second)

    assert landed.rebased
    assert live_files(catalog).keys() == {*filled[2:], *added_by(first, one), *added_by(second, two)}
    assert sum(live_files(catalog).values()) == rows
    check_totals(catalog)
    # The manifest that only adds is its writer's own.
    now = writer(catalog)
    paths = {item.manifest_path for item in now.manifests(now.head())}
    own = {
        item.manifest_path
        for item in two.manifests(second.snapshot)
        if item.added_snapshot_id == second.snapshot.snapshot_id
    }
    assert (len(own), len(own & paths)) == (2, 1)


def test_compactions_of_the_same_file_do_not_both_land(catalog: Catalog, filled: list[str]) -> None:
    first, second = writer(catalog).compact(filled[:2]), writer(catalog).compact(filled[1:3])
    commit(catalog, first)

    assert why_not(catalog, second).startswith("conflict: Missing required files to delete")


def test_delete_of_files_beside_a_compaction_of_others_lands(catalog: Catalog, filled: list[str]) -> None:
    deleted, compactor = writer(catalog).delete(filled[:1]), writer(catalog)
    compacted = compactor.compact(filled[1:2])
    commit(catalog, compacted)

    assert commit(catalog, deleted).rebased

    assert live_files(catalog).keys() == {*filled[2:], *added_by(compacted, compactor)}
    check_totals(catalog)


def test_delete_beside_an_append_is_refused_unless_its_filter_says_that_it_did_not_read_it(
    catalog: Catalog, filled: list[str]
) -> None:
    deleter, other = writer(catalog), writer(catalog)
    deleted, appended = deleter.delete(filled[:1]), other.append(["e"])
    commit(catalog, appended)

    assert why_not(catalog, deleted).startswith("conflict: Found conflicting files that can contain records")
    assert commit(catalog, deleted, NOTHING_READ).rebased

    assert live_files(catalog).keys() == {*filled[1:], *added_by(appended, other)}
    check_totals(catalog)


def test_summary_may_say_what_was_read(catalog: Catalog, filled: list[str]) -> None:
    deleter = writer(catalog)

    def say(text: str) -> Callable[[Made], None]:
        return lambda made: made.summary.update({"icetower.conflict-filter": text})

    deleted = deleter.delete(filled[:1], falsify=say("false"))
    nonsense = writer(catalog).delete(filled[1:2], falsify=say("{"))
    commit(catalog, writer(catalog).append(["e"]))

    assert why_not(catalog, nonsense).startswith("unreadable: Invalid icetower.conflict-filter")
    assert commit(catalog, deleted).rebased

    assert len(live_files(catalog)) == 4


def test_filter_that_does_not_fit_the_table_proves_nothing(catalog: Catalog, filled: list[str]) -> None:
    deleted = writer(catalog).delete(filled[:1])
    commit(catalog, writer(catalog).append(["e"]))
    request = RebaseRequest(conflict_filter=parse_expression({"type": "is-null", "term": "nowhere"}))

    assert "nowhere" in why_not(catalog, deleted, request)


def test_overwrite_beside_a_delete_of_other_files_is_refused_without_a_filter(
    catalog: Catalog, filled: list[str]
) -> None:
    """Its new rows may have been computed from those that are gone."""
    overwriter = writer(catalog)
    overwritten = overwriter.delete(filled[:1], ["new"])
    commit(catalog, writer(catalog).delete(filled[3:]))

    assert why_not(catalog, overwritten).startswith("conflict: Found conflicting deleted files")
    assert commit(catalog, overwritten, NOTHING_READ).rebased

    assert live_files(catalog).keys() == {*filled[1:3], *added_by(overwritten, overwriter)}


def test_two_deletes_of_other_files_both_land(catalog: Catalog, filled: list[str]) -> None:
    first, second = writer(catalog).delete(filled[:1]), writer(catalog).delete(filled[1:2])
    commit(catalog, first)

    assert commit(catalog, second).rebased

    assert live_files(catalog).keys() == set(filled[2:])
    check_totals(catalog)


def test_delete_of_a_file_that_is_gone_is_refused(catalog: Catalog, filled: list[str]) -> None:
    first, second = writer(catalog).delete(filled[:2]), writer(catalog).delete(filled[1:3])
    commit(catalog, first)

    assert why_not(catalog, second, NOTHING_READ).startswith("conflict: Missing required files to delete")


def test_append_that_merged_manifests_lands_with_what_came_first(catalog: Catalog, filled: list[str]) -> None:
    merger, other = writer(catalog), writer(catalog)
    merged, appended = merger.append(["e"], merge=True), other.append(["f"])
    commit(catalog, appended)

    assert commit(catalog, merged).rebased

    assert live_files(catalog).keys() == {*filled, *added_by(appended, other), *added_by(merged, merger)}
    check_totals(catalog)


def test_append_that_merged_manifests_lands_after_another_that_did(
    catalog: Catalog, filled: list[str]
) -> None:
    one, two = writer(catalog), writer(catalog)
    first, second = one.append(["e"], merge=True), two.append(["f"], merge=True)
    commit(catalog, first)

    assert commit(catalog, second).rebased

    assert live_files(catalog).keys() == {*filled, *added_by(first, one), *added_by(second, two)}
    check_totals(catalog)


def test_append_with_a_filter_has_read_what_matches_it(catalog: Catalog, filled: list[str]) -> None:
    appended = writer(catalog).append(["e"])
    commit(catalog, writer(catalog).append(["f"]))
    everything = RebaseRequest(conflict_filter=parse_expression(True))

    assert why_not(catalog, appended, everything).startswith("conflict: Found conflicting files")
    assert live_files(catalog).keys() > set(filled)


def test_rewritten_manifests_land_beside_an_append(catalog: Catalog, filled: list[str]) -> None:
    rewriter, other = writer(catalog), writer(catalog)
    rewritten, appended = rewriter.rewrite_manifests(), other.append(["e"])
    commit(catalog, appended)

    assert commit(catalog, rewritten).rebased

    assert live_files(catalog).keys() == {*filled, *added_by(appended, other)}
    check_totals(catalog)


def test_only_appends_are_rebased_where_only_they_are_asked_for(catalog: Catalog, filled: list[str]) -> None:
    deleted = writer(catalog).delete(filled[:1])
    commit(catalog, writer(catalog).delete(filled[3:]))
    only_appends = RebaseRequest(mode=RebaseMode.APPENDS)

    assert why_not(catalog, deleted, only_appends) == (
        "mode: It is of operation delete, and only appends are rebased here."
    )
    assert len(live_files(catalog)) == 3


def deletes_for(engine: WritingEngine, path: str) -> DataFile:
    """Return the deletes of one data file's rows, as the format version has them."""
    return engine.vector_for(path) if engine.format_version > 2 else engine.position_deletes_for(path)


def test_row_deletes_of_other_files_both_land_where_nothing_else_was_read(
    catalog: Catalog, filled: list[str]
) -> None:
    one, two = writer(catalog), writer(catalog)
    first, second = one.delete_with(deletes_for(one, filled[0])), two.delete_with(deletes_for(two, filled[1]))
    commit(catalog, first)

    assert why_not(catalog, second).startswith("conflict: Found new conflicting delete files")
    assert commit(catalog, second, NOTHING_READ).rebased

    assert recount(catalog).delete_files == 2


def test_second_deletion_vector_of_a_file_is_refused(
    catalog: Catalog, filled: list[str], version: int
) -> None:
    one, two = writer(catalog), writer(catalog)
    first, second = one.delete_with(deletes_for(one, filled[0])), two.delete_with(deletes_for(two, filled[0]))
    commit(catalog, first)

    if version > 2:
        assert why_not(catalog, second, NOTHING_READ).startswith(
            "conflict: Found concurrently added deletion vector"
        )
    else:
        assert commit(catalog, second, NOTHING_READ).rebased


def test_row_deletes_of_a_file_that_was_compacted_are_refused(catalog: Catalog, filled: list[str]) -> None:
    deleter = writer(catalog)
    deleted = deleter.delete_with(deletes_for(deleter, filled[0]))
    commit(catalog, writer(catalog).compact(filled[:2]))

    assert why_not(catalog, deleted, NOTHING_READ).startswith("conflict: Cannot commit, missing data files")


def test_compaction_of_a_file_of_which_rows_were_deleted_since_is_refused(
    catalog: Catalog, filled: list[str]
) -> None:
    compacted, deleter = writer(catalog).compact(filled[:2]), writer(catalog)
    commit(catalog, deleter.delete_with(deletes_for(deleter, filled[0])))

    assert why_not(catalog, compacted).startswith("conflict: Cannot commit, found new delete")


def test_delete_of_a_file_of_which_rows_were_deleted_since_is_refused(
    catalog: Catalog, filled: list[str]
) -> None:
    """It would leave deletes behind that are about nothing."""
    deleted, deleter = writer(catalog).delete(filled[:1]), writer(catalog)
    commit(catalog, deleter.delete_with(deletes_for(deleter, filled[0])))

    assert why_not(catalog, deleted, NOTHING_READ).startswith("conflict: Cannot commit, found new delete")


def test_row_deletes_that_do_not_say_of_which_files_are_refused_once_a_file_may_be_gone(
    catalog: Catalog, filled: list[str], version: int
) -> None:
    if version > 2:
        pytest.skip("such deletes are for version 2")
    beside_append, beside_compaction = writer(catalog), writer(catalog)
    first = beside_append.delete_with(beside_append.position_deletes_for(None))
    second = beside_compaction.delete_with(beside_compaction.position_deletes_for(None))
    commit(catalog, writer(catalog).append(["e"]))
    assert commit(catalog, first, NOTHING_READ).rebased

    commit(catalog, writer(catalog).compact(filled[:2]))

    assert why_not(catalog, second, NOTHING_READ).startswith("conflict: Its position deletes do not say")


def test_equality_deletes_are_refused_once_data_came_in(catalog: Catalog, filled: list[str]) -> None:
    beside_delete, beside_append = writer(catalog), writer(catalog)
    first = beside_delete.delete_with(beside_delete.equality_deletes())
    second = beside_append.delete_with(beside_append.equality_deletes())
    commit(catalog, writer(catalog).delete(filled[:1]))
    assert commit(catalog, first, NOTHING_READ).rebased

    commit(catalog, writer(catalog).append(["e"]))

    assert why_not(catalog, second, NOTHING_READ).startswith("conflict: Found conflicting files")


def test_dropped_equality_deletes_are_refused_where_older_data_may_have_come_back(
    catalog: Catalog, filled: list[str]
) -> None:
    """A manifest that came since has files older than the deletes: whether these still apply is not known."""
    first = writer(catalog)
    equality = first.equality_deletes()
    commit(catalog, first.delete_with(equality))
    dropper = writer(catalog)
    dropped = dropper.delete([equality.file_path], operation="replace")
    commit(catalog, writer(catalog).rewrite_manifests())

    assert why_not(catalog, dropped, NOTHING_READ).startswith(
        "conflict: It removes delete files that may apply"
    )

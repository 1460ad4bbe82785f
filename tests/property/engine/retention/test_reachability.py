"""Reachability: what is deleted is exactly what nothing that stays reaches, wherever deletion was cut off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from app.engine.model.files.manifests import EntryStatus, FileContent
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.snapshot import Snapshot
from app.engine.model.statistics import PartitionStatisticsFile
from app.engine.model.table_metadata import TableMetadata
from app.engine.retention.reachability import CleanupLevel, expired_between, unreachable_files
from tests.builders.histories import ListedManifests, branch, entry, history, snapshot

SNAPSHOTS = 6
MANIFESTS = [f"memory://wh/t/metadata/m{number}.avro" for number in range(7)]
PATHS = [f"memory://wh/t/data/f{number}.parquet" for number in range(8)]
STATISTICS = [f"memory://wh/t/metadata/s{number}.puffin" for number in range(3)]


@dataclass
class Case:
    before: TableMetadata
    after: TableMetadata
    source: ListedManifests

    def reached(self, snapshots: tuple[Snapshot, ...]) -> set[str]:
        """Return all files that snapshots reach; read around what is broken."""
        found: set[str] = set()
        for item in snapshots:
            found.add(str(item.manifest_list))
            for manifest in self.source.lists[item.snapshot_id]:
                found.add(manifest)
                found |= {each.file.file_path for each in self.source.contents[manifest] if each.is_live}
        return found


def some_but_the_last(snapshots: Sequence[Snapshot]) -> st.SearchStrategy[set[SnapshotId]]:
    ids = [item.snapshot_id for item in snapshots[:-1]]
    return st.sets(st.sampled_from(ids)) if ids else st.just(set())


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Snapshots that share manifests, manifests that share files (deletion vectors do), and some that go."""
    entries = st.builds(
        entry,
        st.sampled_from(PATHS),
        st.sampled_from(EntryStatus),
        st.sampled_from(FileContent),
    )
    contents = {manifest: draw(st.lists(entries, max_size=4)) for manifest in MANIFESTS}
    snapshots = [snapshot(number) for number in range(1, draw(st.integers(1, SNAPSHOTS)) + 1)]
    lists = {
        item.snapshot_id: draw(st.lists(st.sampled_from(MANIFESTS), unique=True, max_size=5))
        for item in snapshots
    }
    statistics = tuple(
        PartitionStatisticsFile(
            snapshot_id=item.snapshot_id,
            # A writer may name any file as statistics: live data, a manifest, a manifest list.
            statistics_path=Location(
                draw(st.sampled_from([*STATISTICS, *PATHS, *MANIFESTS, str(item.manifest_list)]))
            ),
            file_size_in_bytes=5,
        )
        for item in snapshots
    )
    gone = draw(some_but_the_last(snapshots))
    head = snapshots[-1]
    before = history(snapshots, {"main": branch(head.snapshot_id)}).replace(partition_statistics=statistics)
    left = tuple(item for item in snapshots if item.snapshot_id not in gone)
    after = before.replace(
        snapshots=left,
        partition_statistics=tuple(
            item for item in statistics if item.snapshot_id in {each.snapshot_id for each in left}
        ),
    )
    return Case(before, after, ListedManifests(dict(lists), dict(contents)))


def statistics_paths(metadata: TableMetadata) -> set[str]:
    return {item.statistics_path for item in metadata.partition_statistics}


@given(cases())
def test_what_goes_is_what_was_reached_and_is_no_more(case: Case) -> None:
    found = unreachable_files(expired_between(case.before, case.after), case.after, case.source)

    reached = case.reached(case.before.snapshots) - case.reached(case.after.snapshots)
    unused = statistics_paths(case.before) - statistics_paths(case.after)
    kept = case.reached(case.after.snapshots) | statistics_paths(case.after)
    assert {item.location for item in found} == (reached | unused) - kept
    assert len(list(found)) == len({item.location for item in found})


@given(cases(), st.sampled_from([CleanupLevel.METADATA_ONLY, CleanupLevel.NONE]))
def test_less_goes_at_lower_levels(case: Case, level: CleanupLevel) -> None:
    everything = unreachable_files(expired_between(case.before, case.after), case.after, case.source)

    found = unreachable_files(expired_between(case.before, case.after), case.after, case.source, level=level)

    assert found.content == ()
    if level is CleanupLevel.METADATA_ONLY:
        assert found.manifests == everything.manifests
        assert found.manifest_lists == everything.manifest_lists
        assert found.statistics == everything.statistics
    else:
        assert list(found) == []


@given(cases(), st.data())
def test_nothing_that_stays_goes_whatever_cannot_be_read(case: Case, data: st.DataObject) -> None:
    files = [*MANIFESTS, *(str(item.manifest_list) for item in case.before.snapshots)]
    case.source.broken = data.draw(st.sets(st.sampled_from(files)))
    case.source.gone = data.draw(st.sets(st.sampled_from(files)))

    found = unreachable_files(expired_between(case.before, case.after), case.after, case.source)

    deleted = {item.location for item in found}
    assert not deleted & case.reached(case.after.snapshots)
    if found.obstacle is not None:
        assert deleted == set()


@given(cases(), st.data())
def test_nothing_at_all_goes_when_a_remaining_manifest_that_matters_is_unreadable(
    case: Case, data: st.DataObject
) -> None:
    remaining = sorted(
        {path for item in case.after.snapshots for path in case.source.lists[item.snapshot_id]}
    )
    if not remaining:
        return
    whole = unreachable_files(expired_between(case.before, case.after), case.after, case.source)
    victim = data.draw(st.sampled_from(remaining))
    case.source.broken = {victim}

    found = unreachable_files(expired_between(case.before, case.after), case.after, case.source)

    if whole.content:
        # Some data file was about to go, and nobody can say that the unreadable manifest does not name it.
        assert list(found) == []
        assert found.obstacle is not None
        assert victim in found.obstacle
    else:
        assert found.content == ()


@given(cases(), st.data())
def test_deletion_that_was_cut_off_anywhere_goes_on_to_the_same_end(case: Case, data: st.DataObject) -> None:
    expired = expired_between(case.before, case.after)
    whole = unreachable_files(expired, case.after, case.source)
    # Within a group files go in any order; the next group is not begun before.
    at = data.draw(st.integers(0, 3))
    finished = [item.location for group in whole.groups[:at] for item in group]
    begun = [item.location for item in whole.groups[at] if data.draw(st.booleans())]
    case.source.gone = {*finished, *begun}

    again = unreachable_files(expired, case.after, case.source)

    deleted_in_all = case.source.gone | {item.location for item in again}
    assert again.obstacle is None
    assert deleted_in_all == {item.location for item in whole}


@given(cases(), st.data())
def test_what_a_later_expiry_took_out_is_left_to_it(case: Case, data: st.DataObject) -> None:
    later = data.draw(some_but_the_last(case.after.snapshots))
    current = case.after.replace(
        snapshots=tuple(item for item in case.after.snapshots if item.snapshot_id not in later),
        partition_statistics=(),
    )
    first, second = expired_between(case.before, case.after), expired_between(case.after, current)

    of_first = unreachable_files(first, current, case.source, landed=case.after)

    assert not {item.location for item in of_first} & case.reached(case.after.snapshots)
    case.source.gone = {item.location for item in of_first}
    of_second = unreachable_files(second, current, case.source, landed=current)
    both = {item.location for item in (*of_first, *of_second)}
    assert both >= case.reached(case.before.snapshots) - case.reached(current.snapshots)

"""Retention: the one pass over the tree decides like a walk from each ref does, and never against a ref."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.engine.model.ids import SnapshotId
from app.engine.model.refs import SnapshotRef
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.engine.retention.expired_snapshots import ExpiryWish, plan_expiry
from tests.builders.catalogs import START_MS
from tests.builders.histories import branch, history, snapshot, tag

MOST = 14
NOW_MS = START_MS + MOST * 1000


@st.composite
def histories(draw: st.DrawFn) -> TableMetadata:
    """A forest of snapshots whose times need not agree with their order, and refs with and without retention."""
    count = draw(st.integers(1, MOST))
    snapshots = []
    for number in range(1, count + 1):
        # A parent may be missing (0): it expired before.
        parent = draw(st.one_of(st.none(), st.integers(0, number - 1))) if number > 1 else None
        at_ms = START_MS + draw(st.integers(0, MOST)) * 1000
        snapshots.append(snapshot(number, parent, at_ms))
    ages = st.one_of(st.none(), st.integers(1, MOST * 1000))
    counts = st.one_of(st.none(), st.integers(1, 4))
    refs: dict[str, SnapshotRef] = {}
    names = draw(st.sets(st.sampled_from(["main", "audit", "dev", "eu", "v1", "v2"]), max_size=6))
    for name in sorted(names):
        number = draw(st.integers(1, count))
        if name.startswith("v"):
            refs[name] = tag(number, **given_only(max_ref_age_ms=draw(ages)))
        else:
            refs[name] = branch(
                number,
                **given_only(
                    max_ref_age_ms=draw(ages),
                    max_snapshot_age_ms=draw(ages),
                    min_snapshots_to_keep=draw(counts),
                ),
            )
    properties = {
        name: str(value)
        for name, value in {
            "history.expire.max-snapshot-age-ms": draw(ages),
            "history.expire.min-snapshots-to-keep": draw(counts),
            "history.expire.max-ref-age-ms": draw(ages),
        }.items()
        if value is not None
    }
    shuffled = draw(st.permutations(snapshots))
    return history(shuffled, refs, properties)


def given_only(**values: int | None) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


WISHES = st.builds(
    ExpiryWish,
    older_than_ms=st.one_of(st.none(), st.integers(START_MS, NOW_MS)),
    retain_last=st.one_of(st.none(), st.integers(1, 5)),
)


def retained_refs(metadata: TableMetadata) -> dict[str, SnapshotRef]:
    longest = int(metadata.properties.get("history.expire.max-ref-age-ms", 2**63 - 1))
    return {
        name: ref
        for name, ref in metadata.snapshot_refs.items()
        if name == "main"
        or NOW_MS - metadata.snapshots_by_id[ref.snapshot_id].timestamp_ms <= (ref.max_ref_age_ms or longest)
    }


def ancestors(metadata: TableMetadata, snapshot_id: SnapshotId | None) -> list[Snapshot]:
    found = []
    while snapshot_id is not None and snapshot_id in metadata.snapshots_by_id:
        found.append(metadata.snapshots_by_id[snapshot_id])
        snapshot_id = found[-1].parent_snapshot_id
    return found


def kept_by_walking(metadata: TableMetadata, wish: ExpiryWish) -> set[SnapshotId]:
    """Decide as the protocol's text does: from each ref by itself, however long that takes."""
    properties = metadata.properties
    age_ms = int(properties.get("history.expire.max-snapshot-age-ms", 5 * 24 * 3_600_000))
    since_ms = NOW_MS - age_ms if wish.older_than_ms is None else wish.older_than_ms
    least = wish.retain_last or int(properties.get("history.expire.min-snapshots-to-keep", 1))
    refs = retained_refs(metadata)
    kept = {ref.snapshot_id for ref in refs.values()}
    referenced = set(kept)
    for ref in refs.values():
        if not ref.is_branch:
            continue
        line = ancestors(metadata, ref.snapshot_id)
        referenced |= {item.snapshot_id for item in line}
        own_since_ms = NOW_MS - ref.max_snapshot_age_ms if ref.max_snapshot_age_ms else since_ms
        for place, item in enumerate(line):
            if place >= (ref.min_snapshots_to_keep or least) and item.timestamp_ms < own_since_ms:
                break
            kept.add(item.snapshot_id)
    staged = {item.snapshot_id for item in metadata.snapshots if item.timestamp_ms >= since_ms} - referenced
    return kept | staged


@given(histories(), WISHES)
def test_what_is_kept_is_what_walking_from_each_ref_keeps(metadata: TableMetadata, wish: ExpiryWish) -> None:
    planned = plan_expiry(metadata, wish, NOW_MS)

    gone = {item.snapshot_id for item in planned.snapshots}
    assert metadata.snapshots_by_id.keys() - gone == kept_by_walking(metadata, wish)
    assert set(planned.ref_names) == metadata.snapshot_refs.keys() - retained_refs(metadata).keys()


@given(histories(), WISHES, st.data())
def test_no_ref_that_stays_loses_its_snapshot(
    metadata: TableMetadata, wish: ExpiryWish, data: st.DataObject
) -> None:
    heads = {ref.snapshot_id for ref in retained_refs(metadata).values()}
    free = sorted(metadata.snapshots_by_id.keys() - heads)
    chosen = data.draw(st.sets(st.sampled_from(free))) if free else set()

    planned = plan_expiry(
        metadata, ExpiryWish(wish.older_than_ms, wish.retain_last, frozenset(chosen)), NOW_MS
    )

    gone = {item.snapshot_id for item in planned.snapshots}
    left = {name: ref for name, ref in metadata.snapshot_refs.items() if name not in planned.ref_names}
    assert not gone & {ref.snapshot_id for ref in left.values()}
    assert chosen <= gone
    assert "main" not in planned.ref_names


@given(histories(), WISHES)
def test_expiring_again_at_once_finds_nothing_more_than_what_lost_its_branch(
    metadata: TableMetadata, wish: ExpiryWish
) -> None:
    planned = plan_expiry(metadata, wish, NOW_MS)
    gone = {item.snapshot_id for item in planned.snapshots}
    after = metadata.replace(
        snapshots=tuple(item for item in metadata.snapshots if item.snapshot_id not in gone),
        refs={name: ref for name, ref in metadata.snapshot_refs.items() if name not in planned.ref_names},
    )

    again = plan_expiry(after, wish, NOW_MS)

    assert again.snapshots == ()
    assert again.ref_names == ()

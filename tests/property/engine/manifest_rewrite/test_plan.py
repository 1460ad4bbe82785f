"""A rewrite of any manifests places every live entry once, in the order of partitions, and is soon done."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.engine.manifest_rewrite.plan import ManifestStock, RewriteGroup, plan_rewrite, take_stock
from app.engine.manifest_rewrite.wishes import RewriteRules
from app.engine.model.files.entry_filters import EntryFacts
from app.engine.model.files.manifests import (
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestFile,
    Partition,
)
from app.engine.model.ids import Location, SnapshotId, SpecId

HEADER, A_FILE, TARGET = 100, 10, 300
FITTING = (TARGET - HEADER) // A_FILE
PARTITIONS = st.tuples(st.none() | st.integers(0, 6), st.none() | st.sampled_from("abc"))


def rules(*, rewrites_all: bool = False, max_bytes: int | None = None) -> RewriteRules:
    return RewriteRules(TARGET, HEADER, rewrites_all, frozenset({SpecId(0)}), {SpecId(0): (0, 1)}, max_bytes)


def stock(number: int, partitions: list[Partition], deleted: int = 0) -> ManifestStock:
    entries = [
        EntryFacts(
            EntryStatus.DELETED if at >= len(partitions) else EntryStatus.EXISTING,
            SnapshotId(1),
            number,
            number,
            FileContent.DATA,
            Location(f"{number}-{at}"),
            "parquet",
            at,
            100,
            number * 1000 + at,
            partitions[at] if at < len(partitions) else (0, "a"),
        )
        for at in range(len(partitions) + deleted)
    ]
    length = HEADER + A_FILE * len(entries)
    manifest = ManifestFile(Location(str(number)), length, SpecId(0), deleted_files_count=deleted)
    return take_stock(manifest, entries)


stocks = st.lists(
    st.tuples(st.lists(PARTITIONS, max_size=30), st.integers(0, 5)), min_size=1, max_size=8
).map(lambda found: [stock(number, list(live), deleted) for number, (live, deleted) in enumerate(found)])


def written(groups: list[RewriteGroup]) -> list[list[Partition]]:
    """Return the partitions of the entries of each new manifest, in their order."""
    found = []
    for group in groups:
        new: list[dict[int, Partition]] = [{} for _ in range(group.new_count)]
        for item, ranks in zip(group.replaced, group.ranks(), strict=True):
            for number, rank in zip(item.numbers, ranks, strict=True):
                to = new[group.new_manifest_of(rank)]
                assert rank not in to
                to[rank] = item.partitions[number]
        found += [[to[rank] for rank in sorted(to)] for to in new]
    return found


@given(stocks, st.booleans())
def test_every_live_entry_has_one_place_in_the_order_of_partitions(
    found: list[ManifestStock], rewrites_all: bool
) -> None:
    groups = plan_rewrite(found, rules(rewrites_all=rewrites_all))

    placed = written(groups)
    replaced = [item for group in groups for item in group.replaced]
    for group in groups:
        assert group.content is ManifestContent.DATA
        ranks = sorted(rank for of_one in group.ranks() for rank in of_one)
        assert ranks == list(range(group.tally.files))
    flat = [partition for manifest in placed for partition in manifest]
    expected = [item.partitions[number] for item in replaced for number in item.numbers]
    key = rules().order_of
    assert flat == sorted(expected, key=lambda partition: key(SpecId(0), partition))
    assert all(0 < len(manifest) <= FITTING for manifest in placed)
    if rewrites_all:
        untouched = len(found) - len(replaced)
        assert untouched in (0, len(found))


@given(stocks)
def test_what_was_rewritten_is_not_worth_it_again(found: list[ManifestStock]) -> None:
    placed = written(plan_rewrite(found, rules(rewrites_all=True)))
    if not placed:
        return
    clustered = [stock(number, manifest) for number, manifest in enumerate(placed)]

    assert plan_rewrite(clustered, rules()) == []


@given(stocks)
def test_a_partial_rewrite_never_makes_more_manifests(found: list[ManifestStock]) -> None:
    groups = plan_rewrite(found, rules())

    for group in groups:
        large = sum(len(item.numbers) > FITTING for item in group.replaced)
        live = sum(bool(item.tally.files) for item in group.replaced)
        assert group.new_count <= live + large


@given(stocks, st.integers(0, 5 * TARGET))
def test_parts_stay_below_their_bytes_and_come_to_an_end(found: list[ManifestStock], max_bytes: int) -> None:
    live = sorted((stock.partitions[number] for stock in found for number in stock.numbers), key=repr)
    for part in range(40):
        groups = plan_rewrite(found, rules(max_bytes=max_bytes))
        if not groups:
            break
        going = [item for group in groups for item in group.replaced]
        costs = [item.manifest.manifest_length for item in going if item.tally.files]
        assert sum(costs) <= max_bytes
        new = [stock(100 * part + number, manifest) for number, manifest in enumerate(written(groups))]
        gone = set(map(id, going))
        found = [*(item for item in found if id(item) not in gone), *new]
        assert (
            sorted((item.partitions[number] for item in found for number in item.numbers), key=repr) == live
        )
    else:
        raise AssertionError("it never ends")
    # What is left is too large for the bytes, or alone, or the smallest would become two again.
    left = [item for group in plan_rewrite(found, rules()) for item in group.replaced]
    smallest = sorted(left, key=lambda item: item.manifest.manifest_length)[:2]
    assert (
        len(left) < 2
        or sum(item.manifest.manifest_length for item in smallest) > max_bytes
        or sum(item.tally.files for item in smallest) > FITTING
    )


def test_part_that_would_be_as_it_was_gives_way_to_one_that_is_worth_it() -> None:
    found = [stock(number, [(0, "a")] * files) for number, files in enumerate((11, 10, 3))]
    lengths = [item.manifest.manifest_length for item in found]

    (group,) = plan_rewrite(found, rules(max_bytes=lengths[0] + lengths[1]))

    assert list(group.replaced) == found[1:]
    assert group.new_count == 1


def test_manifests_that_would_be_as_they_were_are_left_alone() -> None:
    found = [stock(number, [(number, "a")] * 11) for number in range(3)]
    length = found[0].manifest.manifest_length

    assert len(plan_rewrite(found, rules())[0].replaced) == 3
    assert plan_rewrite(found, rules(max_bytes=2 * length)) == []


def test_small_appends_beside_large_manifests_are_merged_alone() -> None:
    large = [stock(number, [(number, "a")] * FITTING) for number in range(4)]
    small = [stock(10 + number, [(0, "a"), (1, "a"), (2, "a"), (3, "a")]) for number in range(3)]

    (group,) = plan_rewrite([*small, *large], rules())

    assert list(group.replaced) == small
    assert group.new_count == 1


def test_partitions_that_many_full_manifests_share_are_brought_together() -> None:
    scattered = [stock(number, [(at % 5, "a") for at in range(FITTING)]) for number in range(6)]

    (group,) = plan_rewrite(scattered, rules())

    assert len(group.replaced) == 6
    assert max(sum((value, "a") in manifest for manifest in written([group])) for value in range(5)) <= 3

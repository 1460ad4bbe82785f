from __future__ import annotations

import math
from dataclasses import replace
from uuid import UUID

import pytest

from app.engine.model.files.manifests import DataFile, FileContent, ManifestFile, Partition, partition_key
from app.engine.model.ids import Location, SpecId

MANIFEST = ManifestFile(Location("m"), 10, SpecId(1))
FILE = DataFile(FileContent.DATA, Location("f"), "parquet", SpecId(1), (1.5, "a"), 1, 1)
OTHER_NAN = math.inf - math.inf
A_UUID = UUID(int=7)


@pytest.mark.parametrize(
    ("added", "existing", "live", "may_have"),
    [
        (2, 1, 3, True),
        (0, 0, 0, False),
        (0, 1, 1, True),
        (None, 0, None, True),
        (0, None, None, True),
        (None, None, None, True),
    ],
)
def test_live_files_are_the_added_and_the_existing(
    added: int | None, existing: int | None, live: int | None, may_have: bool
) -> None:
    manifest = replace(
        MANIFEST, added_files_count=added, existing_files_count=existing, deleted_files_count=5
    )

    assert (manifest.live_files, manifest.may_have_live_files) == (live, may_have)


def test_deletion_vectors_of_one_file_are_told_apart() -> None:
    assert FILE.key == replace(FILE, partition=(2.5, "b")).key
    assert len({replace(FILE, content_offset=offset).key for offset in (None, 4, 40)}) == 3


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ((1, "a"), (1, "a"), True),
        ((1, "a"), (1, "b"), False),
        ((math.nan, "a"), (OTHER_NAN, "a"), True),
        ((0.0,), (-0.0,), False),
        ((-0.0,), (-0.0,), True),
        ((None,), (math.nan,), False),
        ((A_UUID, 1), (A_UUID.bytes, 1), True),
        ((A_UUID,), (b"another 16 bytes",), False),
        ((), (), True),
    ],
)
def test_partitions_are_the_same_if_their_keys_are(one: Partition, other: Partition, same: bool) -> None:
    keys = [replace(FILE, partition=partition).partition_key for partition in (one, other)]

    assert (keys[0] == keys[1]) is (len(set(keys)) == 1) is same
    assert keys[0] == partition_key(SpecId(1), one) != partition_key(SpecId(2), one)

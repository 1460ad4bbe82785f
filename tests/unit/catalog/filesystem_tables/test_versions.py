"""Versions of a file-system table: which is the newest, and who creates the next."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path

import pytest

from app.catalog.filesystem_tables.versions import TableFolder, TableVersion
from app.engine.model.ids import Location
from app.errors import CommitStateUnknown, FileMissing, FilesUnavailable
from app.fileio.local import LocalFiles
from app.tree_errors import TreeRefusal


@pytest.fixture
def metadata(tmp_path: Path) -> Path:
    folder = tmp_path / "t" / "metadata"
    folder.mkdir(parents=True)
    return folder


def folder_of(metadata: Path, files: LocalFiles | None = None) -> TableFolder:
    return TableFolder(files or LocalFiles(), Location(f"file://{metadata.parent}"))


def put(metadata: Path, *names: str) -> None:
    for name in names:
        (metadata / name).write_bytes(b"{}")


def current(metadata: Path) -> str | None:
    found = folder_of(metadata).find_current()
    return None if found is None else found.location.rpartition("/")[2]


def no_log(_version: TableVersion | None) -> Mapping[int, int]:
    return {}


def base_is_there() -> bool:
    return True


def create(metadata: Path, name: str, content: bytes = b"ours") -> bool:
    return folder_of(metadata).create(Location(f"file://{metadata}/{name}"), content, no_log, base_is_there)


def test_nothing_is_no_table(metadata: Path) -> None:
    put(metadata, "00000-uuid.metadata.json", "v0.metadata.json", "vx.metadata.json", "v01.metadata.json")

    assert current(metadata) is None


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (None, "v3.metadata.json"),
        ("1", "v3.metadata.json"),
        ("3", "v3.metadata.json"),
        ("2\nv9", "v3.metadata.json"),
        ("", "v3.metadata.json"),
        ("three", "v3.metadata.json"),
        (" 2", "v3.metadata.json"),
        ("-1", "v3.metadata.json"),
        ("99999999999999999999", "v3.metadata.json"),
        ("17", "v3.metadata.json"),
        ("0", "v3.metadata.json"),
        ("x" * 5_000, "v3.metadata.json"),
    ],
)
def test_any_hint_leads_to_the_newest_version(metadata: Path, hint: str | None, expected: str) -> None:
    put(metadata, "v1.metadata.json", "v2.gz.metadata.json", "v3.metadata.json")
    if hint is not None:
        (metadata / "version-hint.text").write_text(hint)

    assert current(metadata) == expected


def test_a_gap_ends_the_walk_from_a_hint_as_it_does_in_java(metadata: Path) -> None:
    put(metadata, "v1.metadata.json", "v2.metadata.json", "v4.metadata.json")
    (metadata / "version-hint.text").write_text("1")

    assert current(metadata) == "v2.metadata.json"


def test_readers_prefer_the_plain_name(metadata: Path) -> None:
    put(metadata, "v1.metadata.json.gz", "v1.gz.metadata.json")
    assert current(metadata) == "v1.gz.metadata.json"
    put(metadata, "v1.metadata.json")
    assert current(metadata) == "v1.metadata.json"


@pytest.mark.parametrize("taken", ["v2.metadata.json", "v2.gz.metadata.json", "v2.metadata.json.gz"])
def test_a_version_that_is_there_under_any_name_is_not_created_again(metadata: Path, taken: str) -> None:
    put(metadata, "v1.metadata.json", taken)

    assert not create(metadata, "v2.metadata.json")
    assert not create(metadata, "v2.gz.metadata.json")

    assert sorted(path.name for path in metadata.iterdir()) == sorted(["v1.metadata.json", taken])


def test_a_missing_version_below_a_later_one_refuses_the_commit(metadata: Path) -> None:
    put(metadata, "v1.metadata.json", "v3.metadata.json")
    (metadata / "version-hint.text").write_text("1")

    with pytest.raises(TreeRefusal, match="no version 2, but a later one"):
        create(metadata, "v2.metadata.json")


def test_only_one_of_two_writers_creates_a_version(metadata: Path) -> None:
    put(metadata, "v1.metadata.json")

    assert create(metadata, "v2.metadata.json", b"first")
    assert not create(metadata, "v2.metadata.json", b"second")

    assert (metadata / "v2.metadata.json").read_bytes() == b"first"
    assert not list(metadata.glob(".*"))


class SendingTwice(LocalFiles):
    """Sends a request again that was carried out, as proxies do with a PUT of which the answer was lost."""

    def write_once(self, location: Location, content: bytes) -> None:
        super().write_once(location, content)
        super().write_once(location, content)


def test_a_version_that_finds_itself_was_created(metadata: Path) -> None:
    """To say that another writer was first would let the caller delete what it names."""
    put(metadata, "v1.metadata.json")
    location = Location(f"file://{metadata}/v2.metadata.json")

    assert folder_of(metadata, SendingTwice()).create(location, b"ours", no_log, base_is_there)

    assert current(metadata) == "v2.metadata.json"


class SendingTwiceAndSilent(SendingTwice):
    """Answers no question about what is there then."""

    def read_at_most(self, location: Location, max_bytes: int) -> bytes | None:
        if location.endswith("v2.metadata.json"):
            raise FilesUnavailable("no answer")
        return super().read_at_most(location, max_bytes)


def test_a_version_of_which_nobody_says_who_created_it_is_unknown(metadata: Path) -> None:
    put(metadata, "v1.metadata.json")
    location = Location(f"file://{metadata}/v2.metadata.json")

    with pytest.raises(CommitStateUnknown, match="who has created"):
        folder_of(metadata, SendingTwiceAndSilent()).create(location, b"ours", no_log, base_is_there)

    assert current(metadata) == "v2.metadata.json"


class Interfering(LocalFiles):
    """Lets another program write at the moment after a version is created."""

    def __init__(self, *writes: Path, gone: tuple[Path, ...] = ()) -> None:
        super().__init__()
        self.writes, self.gone = writes, gone

    def write_once(self, location: Location, content: bytes) -> None:
        super().write_once(location, content)
        for path in self.writes:
            path.write_bytes(b"{}")


def test_a_plain_twin_that_comes_at_the_same_moment_wins_over_ours(metadata: Path) -> None:
    put(metadata, "v1.gz.metadata.json")
    files = Interfering(metadata / "v2.metadata.json")

    created = folder_of(metadata, files).create(
        Location(f"file://{metadata}/v2.gz.metadata.json"), gzip.compress(b"{}"), no_log, base_is_there
    )

    assert not created
    assert sorted(path.name for path in metadata.iterdir()) == ["v1.gz.metadata.json", "v2.metadata.json"]


def test_our_plain_file_wins_over_a_compressed_twin(metadata: Path) -> None:
    put(metadata, "v1.metadata.json")
    files = Interfering(metadata / "v2.gz.metadata.json")

    assert folder_of(metadata, files).create(
        Location(f"file://{metadata}/v2.metadata.json"), b"{}", no_log, base_is_there
    )
    assert current(metadata) == "v2.metadata.json"


@pytest.mark.parametrize(
    ("moment_in_log", "lands"),
    [(100, True), (99, False)],
    ids=["the later version is built on ours", "ours came when its version had been and gone"],
)
def test_a_later_version_says_by_its_log_whether_ours_counts(
    metadata: Path, moment_in_log: int, lands: bool
) -> None:
    put(metadata, "v1.metadata.json")
    files = Interfering(metadata / "v3.metadata.json")

    def log_of(version: TableVersion | None) -> Mapping[int, int]:
        return {2: 100} if version is None else {1: 50, 2: moment_in_log}

    created = folder_of(metadata, files).create(
        Location(f"file://{metadata}/v2.metadata.json"), b"{}", log_of, base_is_there
    )

    assert created is lands
    assert (metadata / "v2.metadata.json").exists() is lands


def test_a_log_that_does_not_go_back_so_far_leaves_it_unknown(metadata: Path) -> None:
    put(metadata, "v1.metadata.json")
    files = Interfering(metadata / "v3.metadata.json")

    with pytest.raises(CommitStateUnknown):
        folder_of(metadata, files).create(
            Location(f"file://{metadata}/v2.metadata.json"), b"{}", no_log, base_is_there
        )

    assert (metadata / "v2.metadata.json").exists()
    assert not folder_of(metadata).has_created(
        Location(f"file://{metadata}/v2.metadata.json"), b"{}", no_log, base_is_there
    )


class SilentAfterwards(LocalFiles):
    """Answers nothing any more once a version is written."""

    is_silent = False

    def write_once(self, location: Location, content: bytes) -> None:
        super().write_once(location, content)
        self.is_silent = True

    def exists(self, location: Location) -> bool:
        if self.is_silent:
            raise FilesUnavailable("silent")
        return super().exists(location)


def test_a_version_that_cannot_be_looked_at_again_leaves_it_unknown(metadata: Path) -> None:
    """To say that it failed would let the caller delete what it names."""
    put(metadata, "v1.metadata.json")

    with pytest.raises(CommitStateUnknown):
        folder_of(metadata, SilentAfterwards()).create(
            Location(f"file://{metadata}/v2.metadata.json"), b"{}", no_log, base_is_there
        )

    assert current(metadata) == "v2.metadata.json"


def test_a_version_whose_base_is_gone_is_taken_back(metadata: Path) -> None:
    put(metadata, "v1.metadata.json")

    created = folder_of(metadata).create(
        Location(f"file://{metadata}/v2.metadata.json"), b"{}", no_log, lambda: False
    )

    assert not created
    assert current(metadata) == "v1.metadata.json"


class Flickering(LocalFiles):
    """Fails to read the hint now and then, as S3 does where it is being replaced."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures

    def read_at_most(self, location: Location, max_bytes: int) -> bytes | None:
        if location.endswith("version-hint.text") and self.failures:
            self.failures -= 1
            raise FilesUnavailable("the answer ended early")
        return super().read_at_most(location, max_bytes)


def test_a_hint_that_is_replaced_while_it_is_read_is_read_again(metadata: Path) -> None:
    put(metadata, "v1.metadata.json", "v7.metadata.json")
    (metadata / "version-hint.text").write_bytes(b"1")

    found = folder_of(metadata, Flickering(1)).find_current()

    assert found is not None
    assert found.number == 1
    with pytest.raises(FilesUnavailable):
        folder_of(metadata, Flickering(2)).find_current()


def test_what_was_created_is_known_afterwards(metadata: Path) -> None:
    put(metadata, "v1.metadata.json")
    location = Location(f"file://{metadata}/v2.metadata.json")

    assert not folder_of(metadata).has_created(location, b"ours", no_log, base_is_there)
    assert create(metadata, "v2.metadata.json")
    assert folder_of(metadata).has_created(location, b"ours", no_log, base_is_there)
    assert not folder_of(metadata).has_created(location, b"another's", no_log, base_is_there)


def test_a_folder_that_is_gone_is_not_made_again(metadata: Path) -> None:
    metadata.rmdir()

    with pytest.raises(FileMissing):
        create(metadata, "v1.metadata.json")
    assert not metadata.exists()


def test_the_hint_is_exact_digits_and_never_goes_back(metadata: Path) -> None:
    put(metadata, "v1.metadata.json", "v2.metadata.json")
    (metadata / ".version-hint.text.crc").write_bytes(b"old")

    folder_of(metadata).write_hint(2)
    assert (metadata / "version-hint.text").read_bytes() == b"2"
    assert not (metadata / ".version-hint.text.crc").exists()
    folder_of(metadata).write_hint(1)
    assert (metadata / "version-hint.text").read_bytes() == b"2"
    (metadata / "version-hint.text").write_bytes(b"17")
    folder_of(metadata).write_hint(2)
    assert (metadata / "version-hint.text").read_bytes() == b"2"


def test_a_checksum_of_an_earlier_file_goes_before_a_version_is_created(metadata: Path) -> None:
    put(metadata, "v1.metadata.json")
    (metadata / ".v2.metadata.json.crc").write_bytes(b"of a file that is gone")

    assert create(metadata, "v2.metadata.json")
    assert not (metadata / ".v2.metadata.json.crc").exists()

"""Health and upkeep of tables whose writers claim what cannot be: every answer is one, and says what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import httpx
import orjson
import pyarrow.parquet as pq
import pytest

from tests.builders.claimed_files import FIELDS, LARGEST, ClaimingWriter
from tests.builders.http_catalog import error_of, http_catalog, make_namespace

UUID = ({"id": 1, "name": "id", "required": False, "type": "uuid"},)
SIXTEEN = bytes(range(16))
LOOKS = ("health", "profile", "maintenance", "properties")


@pytest.fixture
def api(tmp_path: Path) -> Iterator[httpx.Client]:
    with http_catalog(tmp_path) as client:
        make_namespace(client, "a")
        yield client


def numbers_in(value: Any) -> Iterator[int]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from numbers_in(item)
    if isinstance(value, int):
        yield value


def looked_at(writer: ClaimingWriter, what: str) -> dict[str, Any]:
    answer = writer.client.get(f"{writer.path}/{what}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = orjson.loads(answer.content)
    return found


@pytest.mark.parametrize("what", LOOKS)
def test_sums_that_no_client_can_read_are_cut_to_the_largest_long(api: httpx.Client, what: str) -> None:
    writer = ClaimingWriter(api, "huge")
    counts = {1: LARGEST}
    writer.commit(
        writer.file(
            number,
            record_count=LARGEST,
            file_size_in_bytes=LARGEST,
            column_sizes=counts,
            value_counts=counts,
            null_value_counts=counts,
        )
        for number in range(3)
    )

    found = looked_at(writer, what)

    assert all(abs(number) <= LARGEST for number in numbers_in(found))
    if what == "health":
        assert found["files"]["data-bytes"] == found["files"]["rows"] == LARGEST
        assert found["files"]["data-files"] == 3
    if what == "profile":
        (column,) = found["columns"]
        assert (column["value-count"], column["null-share"]) == (LARGEST, 1.0)


def test_rewrite_of_counts_that_no_manifest_list_can_hold_is_refused_in_words(api: httpx.Client) -> None:
    writer = ClaimingWriter(api, "huge")
    writer.commit(*([writer.file(number, record_count=LARGEST)] for number in range(3)))
    before = api.get(writer.path).json()["metadata-location"]

    answer = api.post(f"{writer.path}/rewrite-manifests", json={"all": True})

    status, _, message = error_of(answer)
    assert status == 500
    assert message.startswith(f"Cannot use files of the table at {writer.location}: ")
    assert api.get(writer.path).json()["metadata-location"] == before


def test_partition_statistics_of_counts_that_no_file_can_hold_are_refused_in_words(
    api: httpx.Client,
) -> None:
    writer = ClaimingWriter(api, "huge")
    writer.commit(writer.file(number, record_count=LARGEST) for number in range(3))

    answer = api.post(f"{writer.path}/partition-statistics", json={})

    status, _, message = error_of(answer)
    assert status == 500
    assert message == (
        f"Cannot use files of the table at {writer.location}: data_record_count of a partition is too large for int64"
    )


@pytest.mark.parametrize(
    ("columns", "written_as", "value"), [(FIELDS, "string", "abc"), (UUID, "string", "abc")]
)
def test_partition_values_of_another_type_are_named(
    api: httpx.Client, columns: Any, written_as: str, value: Any
) -> None:
    writer = ClaimingWriter(api, "other-type", columns, written_as)
    writer.commit([writer.file(partition=(value,))])

    for what in LOOKS:
        looked_at(writer, what)
    status, _, message = error_of(api.post(f"{writer.path}/partition-statistics", json={}))

    assert status == 500
    assert message.startswith(
        f"Cannot use files of the table at {writer.location}: a partition value does not"
    )


def test_uuids_that_a_writer_calls_bytes_are_counted(api: httpx.Client) -> None:
    writer = ClaimingWriter(api, "uuids", UUID, "fixed[16]")
    writer.commit([writer.file(partition=(SIXTEEN,))])

    written = api.post(f"{writer.path}/partition-statistics", json={})

    assert written.status_code == 200, written.text
    path = written.json()["statistics-path"].removeprefix("file://")
    assert pq.read_table(path)["partition"].to_pylist() == [{"part": SIXTEEN}]


@pytest.mark.parametrize("total", ["9" * 19, "9" * 5_000, "-1", "many", "", "٣"])
def test_totals_that_cannot_be_are_no_totals(api: httpx.Client, total: str) -> None:
    """Neither health nor a rewrite believes them, and none of them goes on into the next snapshot."""
    writer = ClaimingWriter(api, "claims")
    names = ("total-data-files", "total-delete-files", "total-files-size")
    writer.commit([writer.file(number) for number in range(3)], summary=dict.fromkeys(names, total))

    totals = looked_at(writer, "health")["summary-totals"]
    listed = api.get("/v1/health")
    rewritten = api.post(f"{writer.path}/rewrite-manifests", json={"all": True, "target-size-bytes": 16_384})

    assert totals == {}
    assert listed.json()["tables"][0]["summary-totals"] == {}
    assert rewritten.status_code == 200, rewritten.text


@pytest.mark.parametrize(
    "name",
    [
        "commit.manifest.target-size-bytes",
        "write.target-file-size-bytes",
        "commit.manifest.min-count-to-merge",
    ],
)
@pytest.mark.parametrize("value", ["0", "-1", "9" * 30, "9" * 5_000, "many"])
def test_properties_that_were_never_checked_do_not_stop_health(
    api: httpx.Client, name: str, value: str
) -> None:
    """A registered file has them as another catalog wrote it."""
    writer = ClaimingWriter(api, "sound")
    writer.commit([writer.file()])
    loaded = api.get(writer.path).json()
    document = loaded["metadata"] | {"properties": {name: value, "icetower.maintenance": "recommended"}}
    file = Path(writer.location.removeprefix("file://"), "metadata", "00009-other.metadata.json")
    file.write_bytes(orjson.dumps(document))
    api.delete(writer.path).raise_for_status()
    body = {"name": "sound", "metadata-location": f"file://{file}"}
    api.post("/v1/namespaces/a/register", json=body).raise_for_status()

    for what in LOOKS:
        looked_at(writer, what)
    for what in ("rewrite-manifests", "remove-dangling-deletes", "partition-statistics"):
        answer = api.post(f"{writer.path}/{what}", json={})
        assert answer.status_code == 200, answer.text


def spoil(writer: ClaimingWriter, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the records of the first manifest; it is not packed then, so that it is not shorter."""
    path = Path(writer.location.removeprefix("file://"), "metadata", "m0.avro")
    reader = fastavro.reader(BytesIO(path.read_bytes()))
    records: list[Any] = list(reader)
    for record in records:
        change(record)
    content = BytesIO()
    metadata = {key: text for key, text in reader.metadata.items() if not key.startswith("avro.")}
    fastavro.writer(content, reader.writer_schema, records, codec="null", metadata=metadata)
    path.write_bytes(content.getvalue().ljust(path.stat().st_size, b"\0"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda record: record["data_file"].update(content=7), "7 is not a valid FileContent"),
        (lambda record: record["data_file"].update(content=1), "it is of data, and an entry is not"),
        (lambda record: record.update(status=9), "9 is not a valid EntryStatus"),
    ],
)
def test_entries_of_no_known_kind_are_a_finding_and_no_sum(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], words: str
) -> None:
    with http_catalog(tmp_path) as first:
        make_namespace(first, "a")
        writer = ClaimingWriter(first, "spoilt")
        writer.commit([writer.file(number) for number in range(3)])
        spoil(writer, change)
    with http_catalog(tmp_path) as again:  # one that has not read the manifest yet
        writer.client = again

        health = looked_at(writer, "health")
        plan = looked_at(writer, "maintenance?jobs=rewrite-data-files,expire-snapshots")

    assert health["severity"] == "critical"
    assert (health["findings"][0]["code"], "files" in health) == ("unreadable-manifest", False)
    assert words in health["findings"][0]["message"]
    assert plan["plan"] == []
    assert all(words in left["reason"] for left in plan["left"])
    assert words in plan["damage"]

"""Records of expiries say what deletion needs, and no more: they stay in the queue's rows."""

import orjson

from app.catalog.commits.files.expiry_records import ExpiryRecord
from app.engine.model.snapshot import Snapshot
from app.engine.retention.expired_snapshots import Expiry
from app.engine.retention.reachability import CleanupLevel, Expired


def test_a_record_has_only_what_names_the_manifests_of_a_snapshot() -> None:
    snapshots = tuple(
        Snapshot.from_object(
            {
                "snapshot-id": number,
                "parent-snapshot-id": 1,
                "sequence-number": 7,
                "timestamp-ms": 5,
                "summary": {"operation": "append"},
                "unknown-field": "x" * 1_000,
                **named,
            }
        )
        for number, named in ((1, {"manifest-list": "s3://b/l.avro"}), (2, {"manifests": ["s3://b/m.avro"]}))
    )
    record = ExpiryRecord("key", CleanupLevel.ALL, 9, Expired(snapshots, ()), Expiry(snapshots, ("old",)))

    text = record.to_json()

    assert orjson.loads(text)["snapshots"] == [
        {"snapshot-id": 1, "timestamp-ms": 5, "manifest-list": "s3://b/l.avro"},
        {"snapshot-id": 2, "timestamp-ms": 5, "manifests": ["s3://b/m.avro"]},
    ]
    read = ExpiryRecord.from_json(text)
    assert (read.key, read.cleanup, read.delete_after_ms, read.expiry.ref_names) == (
        "key",
        CleanupLevel.ALL,
        9,
        ("old",),
    )
    assert [snapshot.manifests for snapshot in read.expired.snapshots] == [None, ("s3://b/m.avro",)]

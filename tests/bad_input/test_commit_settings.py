"""Versions, uuids, properties, statistics and keys that no commit may set."""

from __future__ import annotations

import pytest

from tests.bad_input.attacks import Attack, check_refused
from tests.bad_input.commit_bodies import (
    act,
    partition_statistics,
    statistics,
)
from tests.bad_input.commits import NEVER, committing
from tests.bad_input.victim import Victim
from tests.builders.http_catalog import VIEW_VERSION

OTHERS = [
    committing(
        "downgrade", "Cannot downgrade v2 table to v1", act("upgrade-format-version", format_version=1)
    ),
    committing(
        "version 4",
        "Cannot upgrade table to unsupported format version: v4 (supported: v3)",
        act("upgrade-format-version", format_version=4),
    ),
    committing(
        "version of 2^40",
        "Invalid body: updates[0].format-version: Input should be less than or equal to 2147483647",
        act("upgrade-format-version", format_version=2**40),
    ),
    committing(
        "version in words",
        "Invalid body: updates[0].format-version: Input should be a valid integer",
        act("upgrade-format-version", format_version="3"),
    ),
    committing(
        "another uuid",
        f"Cannot reassign uuid: the table has $UUID, the update says {NEVER}",
        act("assign-uuid", uuid=NEVER),
    ),
    committing(
        "a uuid that is none",
        "Invalid body: updates[0].uuid: not a UUID: 'nonsense'",
        act("assign-uuid", uuid="nonsense"),
    ),
    committing(
        "a uuid in braces",
        "Invalid body: updates[0].uuid: not a UUID: …",
        act("assign-uuid", uuid="{" + NEVER + "}"),
    ),
    committing(
        "a uuid with nul",
        "Invalid body: updates[0].uuid: not a UUID: …",
        act("assign-uuid", uuid=NEVER[:-1] + "\0"),
    ),
    committing("uuid is null", "Invalid body: updates[0].uuid: …", act("assign-uuid", uuid=None)),
    committing(
        "location is null",
        "Invalid body: updates[0].location: Input should be a valid string",
        act("set-location", location=None),
    ),
    committing(
        "empty location",
        "Invalid body: updates[0].location: String should have at least 1 character",
        act("set-location", location=""),
    ),
    committing(
        "properties of numbers",
        "Invalid body: updates[0].updates.a: Input should be a valid string",
        act("set-properties", updates={"a": 1}),
    ),
    committing(
        "properties with null",
        "Invalid body: updates[0].updates.a: Input should be a valid string",
        act("set-properties", updates={"a": None}),
    ),
    committing(
        "properties that clients choke on",
        "Table property commit.retry.num-retries must be a whole number, found 'x'",
        act("set-properties", updates={"commit.retry.num-retries": "x"}),
    ),
    committing(
        "good, then bad",
        "Table property gc.enabled must be true or false, found '1'",
        act("set-properties", updates={"a": "b"}),
        act("set-properties", updates={"gc.enabled": "1"}),
    ),
    committing(
        "removals are a text",
        "Invalid body: updates[0].removals: Input should be a valid array",
        act("remove-properties", removals="owner"),
    ),
    committing(
        "statistics are null",
        "Invalid body: updates[0].statistics: …",
        act("set-statistics", statistics=None),
    ),
    committing(
        "statistics without a path",
        "Invalid body: updates[0].statistics.statistics-path: Field required",
        act(
            "set-statistics",
            statistics={
                key: item for key, item in statistics("$LOCATION").items() if key != "statistics-path"
            },
        ),
    ),
    committing(
        "statistics of fields by name",
        "Invalid body: updates[0].statistics.blob-metadata[0].fields[0]: Input should be a valid integer",
        act(
            "set-statistics",
            statistics={
                **statistics("$LOCATION"),
                "blob-metadata": [{"type": "x", "snapshot-id": 1, "sequence-number": 1, "fields": ["id"]}],
            },
        ),
    ),
    committing(
        "statistics with a numeric key",
        "Invalid body: updates[0].statistics.key-metadata: Input should be a valid string",
        act("set-statistics", statistics={**statistics("$LOCATION"), "key-metadata": 7}),
    ),
    committing(
        "partition statistics with a size in words",
        "Invalid body: updates[0].partition-statistics.file-size-in-bytes: Input should be a valid integer",
        act(
            "set-partition-statistics",
            partition_statistics={**partition_statistics("$LOCATION"), "file-size-in-bytes": "43"},
        ),
    ),
    committing(
        "key that is not base64",
        "Invalid body: updates[0].encryption-key.encrypted-key-metadata: not base64",
        act("add-encryption-key", encryption_key={"key-id": "k", "encrypted-key-metadata": "!"}),
    ),
    committing(
        "key with half a byte",
        "Invalid body: updates[0].encryption-key.encrypted-key-metadata: not base64",
        act("add-encryption-key", encryption_key={"key-id": "k", "encrypted-key-metadata": "a"}),
    ),
    committing(
        "a view's update",
        "Cannot apply set-current-view-version to a table: it is for views",
        act("set-current-view-version", view_version_id=1),
    ),
    committing(
        "a view's version",
        "Cannot apply add-view-version to a table: it is for views",
        act("add-view-version", view_version=VIEW_VERSION),
    ),
]


@pytest.mark.parametrize("attack", OTHERS, ids=str)
def test_attack_is_refused_and_changes_nothing(victim: Victim, attack: Attack) -> None:
    check_refused(attack, victim)

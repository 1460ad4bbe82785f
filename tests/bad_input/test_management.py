"""Warehouses that must not come to be, and those that must not go."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bad_input.attacks import DELETE, GET, NO_WAREHOUSE, PATCH, POST, TAKEN, Attack, check_refused
from tests.bad_input.victim import Victim

WAREHOUSES = "/management/v1/warehouses"
BAD_NAME = "Invalid warehouse name …: use letters, digits, '_', '.', '-' …"


def making(name: str, message: str, /, **fields: Any) -> Attack:
    """Return an attempt to create a warehouse."""
    body: dict[str, Any] = {"name": "new", "root-location": "$OUTSIDE/new"}
    body |= {key.replace("_", "-"): value for key, value in fields.items()}
    return Attack(name, POST, WAREHOUSES, 400, message, body=body)


def changing(name: str, message: str, /, **fields: Any) -> Attack:
    """Return an attempt to change the default warehouse."""
    return Attack(
        name,
        PATCH,
        f"{WAREHOUSES}/default",
        400,
        message,
        body={key.replace("_", "-"): value for key, value in fields.items()},
    )


NAMES = [
    making(f"named {name[:20]!r}", BAD_NAME, name=name)
    for name in (
        *(
            "",
            " ",
            ".",
            "..",
            ".hidden",
            "-x",
            "_x",
            "a b",
            "a/b",
            "a\\b",
            "a%2Fb",
            "a\0b",
            "a\nb",
            "ä",
            "😀",
            "a:b",
            "a?b",
            "a#b",
        ),
        *("x" * 129, "config", "CONFIG", "namespaces", "Tables", "views", "transactions", "oauth"),
    )
]

ROOTS = [
    making("no root", "Invalid root location '': Not a location: …", root_location=""),
    making("a relative root", "Invalid root location 'x/y': Not a location: …", root_location="x/y"),
    making(
        "root with dots",
        "Invalid root location …: it contains a '.' or '..' segment",
        root_location="file:///srv/../etc",
    ),
    making(
        "root with packed dots",
        "Invalid root location …: it contains a '.' or '..' segment",
        root_location="s3://b/%2e%2e/x",
    ),
    making(
        "a port after a bucket",
        "Invalid root location …: 'b:443' cannot be a bucket: …",
        root_location="gs://b:443/x",
    ),
    making(
        "a port after an account",
        "Invalid root location …: 'c@a:443' cannot be container@account.host, …",
        root_location="abfss://c@a:443/x",
    ),
    making(
        "root on a host",
        "Invalid root location …: Not a local file: …",
        root_location="file://evil.example/x",
    ),
    making(
        "root of everything",
        "Invalid root location '/': a warehouse is a folder of its own",
        root_location="/",
    ),
    making(
        "root of everything as a uri",
        "Invalid root location 'file:///': a warehouse is a folder of its own",
        root_location="file:///",
    ),
    making(
        "ftp root", "Invalid root location 'ftp://h/x': known schemes are abfs, …", root_location="ftp://h/x"
    ),
    making(
        "http root",
        "Invalid root location …: known schemes are abfs, …",
        root_location="http://169.254.169.254/x",
    ),
    making(
        "bucket without a name", "Invalid root location 's3://': Not a location: …", root_location="s3://"
    ),
    making(
        "bucket with a query",
        "Invalid root location …: it contains '?' or '#', …",
        root_location="s3://b/x?versionId=1",
    ),
    making(
        "folder that some clients cut at a question mark",
        "Invalid root location …: it contains '?' or '#', …",
        root_location="file:///srv/what?/lake",
    ),
    making(
        "folder that some clients cut at a hash",
        "Invalid root location …: it contains '?' or '#', …",
        root_location="$OUTSIDE/C#/lake",
    ),
    making(
        "root with nul", "Invalid root location …: it contains a control character", root_location="/srv/x\0"
    ),
    making(
        "root is a list",
        "Invalid body: root-location: Input should be a valid string",
        root_location=["/srv"],
    ),
]

SETTINGS = [
    making(
        "unknown storage setting",
        "Unknown storage setting s3.acess-key-id; known are s3.access-key-id, …",
        storage={"s3.acess-key-id": "x"},
    ),
    making(
        "storage setting of no store",
        "Unknown storage setting S3.endpoint; known are allowed-locations, and what begins with adls., client., "
        "gcs., hdfs., s3.",
        storage={"S3.endpoint": "http://127.0.0.1:1"},
    ),
    making(
        "storage setting without a store",
        "Unknown storage setting endpoint; known are allowed-locations, and …",
        storage={"endpoint": "http://127.0.0.1:1"},
    ),
    making(
        "further root that is none",
        "Storage setting allowed-locations has 'shared': …",
        storage={"allowed-locations": "s3://shared/tables, shared"},
    ),
    making(
        "further root of no store",
        "Storage setting allowed-locations has 'ftp://x/y': known schemes are …",
        storage={"allowed-locations": "ftp://x/y"},
    ),
    making(
        "storage setting from nowhere",
        "Environment variable ICETOWER_SECRET_GONE of the server is not set (`.env` is not asked); storage setting "
        "s3.region wants it",
        storage={"s3.region": "env:ICETOWER_SECRET_GONE"},
    ),
    *(
        making(
            f"{key} from the server's environment",
            f"Storage setting {key} may not read environment variable HOME: the server's setting "
            "storage_environment allows ICETOWER_SECRET_*",
            storage={key: "env:HOME"},
        )
        for key in (
            "s3.path-style-access",
            "s3.connect-timeout",
            "s3.access-key-id",
            "s3.endpoint",
            "gcs.no-auth",
        )
    ),
    changing(
        "change to what the server's environment holds",
        "Storage setting s3.region may not read environment variable HOME: …",
        storage={"s3.region": "env:HOME"},
    ),
    making(
        "storage of numbers",
        "Invalid body: storage.s3.region: Input should be a valid string",
        storage={"s3.region": 1},
    ),
    making(
        "defaults of null",
        "Invalid body: default-properties.a: Input should be a valid string",
        default_properties={"a": None},
    ),
    making(
        "overrides are a list",
        "Invalid body: override-properties: Input should be an object",
        override_properties=[],
    ),
    changing(
        "change to an unknown setting",
        "Unknown storage setting s3.bogus; known are …",
        storage={"s3.bogus": "1"},
    ),
    changing(
        "change to a setting of no store",
        "Unknown storage setting minio.x; known are allowed-locations, and …",
        storage={"minio.x": "1"},
    ),
    changing("change to nothing known", "Unknown storage setting gcs.x; known are …", storage={"gcs.x": ""}),
    changing(
        "change of numbers", "Invalid body: storage.a: Input should be a valid string", storage={"a": 1}
    ),
]

OTHERS = [
    Attack(
        "name taken",
        POST,
        WAREHOUSES,
        409,
        "Warehouse already exists: other",
        TAKEN,
        {"name": "other", "root-location": "$OUTSIDE/new"},
    ),
    Attack(
        "none of this name", GET, f"{WAREHOUSES}/nope", 404, "Warehouse does not exist: nope", NO_WAREHOUSE
    ),
    Attack(
        "change none", PATCH, f"{WAREHOUSES}/nope", 404, "Warehouse does not exist: nope", NO_WAREHOUSE, {}
    ),
    Attack("drop none", DELETE, f"{WAREHOUSES}/nope", 404, "Warehouse does not exist: nope", NO_WAREHOUSE),
    Attack(
        "drop one in use",
        DELETE,
        f"{WAREHOUSES}/other",
        409,
        "Warehouse other is not empty: drop its namespaces first, and let the purges of their tables finish",
        "WarehouseNotEmptyException",
    ),
    Attack(
        "drop the default one",
        DELETE,
        f"{WAREHOUSES}/default",
        409,
        "Warehouse default is not empty: drop its namespaces first, and let the purges of their tables finish",
        "WarehouseNotEmptyException",
    ),
    Attack(
        "name with nul",
        GET,
        f"{WAREHOUSES}/a%00",
        400,
        "Invalid warehouse name 'a\\x00': it contains '\\x00'",
    ),
    Attack("name with a bad percent", DELETE, f"{WAREHOUSES}/%zz", 400, "Invalid path piece '%zz': …"),
    Attack(
        "name with a slash", GET, f"{WAREHOUSES}/a%2Fb", 404, "Warehouse does not exist: a/b", NO_WAREHOUSE
    ),
    Attack(
        "name with dots", GET, f"{WAREHOUSES}/%2e%2e", 400, "Invalid warehouse name '..': no path can hold it"
    ),
    Attack(
        "put", "PUT", f"{WAREHOUSES}/default", 405, "PUT is not allowed on …: allowed are DELETE, GET, PATCH"
    ),
]


@pytest.mark.parametrize("attack", [*NAMES, *ROOTS, *SETTINGS, *OTHERS], ids=str)
def test_attack_is_refused_and_changes_nothing(victim: Victim, attack: Attack) -> None:
    check_refused(attack, victim)


def test_secrets_are_shown_to_nobody(victim: Victim) -> None:
    body = {
        "name": "secretive",
        "root-location": "s3://bucket/x",
        "storage": {"s3.access-key-id": "AKIA", "s3.secret-access-key": "hunter2"},
        "default-properties": {"token": "hunter3"},
    }

    made = victim.client.post(WAREHOUSES, json=body)

    shown = [made, victim.client.get(WAREHOUSES), victim.client.get(f"{WAREHOUSES}/secretive")]
    assert [answer.status_code for answer in shown] == [200, 200, 200]
    assert not any("hunter" in answer.text for answer in shown)

"""Properties: nonsense is refused, and the nearest value is in force."""

from __future__ import annotations

import pytest

from app.catalog.slots.retries import retries_of
from app.engine.change.logs import DEFAULT_PREVIOUS_VERSIONS
from app.engine.change.view_apply import DEFAULT_HISTORY_ENTRIES
from app.engine.model.settings.guard_settings import guard_settings
from app.engine.model.settings.properties import (
    GC_ENABLED,
    PREVIOUS_VERSIONS_MAX,
    VIEW_HISTORY_ENTRIES,
    allows_deletes,
    bool_property,
)
from app.engine.properties.known import Origin
from app.engine.properties.lookup import (
    KNOWN_PROPERTIES,
    check_properties,
    effective_properties,
    effective_property,
    find_property,
    flaw_of_inherited,
)
from app.engine.retention.expired_snapshots import (
    DEFAULT_MAX_SNAPSHOT_AGE_MS,
    DEFAULT_MIN_SNAPSHOTS,
    MAX_SNAPSHOT_AGE,
    MIN_SNAPSHOTS,
)
from app.engine.scan.scan_splits import SplitSettings
from app.errors import InvalidUpdate


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("commit.retry.num-retries", "x", "must be a whole number, found 'x'"),
        ("commit.retry.num-retries", "-1", "must be at least 0, found -1"),
        ("commit.retry.min-wait-ms", "-1", "must be at least 0, found -1"),
        ("commit.retry.max-wait-ms", "-1", "must be at least 0, found -1"),
        ("commit.retry.total-timeout-ms", "2147483648", "must be at most 2147483647, found 2147483648"),
        ("commit.status-check.num-retries", "-1", "must be at least 0, found -1"),
        ("commit.manifest.min-count-to-merge", "1.5", "must be a whole number, found '1.5'"),
        ("write.metadata.previous-versions-max", "many", "must be a whole number, found 'many'"),
        (
            "write.metadata.previous-versions-max",
            "-3000000000",
            "must be at most 2147483647, found -3000000000",
        ),
        ("version.history.num-entries", "0", "must be at least 1, found 0"),
        ("gc.enabled", "yes", "must be true or false, found 'yes'"),
        ("write.metadata.delete-after-commit.enabled", "1", "must be true or false, found '1'"),
        ("commit.manifest-merge.enabled", "", "must be true or false, found ''"),
        ("replace.drop-dialect.allowed", "x", "must be true or false, found 'x'"),
        ("write.metadata.compression-codec", "zstd", "must be none or gzip, found 'zstd'"),
        ("write.format.default", "csv", "must be parquet, avro or orc, found 'csv'"),
        (
            "write.delete.parquet.page-version",
            "V1",
            "must be v1, v2, PARQUET_1_0 or PARQUET_2_0, found 'V1'",
        ),
        ("write.distribution-mode", "random", "must be none, hash or range, found 'random'"),
        ("write.merge.isolation-level", "dirty", "must be serializable or snapshot, found 'dirty'"),
        (
            "write.metadata.metrics.column.a.b",
            "truncate(0)",
            "must be none, counts, truncate(length) or full, found 'truncate(0)'",
        ),
        (
            "write.parquet.bloom-filter-fpp.column.a",
            "1",
            "must be a number greater than 0 and less than 1, found '1'",
        ),
        (
            "write.orc.bloom.filter.fpp",
            "0.0_5",
            "must be a number greater than 0 and less than 1, found '0.0_5'",
        ),
        ("write.orc.bloom.filter.fpp", "nan", "must be a number greater than 0 and less than 1, found 'nan'"),
        ("encryption.data-key-length", "20", "must be 16, 24 or 32, found '20'"),
        ("schema.name-mapping.default", "{}", "must be a list in JSON, found '{}'"),
        ("read.split.target-size", "0", "must be at least 1, found 0"),
        ("history.expire.min-snapshots-to-keep", "0", "must be at least 1, found 0"),
        ("scan-planning-mode", "Server", "must be client or server, found 'Server'"),
        ("icetower.guard", "on", "must be off, warn or reject, found 'on'"),
        ("icetower.guard", "", "must be off, warn or reject, found ''"),
        (
            "icetower.guard.ignore",
            "all",
            (
                "must be a comma-separated list of bypassed-head, dropped-files, lost-deletes, missing-file, "
                "outside-location, parentless-snapshot, partition-spec, sequence-numbers, summary-totals, found 'all'"
            ),
        ),
        ("icetower.rebase.exactly-once", "yes", "must be allow or refuse, found 'yes'"),
        ("icetower.maintenance", "on", "must be off or recommended, found 'on'"),
        ("icetower.maintenance.expire-snapshots", "yes", "must be on or off, found 'yes'"),
        (
            "icetower.maintenance.windows",
            "22-06",
            "must be times of day in UTC such as 22:00-06:00, with commas between them, found '22-06'",
        ),
    ],
)
def test_nonsense_is_refused_with_what_is_expected(name: str, value: str, message: str) -> None:
    with pytest.raises(InvalidUpdate) as caught:
        check_properties({"harmless": "x", name: value})

    assert str(caught.value) == f"Table property {name} {message}"


def test_values_that_make_sense_pass() -> None:
    check_properties(
        {
            "commit.retry.num-retries": "0",
            "commit.manifest.target-size-bytes": "8589934592",
            "write.metadata.previous-versions-max": "-1",
            "gc.enabled": " TRUE",
            "write.metadata.compression-codec": "GZIP",
            "write.parquet.compression-codec": "ZSTD",
            "write.metadata.metrics.default": "Truncate(32)",
            "write.metadata.metrics.column.": "no column, so no meaning",
            "write.parquet.bloom-filter-ndv.column.a": "5000000000",
            "schema.name-mapping.default": '[{"field-id": 1, "names": ["a"]}]',
            "history.expire.max-ref-age-ms": "9223372036854775807",
            "icetower.maintenance.windows": "22:00-06:00, 12:00-13:00",
            "icetower.guard": "Warn",
            "icetower.guard.ignore": "parentless-snapshot,bypassed-head",
            "anything.else": "\x00",
        }
    )


def test_names_are_known_once_and_their_defaults_make_sense() -> None:
    names = [known.name for known in KNOWN_PROPERTIES]

    assert len(set(names)) == len(names)
    for known in KNOWN_PROPERTIES:
        assert known.default is None or known.kind.flaw(known.default) is None, known.name
        assert known.meaning.endswith("."), known.name


def test_shown_defaults_are_those_that_the_server_works_with() -> None:
    shown = {known.name: known.default for known in KNOWN_PROPERTIES if known.default is not None}

    assert retries_of(shown) == retries_of({})
    assert SplitSettings.of(shown) == SplitSettings.of({})
    worked_with = {
        MAX_SNAPSHOT_AGE: DEFAULT_MAX_SNAPSHOT_AGE_MS,
        MIN_SNAPSHOTS: DEFAULT_MIN_SNAPSHOTS,
        PREVIOUS_VERSIONS_MAX: DEFAULT_PREVIOUS_VERSIONS,
        VIEW_HISTORY_ENTRIES: DEFAULT_HISTORY_ENTRIES,
    }
    assert {name: int(shown[name]) for name in worked_with} == worked_with
    assert bool_property(shown, GC_ENABLED, default=False) is allows_deletes({})


def test_property_of_a_column_is_known_by_its_beginning() -> None:
    found = find_property("write.metadata.metrics.column.a.b")

    assert found is not None
    assert found.shown_name == "write.metadata.metrics.column.<column>"
    assert find_property("write.metadata.metrics.column.") is None


def test_nearest_value_is_in_force() -> None:
    name = "icetower.maintenance"
    layers = {
        Origin.WAREHOUSE: {name: "recommended"},
        Origin.WAREHOUSE_OVERRIDE: {},
        Origin.NAMESPACE: {name: "off"},
        Origin.TABLE: {"other": "x"},
    }

    found = effective_property(layers, name)
    assert (found.value, found.origin) == ("off", Origin.NAMESPACE)
    assert effective_property({**layers, Origin.TABLE: {name: "recommended"}}, name).origin is Origin.TABLE
    assert effective_property({}, name).origin is Origin.DEFAULT


def test_format_properties_are_looked_for_on_the_table_alone() -> None:
    layers = {Origin.NAMESPACE: {"write.format.default": "orc"}, Origin.TABLE: {}}

    found = effective_property(layers, "write.format.default")

    assert (found.value, found.origin) == ("parquet", Origin.DEFAULT)


@pytest.mark.parametrize("override", ["reject", None])
@pytest.mark.parametrize("table", ["off", None])
@pytest.mark.parametrize("warehouse", ["off", None])
def test_guard_in_force_is_the_guard_that_is_used(
    override: str | None, table: str | None, warehouse: str | None
) -> None:
    overrides, own, defaults = (
        {} if value is None else {"icetower.guard": value} for value in (override, table, warehouse)
    )
    layers = {Origin.WAREHOUSE_OVERRIDE: overrides, Origin.TABLE: own, Origin.WAREHOUSE: defaults}

    assert effective_property(layers, "icetower.guard").value == guard_settings(overrides, own, defaults).mode


def test_all_that_is_known_or_set_is_listed_once_by_name() -> None:
    found = effective_properties({Origin.TABLE: {"owner": "me", "gc.enabled": "maybe"}})

    names = [item.name for item in found]
    assert names == sorted(set(names))
    by_name = {item.name: item for item in found}
    assert by_name["owner"].known is None
    assert by_name["gc.enabled"].flaw == "must be true or false, found 'maybe'"
    assert by_name["write.format.default"].value == "parquet"
    assert not any(name.endswith(".") for name in names)


def test_only_what_is_read_from_a_place_is_checked_there() -> None:
    strange = {"icetower.guard": "x", "gc.enabled": "x", "scan-planning-mode": "x"}

    assert flaw_of_inherited({**strange, "icetower.guard": "reject"}, Origin.NAMESPACE) is not None
    assert flaw_of_inherited({"gc.enabled": "x", "scan-planning-mode": "x"}, Origin.NAMESPACE) is None
    assert (
        flaw_of_inherited(strange, Origin.WAREHOUSE)
        == "icetower.guard must be off, warn or reject, found 'x'"
    )
    assert flaw_of_inherited({"icetower.rebase": "x"}, Origin.NAMESPACE) is not None


def test_a_misspelled_name_of_our_own_is_refused_with_the_one_that_was_meant() -> None:
    for name, meant in (
        ("icetower.protectd", "icetower.protected"),
        ("Icetower.Protected", "icetower.protected"),
        ("ICETOWER.GUARD", "icetower.guard"),
        ("icetower.undrop.keep-mss", "icetower.undrop.keep-ms"),
        ("icetower.maintenance.expire-snapshot", "icetower.maintenance.expire-snapshots"),
    ):
        said = f"{name} is not known; did you mean {meant}?"
        with pytest.raises(InvalidUpdate) as refused:
            check_properties({name: "true"})
        assert str(refused.value) == f"Table property {said}"
        assert [flaw_of_inherited({name: "true"}, place) for place in Origin] == [said] * len(Origin)
        assert effective_property({Origin.TABLE: {name: "true"}}, name).flaw == said.removeprefix(f"{name} ")
    with pytest.raises(InvalidUpdate, match=r"icetower\.x+ is not known, and Icetower's own begin so"):
        check_properties({"icetower." + "x" * 100_000: "1"})


def test_every_name_of_our_own_and_any_of_others_is_known() -> None:
    check_properties({"icetower": "1", "icetowers.x": "1", "owner": "me"})
    check_properties({"icetower.moved-to": "x"})


@pytest.mark.parametrize(
    "name",
    ["icetower.undrop.keep-ms", "icetower.undrop.purge-waits", "icetower.guard", "icetower.table-locations"],
)
@pytest.mark.parametrize("place", [Origin.TABLE, Origin.NAMESPACE, Origin.WAREHOUSE])
def test_what_would_do_nothing_where_it_is_set_is_refused(name: str, place: Origin) -> None:
    known = find_property(name)
    assert known is not None
    assert known.default is not None
    given = {"owner": "anna", name: known.default}

    flaw = flaw_of_inherited(given, place)

    assert (flaw is None) == (place in known.read_from)
    if flaw is not None:
        assert flaw.startswith(
            f"{name} does nothing on a {place}: it is looked for in the warehouse's overrides"
        )
    if place is Origin.TABLE and flaw is not None:
        with pytest.raises(InvalidUpdate, match=f"Table property {name} does nothing on a table"):
            check_properties(given)

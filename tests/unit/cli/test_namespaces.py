"""`icetower namespace …` against a real server."""

from __future__ import annotations

from tests.unit.cli.conftest import Icetower


def test_a_namespace_is_created_listed_shown_changed_and_dropped(icetower: Icetower) -> None:
    created = icetower("namespace", "create", "life.inner", "-p", "owner=anna", "-p", "formula=a=b")
    listed = icetower("namespace", "list", "life", "--json")
    changed = icetower("namespace", "set", "life.inner", "owner=bert", "--remove", "formula", "-r", "absent")
    shown = icetower("namespace", "show", "life.inner", "--json")
    dropped = icetower("namespace", "drop", "life.inner")

    assert (created.status, created.out, created.err) == (0, "Created namespace life.inner.\n", "")
    assert listed.json == [["life", "inner"]]
    assert changed.out == "Set owner; removed formula.\n"
    assert changed.err == "Not there to be removed: absent.\n"
    properties = shown.json["properties"]
    assert properties == {"owner": "bert", "location": properties["location"]}
    assert properties["location"].endswith("/life/inner")
    assert (dropped.status, dropped.out) == (0, "Dropped namespace life.inner.\n")
    assert icetower("namespace", "list", "life", "--json").json == []


def test_people_get_tables_and_a_word_when_there_is_nothing(icetower: Icetower, namespace: str) -> None:
    listed = icetower("namespace", "list")
    shown = icetower("namespace", "show", namespace)
    empty = icetower("namespace", "list", namespace)

    assert namespace in [line.strip() for line in listed.out.splitlines()]
    assert "owner = anna" in shown.out
    assert (empty.out, empty.err) == ("", f"No namespaces within {namespace}.\n")


def test_names_with_dots_take_another_separator(icetower: Icetower) -> None:
    assert icetower("namespace", "create", "eu.west/sales v2", "--separator", "/").status == 0

    assert icetower("namespace", "list", "eu.west", "--separator", "/", "--json").json == [
        ["eu.west", "sales v2"]
    ]
    listed = icetower("namespace", "list", "eu.west", "--separator", "/")
    assert "eu.west/sales v2" in listed.out


def test_a_refusal_is_the_servers_sentence_and_status_1(icetower: Icetower) -> None:
    refused = icetower("namespace", "show", "nowhere", "--json")

    assert (refused.status, refused.out) == (1, "")
    assert refused.err == "Error: Namespace does not exist: nowhere\n"


def test_a_change_of_nothing_is_wrong_usage(icetower: Icetower, namespace: str) -> None:
    refused = icetower("namespace", "set", namespace)

    assert refused.status == 2
    assert "nothing to set" in refused.err


def test_changes_can_be_told_as_json(icetower: Icetower, namespace: str) -> None:
    changed = icetower("namespace", "set", namespace, "a=1", "--remove", "owner", "--json")

    assert changed.json == {"updated": ["a"], "removed": ["owner"], "missing": []}

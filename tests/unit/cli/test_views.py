"""`icetower view …` against a real server."""

from __future__ import annotations

from tests.unit.cli.conftest import Icetower


def test_views_are_listed(icetower: Icetower, namespace: str, view: str) -> None:
    assert view == f"{namespace}.big"
    assert icetower("view", "list", namespace, "--json").json == [{"namespace": [namespace], "name": "big"}]
    assert "big" in icetower("view", "list", namespace).out


def test_no_views_is_a_remark(icetower: Icetower, namespace: str) -> None:
    assert icetower("view", "list", namespace).err == f"No views in namespace {namespace}.\n"


def test_a_view_is_shown(icetower: Icetower, view: str) -> None:
    for_people = icetower("view", "show", view).out
    as_json = icetower("view", "show", view, "--json").json

    for fact in (
        "SQL (spark)",
        "SELECT id",
        "FROM orders",
        "1: id long required",
        "1 of 2023-11-14 22:13:20 UTC",
    ):
        assert fact in for_people
    assert as_json["metadata"]["current-version-id"] == 1


def test_a_view_is_renamed_and_dropped(icetower: Icetower, namespace: str, view: str) -> None:
    assert icetower("view", "rename", view, f"{namespace}.small").status == 0
    assert icetower("view", "show", view).err == f"Error: View does not exist: {view}\n"
    assert icetower("view", "drop", f"{namespace}.small").out == f"Dropped view {namespace}.small.\n"


def test_a_view_is_unregistered_and_registered_again(icetower: Icetower, view: str) -> None:
    location = icetower("view", "show", view, "--json").json["metadata-location"]

    left = icetower("view", "unregister", view)

    assert (left.status, left.out) == (0, f"Unregistered view {view}. Its metadata stays at {location}.\n")
    assert icetower("view", "show", view).status == 1

    back = icetower("view", "register", view, location)

    assert (back.status, back.out) == (0, f"Registered view {view} at {location}.\n")
    assert icetower("view", "show", view).status == 0
    assert icetower("view", "register", view, location).status == 1
    assert icetower("view", "register", view, location, "--overwrite").status == 0

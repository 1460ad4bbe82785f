"""`icetower dropped`, `undrop` and `restore` against a real server."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from app.cli.terminal.rendering import FITTED_ROWS
from app.client.catalog import RemoteCatalog
from app.client.past import PastCalls
from app.engine.model.identifiers import Namespace
from tests.unit.cli.conftest import Icetower
from tests.unit.cli.passing_items import PassingItems


def test_what_was_dropped_is_listed_and_comes_back(icetower: Icetower, namespace: str, view: str) -> None:
    icetower("view", "drop", view)
    (entry,) = [
        each for each in icetower("dropped", "list", "--json").json if each["namespace"] == [namespace]
    ]

    assert (entry["name"], entry["kind"], entry["then"]) == ("big", "view", "forgotten")
    assert icetower("undrop", view).out == f"Brought back view {view}.\n"
    assert icetower("undrop", view).status == 1


def test_name_of_one_level_is_that_of_a_namespace(icetower: Icetower, namespace: str, view: str) -> None:
    icetower("view", "drop", view)
    icetower("namespace", "drop", namespace)

    assert "--create-namespace" in icetower("undrop", view).err
    assert icetower("undrop", namespace).out == f"Brought back namespace {namespace}.\n"
    assert icetower("undrop", view).status == 0


def test_namespace_comes_back_under_another_name(icetower: Icetower, namespace: str) -> None:
    icetower("namespace", "drop", namespace)

    assert icetower("undrop", namespace, "--as", f"{namespace}_again").status == 0
    assert icetower("namespace", "show", f"{namespace}_again").status == 0
    assert icetower("namespace", "drop", f"{namespace}_again").status == 0
    purged = icetower("dropped", "purge", f"{namespace}_again", "--yes")
    assert purged.out == f"Purged namespace {namespace}_again.\n"


def test_what_is_dropped_while_a_purge_is_asked_about_stays(
    icetower: Icetower, server_url: str, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SlowPerson(io.StringIO):
        def isatty(self) -> bool:
            return True

        def readline(self, size: int | None = -1) -> str:  # type: ignore[override]  # of two parents that disagree
            make_and_drop()
            return super().readline(-1 if size is None else size)

    def make_and_drop() -> None:
        with RemoteCatalog(server_url) as catalog:
            catalog.namespaces.create(Namespace((namespace,)), {"note": "another"})
            catalog.namespaces.drop(Namespace((namespace,)))

    def ids() -> list[int]:
        found = icetower("dropped", "list", "--json").json
        return [each["id"] for each in found if each["namespace"] == [namespace]]

    icetower("namespace", "drop", namespace)
    before = ids()
    monkeypatch.setattr(sys, "stdin", SlowPerson("y\n"))

    purged = icetower("dropped", "purge", namespace)

    assert (purged.status, f"Purge {namespace}, dropped 20" in purged.err) == (0, True)
    assert len(ids()) == 1
    assert not set(ids()) & set(before)


def test_a_restoration_that_was_asked_about_prints_its_json_alone(
    icetower: Icetower, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Person(io.StringIO):
        def isatty(self) -> bool:
            return True

    ask = PastCalls.restore

    def with_a_change(calls: PastCalls, *wanted: Any, dry_run: bool) -> Any:
        answer = ask(calls, *wanted, dry_run=dry_run)
        if dry_run:
            answer["tables"][0]["updates"] = [{"action": "set-properties"}]
        return answer

    monkeypatch.setattr(sys, "stdin", Person("y\n"))
    monkeypatch.setattr(PastCalls, "restore", with_a_change)

    restored = icetower("restore", table, "--at", "0s", "--json")

    assert (restored.status, "Restore 1 table?" in restored.err) == (0, True)
    assert [each["name"] for each in restored.json["tables"]] == ["orders"]


def test_tables_that_are_as_they_were_are_not_asked_about(icetower: Icetower, table: str) -> None:
    restored = icetower("restore", table, "--at", "0s")
    as_json = icetower("restore", table, "--at", "0s", "--json")

    assert (restored.status, restored.err) == (0, "Nothing is to be restored.\n")
    assert restored.out == f"{table}: snapshot 77; it is as it was\n"
    assert [as_json.status, *(each["updates"] for each in as_json.json["tables"])] == [0, []]


@pytest.mark.parametrize("text", ["yesterday", "2 hours", "h2", ""])
def test_a_time_that_is_none_is_refused_with_the_forms_that_are(icetower: Icetower, text: str) -> None:
    restored = icetower("restore", "a.b", "--at", text)
    differs = icetower("diff", f"default@{text or 'x'}", "default")

    for refused in (restored, differs):
        assert refused.status == 2
        said = " ".join(refused.err.replace("│", "").split())
        assert "is neither an age, like 2h, nor a time, like 2026-11-20 or 2026-11-20T10:00:00Z" in said


def test_differences_are_shown_as_they_come_and_not_kept(
    icetower: Icetower, monkeypatch: pytest.MonkeyPatch
) -> None:
    items, number = PassingItems(), 2 * FITTED_ROWS
    names = (
        items.item(kind="table", changes=[], is_readable=True, before={"namespace": ["a"], "name": f"t{n}"})
        for n in range(number)
    )
    monkeypatch.setattr(PastCalls, "diff", lambda *_: ({"namespaces": [], "names": [each]} for each in names))

    shown = icetower("diff", "default@1d", "default").out

    assert shown.count("went") == number
    assert items.most <= 3

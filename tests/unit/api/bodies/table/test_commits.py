from __future__ import annotations

import json
from typing import Any

import pytest

from app.api.bodies.table.commits import parse_commit, parse_transaction
from app.engine.change.updates import SetProperties
from app.errors import InvalidRequest

ABSENT = '"requirements": [{"type": "assert-create"}]'
PROPERTIES = '"updates": [{"action": "set-properties", "updates": {"a": "1"}}]'
NAME = '"identifier": {"namespace": ["a"], "name": "t"}'


@pytest.mark.parametrize("name", ["requirements", "updates", "identifier"])
def test_member_that_is_given_twice_is_refused(name: str) -> None:
    members = [ABSENT, PROPERTIES, NAME]
    again = next(member for member in members if member.startswith(f'"{name}"'))
    change = "{" + ", ".join([*members, again]) + "}"

    with pytest.raises(InvalidRequest, match=f"^Invalid body: {name} is given twice in one object$"):
        parse_commit(change.encode())
    with pytest.raises(InvalidRequest, match=f"^Invalid body: {name} is given twice in one object$"):
        parse_transaction(f'{{"table-changes": [{change}]}}'.encode())


@pytest.mark.parametrize("name", ["requirements", "updates", "identifier"])
def test_member_that_is_given_twice_is_refused_however_its_name_is_written(name: str) -> None:
    members = [ABSENT, PROPERTIES, NAME]
    again = next(member for member in members if member.startswith(f'"{name}"'))
    escaped = again.replace(name, f"\\u{ord(name[0]):04X}{name[1:]}", 1)

    for change in ("{" + ", ".join(given) + "}" for given in ([*members, escaped], [escaped, *members])):
        with pytest.raises(InvalidRequest, match=f"^Invalid body: {name} is given twice in one object$"):
            parse_commit(change.encode())
        with pytest.raises(InvalidRequest, match=f"^Invalid body: {name} is given twice in one object$"):
            parse_transaction(f'{{"table-changes": [{change}]}}'.encode())


def test_changes_given_twice_are_refused_however_their_name_is_written() -> None:
    change = f"{{{NAME}, {PROPERTIES}}}"

    with pytest.raises(InvalidRequest, match="table-changes is given twice in one object"):
        parse_transaction(f'{{"table-changes": [{change}], "table\\u002dchanges": [{change}]}}'.encode())


def test_escapes_in_names_and_texts_are_no_repetition() -> None:
    change = '{"updates": [{"action": "set-properties", "\\u0075pdates": {"\\u0075pdates": "\\u003c"}}]}'

    (update,) = parse_commit(change.encode()).updates or ()

    assert isinstance(update, SetProperties)
    assert update.updates == {"updates": "<"}


def test_updates_that_are_given_twice_are_refused_whatever_properties_are_called() -> None:
    location = '"updates": [{"action": "set-location", "location": "file:///a"}]'
    properties = '"updates": [{"action": "set-properties", "updated": {"a": "1"}}]'

    with pytest.raises(InvalidRequest, match="updates is given twice in one object"):
        parse_commit(f"{{{location}, {properties}}}".encode())

    assert parse_commit(f"{{{properties}}}".encode()).updates


def test_changes_of_a_transaction_that_are_given_twice_are_refused() -> None:
    changes = f'"table-changes": [{{{NAME}, {PROPERTIES}}}]'

    with pytest.raises(InvalidRequest, match="table-changes is given twice in one object"):
        parse_transaction(f"{{{changes}, {changes}}}".encode())


@pytest.mark.parametrize(
    "properties",
    [{"requirements": "x", "updates": "y"}, {"a": '"requirements"', "b": '"updates" "updates"'}],
    ids=["keys", "texts"],
)
def test_properties_may_have_the_names_of_members(properties: dict[str, Any]) -> None:
    update = {"action": "set-properties", "updates": properties}
    change = {"identifier": {"namespace": ["updates"], "name": "identifier"}, "updates": [update, update]}

    body = parse_commit(json.dumps(change).encode())
    commits = parse_transaction(json.dumps({"table-changes": [change, change]}).encode())

    assert len(body.updates or ()) == 2
    assert len(commits.table_changes) == 2

from __future__ import annotations

import pytest

from app.api.bodies.json_body import parse_body
from app.api.bodies.table.refs import ChangeRefBody
from app.engine.branches.ref_changes import (
    CherryPick,
    FastForward,
    Publish,
    RefChange,
    RollBack,
    ToRef,
    ToSnapshot,
    ToTime,
    Unchecked,
)
from app.engine.model.ids import SnapshotId
from app.errors import InvalidRequest


def change(body: bytes) -> RefChange:
    return parse_body(ChangeRefBody, body).change_of("audit")


@pytest.mark.parametrize(
    ("body", "move"),
    [
        (b"{}", None),
        (b'{"snapshot-id":5}', ToSnapshot(SnapshotId(5))),
        (b'{"ref":"main"}', ToRef("main")),
        (b'{"timestamp-ms":5}', ToTime(5)),
        (b'{"fast-forward-to":"main"}', FastForward("main")),
        (b'{"rollback-to":5}', RollBack(SnapshotId(5))),
        (b'{"rollback-to":"5"}', RollBack("5")),
        (b'{"cherry-pick":5}', CherryPick(SnapshotId(5))),
        (b'{"publish":"nightly"}', Publish("nightly")),
        (b'{"ref":null,"publish":"nightly"}', Publish("nightly")),
    ],
)
def test_each_member_is_one_way_to_say_where_to(body: bytes, move: object) -> None:
    assert change(body).move == move


def test_two_places_at_once_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="only one of snapshot-id, publish"):
        change(b'{"snapshot-id":5,"publish":"nightly"}')


def test_what_is_left_out_is_not_the_same_as_null() -> None:
    silent, said = change(b"{}"), change(b'{"expected-snapshot-id":null,"max-ref-age-ms":null}')

    assert (silent.expected, silent.retention) == (Unchecked.UNCHECKED, {})
    assert (said.expected, said.retention) == (None, {"max-ref-age-ms": None})

"""One row of the table: a request that must be refused, how, and that it must change nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.bad_input.victim import Victim
from tests.bad_input.wire import Answer, request, send
from tests.builders.error_answers import check_error_answer

GET, HEAD, POST, DELETE, PATCH = "GET", "HEAD", "POST", "DELETE", "PATCH"

BAD_REQUEST = "BadRequestException"
NO_ROUTE = "NoSuchRouteException"
NO_NAMESPACE = "NoSuchNamespaceException"
NO_TABLE = "NoSuchTableException"
NO_VIEW = "NoSuchViewException"
NO_WAREHOUSE = "NoSuchWarehouseException"
NO_FILE = "NotFoundException"
TAKEN = "AlreadyExistsException"
CONFLICT = "CommitFailedException"

_KIND_OF = {
    400: BAD_REQUEST,
    405: "MethodNotAllowedException",
    403: "ForbiddenException",
    413: "RequestTooLargeException",
    415: "UnsupportedMediaTypeException",
    422: "UnprocessableEntityException",
    431: "RequestTooLargeException",
}
_LEAKS = (
    "Traceback",
    'File "',
    "site-packages",
    ".py",
    "sqlite3",
    "psycopg",
    "sqlalchemy",
    "pydantic",
    " at 0x",
)


@dataclass(frozen=True)
class Attack:
    """A request, and the refusal it must meet.

    Texts may hold `$WAREHOUSE`, `$LOCATION`, `$UUID` and the other names of `Victim.names`. In `message`, `…` stands
    for anything; a message without it is the whole one. `body` is JSON, unless it is bytes.
    """

    name: str
    method: str
    target: str
    status: int
    message: str = "…"
    kind: str = ""
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    def raw(self, victim: Victim) -> bytes:
        """Return the request's bytes."""
        body = self.body
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            body = victim.named_in(body)
        return request(self.method, victim.named(self.target), self.headers, body)


def check_refused(attack: Attack, victim: Victim) -> Answer:
    """Fail unless the attack is refused as it must be, in the protocol's shape, and nothing has changed."""
    answer = send(victim.port, attack.raw(victim), attack.method)

    assert answer.status == attack.status, answer.body[:1_000]
    check_error_shape(answer, attack.method)
    if attack.method != HEAD:
        error = answer.json()["error"]
        assert error["type"] == (attack.kind or _KIND_OF[attack.status])
        assert matches(error["message"], victim.named(attack.message)), error["message"]
    victim.check_unchanged()
    return answer


def check_error_shape(answer: Answer, method: str) -> None:
    """Fail unless an answer is an error as the protocol has it, without anything of the server's inside."""
    assert answer.headers["content-type"] == "application/json"
    if method == HEAD:
        assert answer.body == b""
        return
    check_error_answer(answer.json(), answer.status)
    error = answer.json()["error"]
    assert error.keys() - {"message", "type", "code"} == (
        {"conflict"} if error["type"] == CONFLICT else set()
    )
    conflict = json.dumps(error.get("conflict"))
    assert [leak for leak in _LEAKS if leak in conflict] == []
    assert [leak for leak in _LEAKS if leak in error["message"]] == []


def matches(text: str, pattern: str) -> bool:
    """Tell whether a text is what a pattern says, in which `…` is anything."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("…"))), text, re.DOTALL) is not None

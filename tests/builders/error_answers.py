"""What an error answer looks like, as the Iceberg REST specification has it."""

from __future__ import annotations

from typing import Any

import httpx
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships no types

ICEBERG_ERROR_RESPONSE: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "additionalProperties": False,
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "code": {"type": "integer", "minimum": 400, "maximum": 600},
                "stack": {"type": "array", "items": {"type": "string"}},
            },
        }
    },
}
"""`IcebergErrorResponse` of the specification of August 2026: an error model is open, what holds it is not."""

_VALIDATOR = Draft202012Validator(ICEBERG_ERROR_RESPONSE)
_REPORT = "/ready"
"""Answers 503 with a report, outside the protocol."""
_TOKENS = "/oauth/tokens"
"""Answers errors in OAuth's own shape."""


def check_error_answer(answer: Any, status: int) -> None:
    """Fail unless the JSON of an answer is an error of this status."""
    _VALIDATOR.validate(answer)
    assert answer["error"]["code"] == status


def check_response(response: httpx.Response) -> None:
    """Fail if a response is an error of another form; a hook of the clients that tests use."""
    if response.status_code >= 400 and response.request.method != "HEAD" and response.url.path != _REPORT:
        response.read()
        if response.request.method == "POST" and response.url.path.rstrip("/").endswith(_TOKENS):
            assert response.json().keys() == {"error", "error_description"}
            return
        check_error_answer(response.json(), response.status_code)

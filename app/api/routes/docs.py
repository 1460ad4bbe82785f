"""Extension: the description of the API, for machines and for people."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.api.answers import Answer, json_answer
from app.api.description import description_json, description_yaml
from app.api.docs_page import docs_page

router = APIRouter()


@router.get("/openapi.json")
def openapi_json() -> Response:
    """Return the description as JSON."""
    return json_answer(description_json())


@router.get("/openapi.yaml")
def openapi_yaml() -> Response:
    """Return the description as it was written."""
    return _file(b"application/yaml", description_yaml())


@router.get("/docs")
def docs() -> Response:
    """Return the description as a page."""
    return _file(b"text/html; charset=utf-8", docs_page())


def _file(content_type: bytes, body: bytes) -> Response:
    headers = [(b"content-type", content_type), (b"content-length", b"%d" % len(body))]
    return Answer(200, headers, body)

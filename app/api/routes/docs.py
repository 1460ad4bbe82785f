"""Extension: the description of the API, for machines and for people."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.api.description import description_json, description_yaml
from app.api.docs_page import docs_page
from app.api.responses.answers import json_answer, text_answer

router = APIRouter()


@router.get("/openapi.json")
def openapi_json() -> Response:
    """Return the description as JSON."""
    return json_answer(description_json())


@router.get("/openapi.yaml")
def openapi_yaml() -> Response:
    """Return the description as it was written."""
    return text_answer(description_yaml(), b"application/yaml")


@router.get("/docs")
def docs() -> Response:
    """Return the description as a page."""
    return text_answer(docs_page(), b"text/html; charset=utf-8")

"""What registering a metadata file would do: an extension, which changes nothing."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.api.bodies.table.registrations import registration_check_json
from app.api.bodies.table.tables import CheckRegistrationBody
from app.api.dependencies import Visited
from app.api.responses.answers import json_answer
from app.catalog.context.kinds import TABLES, VIEWS
from app.catalog.context.places.file_names import mark_of
from app.catalog.registration_checks import check_registration
from app.engine.model.identifiers import TableIdentifier, check_identifier

router = APIRouter()


@router.post("/v1/namespaces/{namespace}/register/check")
def check_register(visit: Visited) -> Response:
    """Return what registering a metadata file would do."""
    body = visit.extension_body(CheckRegistrationBody)
    identifier = check_identifier(TableIdentifier(visit.namespace, body.name))
    location, overwrite = body.metadata_location, bool(body.overwrite)
    mark = mark_of(visit.catalog.server)
    if body.type == "view":
        found = registration_check_json(
            check_registration(visit.catalog, VIEWS, identifier, location, overwrite=overwrite), mark
        )
    else:
        found = registration_check_json(
            check_registration(visit.catalog, TABLES, identifier, location, overwrite=overwrite), mark
        )
    return json_answer(found)

"""JSON of what registering a metadata file would do."""

from __future__ import annotations

from typing import Any

import orjson

from app.api.bodies.json_answer import present
from app.catalog.registration_checks import RegistrationCheck, facts_of


def registration_check_json(check: RegistrationCheck[Any], mark: bytes) -> bytes:
    """Return what a metadata file would bring, and what speaks against it.

    Args:
        check: what was found.
        mark: the mark of the server's database; no other one has it.
    """
    found, metadata = check.present, check.metadata
    answer = {
        "would-register": check.would_register,
        "type": str(check.kind),
        "metadata-location": check.location,
        "found": None if metadata is None else present(facts_of(metadata)),
        "present": None
        if found is None
        else {
            "type": found.kind.value,
            "metadata-location": found.metadata_location,
            "uuid": found.uuid,
            "read-only": found.is_read_only,
            "id": f"{mark.hex()}-{found.id}",
        },
        "findings": [
            {
                "code": finding.code,
                "severity": finding.severity,
                "message": finding.message,
                "can-be-allowed": finding.can_be_allowed,
            }
            for finding in check.findings
        ],
    }
    return orjson.dumps(present(answer))

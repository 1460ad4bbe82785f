"""Where the first metadata of a table may differ from the reference, each time with the reason."""

from __future__ import annotations

from tests.conformance.oracle.agreed_differences import NORMALISATIONS as APPLYING_NORMALISATIONS
from tests.conformance.oracle.agreed_differences import REFUSALS as APPLYING_REFUSALS
from tests.conformance.oracle.differences import Agreement, Case, Normalisation, RefusalDifference
from tests.conformance.oracle.outcomes import Json


def _drop_uuid(document: Json, _case: Case) -> None:
    document.pop("table-uuid", None)


CREATING = Agreement(
    (
        *APPLYING_NORMALISATIONS,
        Normalisation("uuid", "the reference invents one, Icetower's catalog hands one in", _drop_uuid),
    ),
    (
        *APPLYING_REFUSALS,
        RefusalDifference(
            "format versions that are none",
            "Icetower knows versions 1 to 3; the reference begins with version 4 and takes 0 for 1",
            "icetower",
            r"Unsupported format version: v[04] ",
        ),
    ),
)

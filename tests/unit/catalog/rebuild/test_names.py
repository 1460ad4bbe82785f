from __future__ import annotations

import pytest

from app.catalog.rebuild.known_pointers import NamedBy
from app.catalog.rebuild.names import name_from_location
from app.engine.model.identifiers import Namespace

UUID = "3fa85f64-5717-4562-b3fc-2c963f66afa6"


@pytest.mark.parametrize(
    ("location", "name", "named_by"),
    [
        ("s3://lake/wh/sales/eu/orders-3fa85f64", "sales.eu.orders", NamedBy.PATH),
        ("s3://lake/wh/sales/orders", "sales.orders", NamedBy.PATH),
        ("s3a://lake/wh/sales/orders/", "sales.orders", NamedBy.PATH),
        # Another table's piece is a part of the name.
        ("s3://lake/wh/sales/orders-11111111", "sales.orders-11111111", NamedBy.PATH),
        ("s3://lake/wh/sales.db/orders", "sales.orders", NamedBy.PATH),
        ("s3://lake/wh/orders-3fa85f64", "rebuilt.orders", NamedBy.LOCATION),
        ("s3://lake/elsewhere/deep/sales/orders", "sales.orders", NamedBy.LOCATION),
        ("s3://lake/wh2/sales/orders", "sales.orders", NamedBy.LOCATION),
        ("s3://lake/wh/sales/-3fa85f64", "sales.-3fa85f64", NamedBy.PATH),
        # Beside a table that lies at sales/eu.
        ("s3://lake/wh/sales/eu-3fa85f64/orders", "sales.eu.orders", NamedBy.PATH),
    ],
)
def test_a_location_suggests_a_name(location: str, name: str, named_by: NamedBy) -> None:
    found, by = name_from_location(location, "s3://lake/wh", UUID, Namespace(("rebuilt",)))

    assert (str(found), by) == (name, named_by)


def test_spellings_of_a_local_root_are_one() -> None:
    found, by = name_from_location("file:/lake/a/t", "file:///lake", "", Namespace(("rebuilt",)))

    assert (str(found), by) == ("a.t", NamedBy.PATH)

from __future__ import annotations

from dataclasses import replace

from app.catalog.context.catalog import Catalog
from app.catalog.exports.writing import export_pointers
from app.catalog.rebuild.planning import plan_rebuild
from tests.builders.catalogs import (
    with_warehouse,
)
from tests.builders.tables import (
    table_in,
)
from tests.unit.catalog.rebuild.rebuilding import WISH, rebuild


def test_settings_that_the_warehouse_has_not_got_come_back(lost: Catalog, found: Catalog) -> None:
    lost = with_warehouse(
        lost,
        default_properties={"a": "lost", "s3.endpoint": "https://x", "icetower.undrop.keep-ms": "9000000"},
        override_properties={
            "icetower.protected": "true",
            "icetower.undrop.purge-waits": "perhaps",
            "uri": "https://elsewhere",
        },
        storage={"allowed-locations": "memory://other", "adls.account-key": "hunter2"},
    )
    found.server.warehouses.update("wh", lambda there: replace(there, default_properties={"a": "found"}))
    found = with_warehouse(found, default_properties={"a": "found"})
    table_in(lost)
    export_pointers(lost.server, lost.warehouse)

    plan = rebuild(found)

    now = found.server.warehouses.find("wh")
    assert now is not None
    assert now.default_properties == {"a": "found", "icetower.undrop.keep-ms": "9000000"}
    assert now.override_properties == {"icetower.protected": "true"}  # The other one makes no sense.
    assert now.storage == {}
    # Clients would go where these lead, and all who write to the warehouse can plant an export.
    shown = {**plan.settings.defaults_for_clients, **plan.settings.overrides_for_clients}
    assert shown == {"s3.endpoint": "https://x", "uri": "https://elsewhere"}
    assert plan.settings.storage == {"allowed-locations": "memory://other"}
    assert plan.settings.left_out == ("adls.account-key",)
    assert not plan_rebuild(replace(found, warehouse=now), WISH).has_changes

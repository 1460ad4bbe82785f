"""Who decides whether a commit is rebased: its request, the table, the namespace, the warehouse, in this order."""

from __future__ import annotations

import pytest

from app.catalog.commits.rebases import RebaseRequest
from app.catalog.context.catalog import Catalog
from app.catalog.warehouse_changes import MappingChange, WarehouseChange
from app.catalog.warehouses import update_warehouse
from app.database.namespaces import Namespaces
from app.engine.change.updates import SetProperties
from app.engine.model.identifiers import Namespace
from app.engine.model.settings.rebase_settings import RebaseMode
from app.errors import InvalidSetting, InvalidUpdate, RequirementFailed
from tests.builders.catalogs import with_server, with_warehouse
from tests.builders.racing_writers import commit, writer
from tests.builders.tables import FLIGHTS, commit_to, table_in

ON, OFF = {"icetower.rebase": "appends"}, {"icetower.rebase": "off"}


def lands(catalog: Catalog, request: RebaseRequest | None = None) -> bool:
    """Say whether an append lands that lost its race."""
    late = writer(catalog).append(["late"])
    commit(catalog, writer(catalog).append(["rival"]))
    try:
        return commit(catalog, late, *([request] if request else [])).rebased
    except RequirementFailed:
        return False


@pytest.mark.parametrize(
    ("request_mode", "table", "namespace", "warehouse", "expected"),
    [
        (None, {}, {}, {}, False),
        (None, {}, {}, ON, True),
        (None, {}, OFF, ON, False),
        (None, {}, ON, {}, True),
        (None, OFF, ON, ON, False),
        (None, ON, OFF, OFF, True),
        (RebaseMode.OFF, ON, ON, ON, False),
        (RebaseMode.APPENDS, OFF, OFF, OFF, True),
        (None, {}, {"icetower.rebase": "sometimes"}, ON, False),
    ],
)
def test_first_that_says_something_decides(
    catalog: Catalog,
    request_mode: RebaseMode | None,
    table: dict[str, str],
    namespace: dict[str, str],
    warehouse: dict[str, str],
    expected: bool,
) -> None:
    catalog = with_warehouse(catalog, default_properties=warehouse)
    # Past the check of its values: an older build did not know them all.
    catalog.server.namespaces.create(catalog.warehouse.id, FLIGHTS, namespace, catalog.author(), None)
    table_in(catalog, properties=table)

    assert lands(catalog, RebaseRequest(mode=request_mode)) is expected


def test_override_of_the_warehouse_goes_before_its_default(catalog: Catalog) -> None:
    catalog = with_warehouse(catalog, default_properties=OFF, override_properties=ON)
    table_in(catalog)

    assert lands(catalog)


@pytest.mark.parametrize(
    ("name", "value"), [("icetower.rebase", "sometimes"), ("icetower.rebase.exactly-once", "yes")]
)
def test_value_without_meaning_cannot_be_set(catalog: Catalog, name: str, value: str) -> None:
    table_in(catalog)

    with pytest.raises(InvalidUpdate, match=f"Table property {name} must be .*{value}"):
        commit_to(catalog, SetProperties(updates={name: value}))


class WatchedNamespaces(Namespaces):
    """Namespaces that count how often one is looked up."""

    def __init__(self, namespaces: Namespaces) -> None:
        self._namespaces = namespaces
        self.found = 0

    def find(self, warehouse_id: int, namespace: Namespace) -> dict[str, str] | None:
        self.found += 1
        return self._namespaces.find(warehouse_id, namespace)


def test_namespace_is_looked_up_only_after_a_lost_race(catalog: Catalog) -> None:
    table_in(catalog)
    namespaces = WatchedNamespaces(catalog.server.namespaces)
    catalog = with_server(catalog, namespaces=namespaces)

    commit(catalog, writer(catalog).append(["alone"]))
    assert namespaces.found == 0

    assert not lands(catalog)
    assert namespaces.found == 1


@pytest.mark.parametrize("name", ["icetower.rebase", "icetower.rebase.exactly-once"])
def test_value_without_meaning_cannot_be_set_on_a_warehouse(catalog: Catalog, name: str) -> None:
    change = WarehouseChange(default_properties=MappingChange(updates={name: "sometimes"}))
    with pytest.raises(InvalidSetting, match=f"Warehouse property {name} must be .*sometimes"):
        update_warehouse(catalog.server, catalog.caller, catalog.warehouse.name, change)

"""A warehouse whose tables are folders of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.catalog import named, namespaces
from app.catalog.context.catalog import Catalog
from app.engine.model.identifiers import Namespace
from tests.builders.file_system import new_table, tree_on


@pytest.fixture
def tree(tmp_path: Path) -> Catalog:
    """A warehouse of layout hadoop with the table `ns.t`."""
    catalog = tree_on(tmp_path)
    namespaces.create_namespace(catalog, Namespace(("ns",)), {})
    named.create(catalog, new_table("ns.t"))
    return catalog

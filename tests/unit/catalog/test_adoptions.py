from __future__ import annotations

from pathlib import Path

import pytest

from app.catalog import named, namespaces
from app.catalog.adoptions import adopt_table
from app.engine.model.identifiers import Namespace
from app.errors import InvalidMetadata
from tests.builders.catalogs import new_warehouse
from tests.builders.file_system import identifier, metadata_folder, new_table, tree_on


def test_broken_version_is_named(tmp_path: Path) -> None:
    tree = tree_on(tmp_path)
    namespaces.create_namespace(tree, Namespace(("ns",)), {})
    named.create(tree, new_table("ns.t"))
    beside = new_warehouse(tree.server, "rows", f"file://{tmp_path}/tables")
    namespaces.create_namespace(beside, Namespace(("sales",)), {})
    (metadata_folder(tmp_path, "ns.t") / "v2.metadata.json").write_text('{"format-version": 2')

    with pytest.raises(InvalidMetadata, match=r"ns/t/metadata/v2[.]metadata[.]json: Invalid JSON"):
        adopt_table(beside, identifier("sales.t"), f"file://{tmp_path}/tables/ns/t")

    assert beside.find(identifier("sales.t")) is None

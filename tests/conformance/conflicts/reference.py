"""The reference: tables in Iceberg's own in-memory catalog, changed through its Java API."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError

from app.engine.model.data_types.transforms import parse_transform
from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.files.manifests import DataFile, ManifestContent, ManifestEntry
from app.engine.model.ids import Location
from app.engine.model.table_metadata import TableMetadata, read_table_metadata
from app.fileio.files import ListedFile
from app.formats.manifests.source import FileManifestSource, ManifestCache
from tests.conformance.manifests.in_json import file_in_json

_numbers = itertools.count(1)
REFUSALS = ("ValidationException", "IllegalArgumentException")


class Refused(Exception):
    """A commit that the reference gave up, in its words."""


@dataclass(eq=False)
class FilesInJvm:
    """The files of the JVM's memory; read only."""

    io: Any
    contents: dict[str, bytes] = field(default_factory=dict)

    def read(self, location: Location) -> bytes:
        if location not in self.contents:
            self.contents[location] = bytes(self.io.newInputFile(location).newStream().readAllBytes())
        return self.contents[location]

    def write_new(self, location: Location, content: bytes) -> None:
        raise NotImplementedError

    def delete(self, location: Location) -> None:
        raise NotImplementedError

    def exists(self, location: Location) -> bool:
        raise NotImplementedError

    def delete_empty_folder(self, location: Location) -> bool:
        raise NotImplementedError

    def find_file(self, location: Location) -> ListedFile | None:
        raise NotImplementedError

    def list_files(self, prefix: Location) -> Iterator[ListedFile]:
        raise NotImplementedError


class Reference:
    """Iceberg with a catalog in memory."""

    def __init__(self, iceberg: Any) -> None:
        self.gateway = JavaGateway(gateway_client=iceberg._gateway_client, auto_convert=True)
        self.iceberg = iceberg
        self.catalog = iceberg.inmemory.InMemoryCatalog()
        self.catalog.initialize("reference", {"warehouse": "mem://warehouse"})
        names = self.gateway.new_array(self.gateway.jvm.java.lang.String, 1)
        names[0] = "ns"
        self.catalog.createNamespace(iceberg.catalog.Namespace.of(names))

    def new_table(
        self, schema: dict[str, Any], spec: dict[str, Any], properties: dict[str, str]
    ) -> ReferenceTable:
        """Create a table."""
        columns = self.iceberg.SchemaParser.fromJson(json.dumps(schema))
        partitioning = self.iceberg.PartitionSpecParser.fromJson(columns, json.dumps(spec))
        name = self.iceberg.catalog.TableIdentifier.parse(f"ns.t{next(_numbers)}")
        builder = self.catalog.buildTable(name, columns).withPartitionSpec(partitioning)
        for key, value in properties.items():
            builder = builder.withProperty(key, value)
        return ReferenceTable(self, builder.create())


class ReferenceTable:
    """One table of the reference, and the same table as we read it."""

    def __init__(self, reference: Reference, table: Any) -> None:
        self.reference = reference
        self.table = table
        self.source = FileManifestSource(FilesInJvm(table.io()), ManifestCache(0))

    def metadata(self) -> TableMetadata:
        """Return the table as it is now."""
        self.table.refresh()
        current = self.table.operations().current()
        return read_table_metadata(self.reference.iceberg.TableMetadataParser.toJson(current).encode())

    def live(self, content: ManifestContent) -> list[ManifestEntry]:
        """Return the entries that live in the current snapshot."""
        metadata = self.metadata()
        snapshot = metadata.current_snapshot
        manifests = self.source.manifests(snapshot) if snapshot else ()
        return [
            entry
            for manifest in manifests
            if manifest.content is content
            for entry in self.source.entries(manifest)
            if entry.is_live
        ]

    def file(self, file: DataFile) -> Any:
        """Return a data file or delete file as the reference takes it."""
        metadata = self.metadata()
        spec = next(item for item in metadata.partition_specs if item.spec_id == file.spec_id)
        kinds = []
        for item in spec.fields:
            source = metadata.current_schema.columns[item.source_id].field.type
            kind = parse_transform(item.transform).result_type(source)
            assert isinstance(kind, PrimitiveType)
            kinds.append(kind)
        document = file_in_json(file, spec, kinds)
        node = self.reference.iceberg.util.JsonUtil.mapper().readTree(json.dumps(document))
        bound = self.table.specs().get(file.spec_id)
        return self.reference.iceberg.ContentFileParser.fromJson(node, bound)

    def filter(self, document: Any) -> Any:
        """Return an expression as the reference takes it."""
        return self.reference.iceberg.expressions.ExpressionParser.fromJson(json.dumps(document))


def commit(pending: Any) -> None:
    """Commit a pending change of the reference.

    Raises:
        Refused: it finds a conflict.
    """
    try:
        pending.commit()
    except Py4JJavaError as error:
        exception = error.java_exception
        name = exception.getClass().getSimpleName()
        if name not in REFUSALS:
            raise
        raise Refused(f"{name}: {exception.getMessage()}") from error

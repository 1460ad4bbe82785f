"""The reference: Iceberg's own readers and writers of manifests, over files in the memory of their JVM."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from py4j.java_gateway import JavaGateway

from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.files.manifests import EntryStatus, ManifestContent, ManifestEntry
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema
from tests.conformance.manifests.in_json import Json, file_in_json

_numbers = itertools.count(1)


class Reference:
    """Iceberg, without a catalog."""

    def __init__(self, iceberg: Any) -> None:
        self._gateway = JavaGateway(gateway_client=iceberg._gateway_client, auto_convert=True)
        self.jvm = self._gateway.jvm
        self.iceberg = self.jvm.org.apache.iceberg
        self.io = self.iceberg.inmemory.InMemoryFileIO()
        self._entries = self._hidden("org.apache.iceberg.ManifestReader", "entries", 0)
        self._write_list = self._hidden("org.apache.iceberg.ManifestLists", "write", 6)
        self._read_list = self._hidden("org.apache.iceberg.ManifestLists", "read", 1)

    def _hidden(self, class_name: str, name: str, parameters: int) -> Callable[..., Any]:
        """Return a method that is not public."""
        (method,) = (
            method
            for method in self.jvm.java.lang.Class.forName(class_name).getDeclaredMethods()
            if method.getName() == name and method.getParameterCount() == parameters
        )
        method.setAccessible(True)

        def call(target: Any, *arguments: Any) -> Any:
            passed = self._gateway.new_array(self.jvm.java.lang.Object, len(arguments))
            for at, argument in enumerate(arguments):
                passed[at] = argument
            return method.invoke(target, passed)

        return call

    def new_location(self) -> Location:
        """Return a location in the JVM's memory where nothing is yet."""
        return Location(f"mem://files/{next(_numbers)}.avro")

    def put(self, location: str, content: bytes) -> None:
        """Store a file."""
        self.io.addFile(location, content)

    def content(self, location: str) -> bytes:
        """Return a file."""
        found: bytes = self.io.newInputFile(location).newStream().readAllBytes()
        return found

    def spec(self, schema: Schema, spec: PartitionSpec) -> Any:
        """Return a spec bound to a schema."""
        columns = self.iceberg.SchemaParser.fromJson(schema.to_json().decode())
        return self.iceberg.PartitionSpecParser.fromJson(columns, spec.to_json().decode())

    def write_manifest(
        self,
        entries: Iterable[ManifestEntry],
        schema: Schema,
        spec: PartitionSpec,
        kinds: Sequence[PrimitiveType],
        *,
        format_version: int,
        content: ManifestContent,
        snapshot_id: SnapshotId | None,
    ) -> Any:
        """Write a manifest; return the reference's own words on it."""
        bound = self.spec(schema, spec)
        output = self.io.newOutputFile(self.new_location())
        files = self.iceberg.ManifestFiles
        make = files.write if content is ManifestContent.DATA else files.writeDeleteManifest
        writer = make(format_version, bound, output, snapshot_id)
        for entry in entries:
            file = self._file(file_in_json(entry.file, spec, kinds), bound)
            if entry.status is EntryStatus.ADDED:
                writer.add(file)
            elif entry.status is EntryStatus.EXISTING:
                writer.existing(
                    file, entry.snapshot_id, entry.data_sequence_number, entry.file_sequence_number
                )
            else:
                writer.delete(file, entry.data_sequence_number, entry.file_sequence_number)
        writer.close()
        return writer.toManifestFile()

    def _file(self, document: Json, bound: Any) -> Any:
        node = self.iceberg.util.JsonUtil.mapper().readTree(json.dumps(document))
        return self.iceberg.ContentFileParser.fromJson(node, bound)

    def write_list(
        self,
        manifests: Iterable[Any],
        *,
        format_version: int,
        snapshot_id: int,
        parent_snapshot_id: int | None,
        sequence_number: int,
        first_row_id: int | None,
    ) -> Location:
        """Write a manifest list of the reference's manifests; its ids are above 2**32, or Java takes them for ints."""
        location = self.new_location()
        writer = self._write_list(
            None,
            format_version,
            self.io.newOutputFile(location),
            snapshot_id,
            parent_snapshot_id,
            sequence_number,
            first_row_id,
        )
        for manifest in manifests:
            writer.add(manifest)
        writer.close()
        return location

    def read_list(self, location: str) -> list[Any]:
        """Return the reference's words on each manifest of a list."""
        return list(self._read_list(None, self.io.newInputFile(location)))

    def manifest_in_json(self, manifest: Any) -> Json:
        """Return what the reference says of a manifest, in the words of `in_json.manifest_in_json`."""
        summaries = manifest.partitions()
        return {
            "path": manifest.path(),
            "length": manifest.length(),
            "spec-id": manifest.partitionSpecId(),
            "content": manifest.content().id(),
            "sequence-number": manifest.sequenceNumber(),
            "min-sequence-number": manifest.minSequenceNumber(),
            "snapshot-id": manifest.snapshotId(),
            "files": [
                manifest.addedFilesCount(),
                manifest.existingFilesCount(),
                manifest.deletedFilesCount(),
            ],
            "rows": [manifest.addedRowsCount(), manifest.existingRowsCount(), manifest.deletedRowsCount()],
            "partitions": (
                None
                if summaries is None
                else [
                    [
                        item.containsNull(),
                        item.containsNaN(),
                        self._bytes(item.lowerBound()),
                        self._bytes(item.upperBound()),
                    ]
                    for item in summaries
                ]
            ),
            "key-metadata": self._bytes(manifest.keyMetadata()),
            "first-row-id": manifest.firstRowId(),
        }

    def _bytes(self, buffer: Any) -> bytes | None:
        return None if buffer is None else self.iceberg.util.ByteBuffers.toByteArray(buffer)

    def entries(self, manifest: Any, bound: Any) -> Iterator[Json]:
        """Yield what the reference reads in a manifest, in the words of `in_json.entry_in_json`."""
        files = self.iceberg.ManifestFiles
        is_data = manifest.content().id() == 0
        reader = (files.read if is_data else files.readDeleteManifest)(
            manifest, self.io, {bound.specId(): bound}
        )
        found = self._entries(reader).iterator()
        while found.hasNext():
            entry = found.next()
            yield {
                "status": entry.status().id(),
                "snapshot-id": entry.snapshotId(),
                "data-sequence-number": entry.dataSequenceNumber(),
                "file-sequence-number": entry.fileSequenceNumber(),
                "file": json.loads(self.iceberg.ContentFileParser.toJson(entry.file(), bound)),
            }

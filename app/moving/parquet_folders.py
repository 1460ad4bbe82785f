"""Folders of Parquet files become tables: a schema of footers, appends by reference."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from http import HTTPStatus
from itertools import islice
from typing import Final
from urllib.parse import unquote

from app.client.answers import TableAnswer
from app.client.catalog import RemoteCatalog
from app.client.http.failures import CatalogRefused
from app.client.request_parts import JsonObject, given
from app.engine.appends.footers import Footer
from app.engine.appends.new_schemas import NewSchema
from app.engine.appends.partitions import NO_VALUE, PartitionRules
from app.engine.model.data_types.types import PrimitiveType, parse_primitive
from app.engine.model.document import MAX_INT
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema
from app.errors import IcetowerError, InvalidDataFile
from app.fileio.files import FileIO
from app.fileio.locations import flaw_of, loose_place_of
from app.fileio.tails import read_tail
from app.formats.metadata.names import is_metadata_file
from app.formats.parquet.footers import footer_bytes, read_footer, weight_of
from app.formats.parquet.not_parquet import NotParquetError
from app.moving.former_files import FormerFiles, former_files
from app.moving.sources import SourceFailed

FILES_A_REQUEST: Final = 1_000
FIRST_LOOK_BYTES: Final = 64 << 10
READERS: Final = 8
_HEAVIEST_FOOTER: Final = 64 << 20
_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_NEEDS_VERSION_3: Final = 3
_SURE_REFUSALS: Final = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN})
"""Others are about what has become of the table meanwhile, or say that the outcome is not known."""
_LOGS: Final = {"_delta_log": "Delta Lake", ".hoodie": "Hudi"}
"""Folders in which other table formats keep what counts of their files."""


@dataclass(frozen=True, slots=True)
class ParquetFolder:
    """Files that are to become a table, and what they say."""

    files: Sequence[str]
    schema: Schema
    partitions: Mapping[str, PrimitiveType] = field(default_factory=dict)
    """Columns whose values are in the paths, as `day=2025-10-09`."""

    @property
    def properties(self) -> dict[str, str]:
        """What the table needs to have these columns."""
        kinds = (column.field.type for column in self.schema.columns.values())
        versions = [kind.min_format_version for kind in kinds if isinstance(kind, PrimitiveType)]
        return {"format-version": "3"} if max(versions, default=1) >= _NEEDS_VERSION_3 else {}

    @property
    def partition_spec(self) -> JsonObject:
        """How the table is partitioned: by the columns whose values are in the paths."""
        fields = [
            {"source-id": column.id, "field-id": 1000 + place, "name": name, "transform": "identity"}
            for place, name in enumerate(self.partitions)
            for column in self.schema.fields
            if column.name == name
        ]
        return {"spec-id": 0, "fields": fields}


@dataclass(slots=True)
class AppendedFolder:
    """What has become of the files of a folder that the table did not have."""

    appended: int = 0
    let_go: list[str] = field(default_factory=list)
    """Left out: on another branch or staged, or their rows were deleted or rewritten since the table had them."""
    unsure: list[str] = field(default_factory=list)
    """Left out: snapshots that may have had them have expired."""


def listed_files(root: str, files: FileIO) -> dict[str, int]:
    """Return the files below a folder with their times, but for those that writers hide.

    Raises:
        SourceFailed: the folder cannot be listed, is empty, or is a table of another format.
    """
    try:
        listed = sorted(files.list_files(Location(root)), key=lambda file: file.location)
        _check_no_log(root, [file.location for file in listed])
        # A table's own files may lie in the folder, too.
        ours = {_folder_of(file.location) for file in listed if is_metadata_file(file.location)}
        ours = {folder for folder in ours if folder.endswith("/metadata")}
        found = {
            str(file.location): file.modified_ms
            for file in listed
            if not any(map(_is_hidden, file.location[len(root) :].split("/")))
            and file.size_bytes
            and _folder_of(file.location) not in ours
        }
    except IcetowerError as error:
        raise SourceFailed(f"{root} cannot be listed: {error}") from error
    if not found:
        raise SourceFailed(f"There are no files in {root}")
    return found


def _check_no_log(root: str, locations: Iterable[str]) -> None:
    """Check that no other format says which files of a folder count.

    Raises:
        SourceFailed: one does: rows that were deleted there would be back.
    """
    for location in locations:
        for piece in location[len(root) :].split("/")[:-1]:
            if piece in _LOGS:
                place = location[: location.index(f"/{piece}/", len(root))]
                raise SourceFailed(
                    f"{place} is a table of {_LOGS[piece]}, whose {piece} says which of its files count: list those in "
                    "a file, and give @FILE instead of the folder"
                )


def _folder_of(location: str) -> str:
    return location.rpartition("/")[0]


def _is_hidden(piece: str) -> bool:
    return piece.startswith((".", "_")) and "=" not in piece


def look_at(
    paths: Sequence[str], files: FileIO, types: Mapping[str, PrimitiveType] | None = None, root: str = ""
) -> ParquetFolder:
    """Return what files would be as a table.

    Args:
        paths: their locations.
        files: how they are read.
        types: of columns whose values are in the paths; those of others are found from the values.
        root: the folder below which values are looked for in paths; empty for whole paths.

    Raises:
        InvalidDataFile: a file cannot be read, does not fit the others, or is where no server takes one from.
    """
    for path in paths:
        if flaw := flaw_of(path):
            raise InvalidDataFile(path, f"its location cannot be used: {flaw}")
    schema = NewSchema()
    for path, footer in _footers(paths, files):
        schema.add(path, footer)
    partitions = _partitions(paths, types or {}, root)
    spellings = {name.lower(): name for name in schema.names}
    for name in partitions:
        spelled = spellings.setdefault(name.lower(), name)
        if spelled != name:
            raise InvalidDataFile(
                paths[0], f"its folders name the column {name}, and files call it {spelled}"
            )
    found = ParquetFolder(paths, schema.to_schema(partitions), partitions)
    rules = PartitionRules(PartitionSpec.from_object(found.partition_spec), found.schema)
    for path in paths:
        rules.in_path(path)
    return found


def _footers(paths: Sequence[str], files: FileIO) -> Iterator[tuple[str, Footer]]:
    with ThreadPoolExecutor(READERS, "footers") as pool:
        waiting = iter(paths)
        while ahead := list(islice(waiting, READERS * 16)):
            yield from zip(ahead, pool.map(lambda path: _footer(path, files), ahead), strict=True)


def _footer(path: str, files: FileIO) -> Footer:
    try:
        tail = read_tail(files, Location(path), FIRST_LOOK_BYTES)
        size_bytes = footer_bytes(tail)
        is_light = size_bytes <= _HEAVIEST_FOOTER
        if is_light and size_bytes > len(tail.content):
            tail = read_tail(files, Location(path), size_bytes)
        if not is_light or weight_of(tail, _HEAVIEST_FOOTER) > _HEAVIEST_FOOTER:
            raise NotParquetError("its Parquet footer has too many columns and row groups")
        return read_footer(tail)
    except (NotParquetError, IcetowerError) as error:
        raise InvalidDataFile(path, str(error)) from error


def _partitions(
    paths: Sequence[str], types: Mapping[str, PrimitiveType], root: str
) -> dict[str, PrimitiveType]:
    """Return the columns that all paths have values of, in their order.

    Raises:
        InvalidDataFile: one path has other columns than the others, or two values for one.
    """
    first = list(_in_path(paths[0], root))
    for name in types.keys() - _in_path(paths[0], "").keys():
        raise InvalidDataFile(paths[0], f"its folders have no value of column {name}, whose type is given")
    values: dict[str, set[str]] = {name: set() for name in first}
    for path in paths:
        found = _in_path(path, root)
        # Of whole paths the inner value counts: the outer one may be a name around the table's folder.
        for name, text in _pairs_in_path(path, root) if root else ():
            if found[name] != text:
                raise InvalidDataFile(path, f"its folders give column {name} two values: rename one of them")
        if list(found) != first:
            names, others = ", ".join(found) or "none", ", ".join(first) or "none"
            raise InvalidDataFile(path, f"its folders name the columns {names}, those of others {others}")
        for name, text in found.items():
            values[name].add(text)
    return {name: types.get(name) or _type_of(found - {NO_VALUE}) for name, found in values.items()}


def _in_path(path: str, root: str) -> dict[str, str]:
    return dict(_pairs_in_path(path, root))


def _pairs_in_path(path: str, root: str) -> list[tuple[str, str]]:
    pieces = [piece.partition("=") for piece in path.removeprefix(root).split("/")[:-1]]
    return [(unquote(name), unquote(text)) for name, sign, text in pieces if sign and name]


def _type_of(texts: Iterable[str]) -> PrimitiveType:
    """Return the narrowest type that all of some texts have as values: `07` is no number."""
    found = list(texts)
    if found and all(map(_WHOLE_NUMBER.fullmatch, found)):
        fits = all(-MAX_INT - 1 <= int(text) <= MAX_INT for text in found)
        return parse_primitive("int" if fits else "long")
    if found and all(map(_is_date, found)):
        return parse_primitive("date")
    return parse_primitive("string")


def _is_date(text: str) -> bool:
    try:
        return _DATE.fullmatch(text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class FolderPreview:
    """What would be appended of a folder."""

    folder: ParquetFolder | None
    """The files that would be, as a table; None if there are none."""
    is_there: bool | None
    """Whether the table is there already; None if that is not known."""
    left: AppendedFolder


def preview_new_files(
    catalog: RemoteCatalog,
    identifier: TableIdentifier,
    found: Mapping[str, int],
    look: Callable[[Sequence[str]], ParquetFolder],
) -> FolderPreview:
    """Return what `append_new_files` would append; nothing is changed.

    Raises like it, but for what only the server finds out about a file.
    """
    table, new, left = _first_look(catalog, identifier, found)
    folder = look(new) if new else None
    if table is not None and folder is not None:
        _spec_for(table, folder, _in_path(folder.files[0], "").keys())
    return FolderPreview(folder, table is not None, left)


def append_new_files(
    catalog: RemoteCatalog,
    identifier: TableIdentifier,
    found: Mapping[str, int],
    look: Callable[[Sequence[str]], ParquetFolder],
    *,
    location: str | None = None,
    listener: Callable[[int], None] = lambda _files: None,
) -> AppendedFolder:
    """Append those of some files that a table never had; it is made if it is not there.

    Args:
        catalog: where.
        identifier: the table's name.
        found: locations, and when each file was written in epoch milliseconds; 0 where that is not known.
        look: returns what files would be as a table. Those that the table has, or had, are not looked at.
        location: where new files of a new table go; the server chooses one unless given.
        listener: called with the number of files after each request.

    Raises:
        InvalidDataFile: a file cannot be read, or does not fit the others; nothing is made.
        SourceFailed: another table has the name since the first look; or the namespace was made, and the server makes
            no table there; or the table was made, and the server takes no file.
        CallFailed: the server refuses: its message names the file.
    """
    there, new, outcome = _first_look(catalog, identifier, found)
    if new:
        folder = look(new)
        table = there or _made_table(catalog, identifier, folder, location)
        is_new = there is None and "main" not in (table.metadata.get("refs") or {})
        # Of the whole path: the folder may be one of those that the table's other files are in.
        in_path = _in_path(folder.files[0], "").keys()
        spec_id = _spec_for(table, folder, in_path)
        for batch in _batches(folder.files):
            try:
                _append(
                    catalog, identifier, batch, _is_same(table), spec_id, partition_from_path=bool(in_path)
                )
            except CatalogRefused as refused:
                is_empty = is_new and not outcome.appended
                if not is_empty or refused.status not in _SURE_REFUSALS:
                    raise
                raise SourceFailed(
                    f"{refused.message.rstrip('.')}. Table {identifier} has been made and is empty: the same command "
                    "goes on with it; drop it first if its columns or its location are to be others"
                ) from refused
            outcome.appended += len(batch)
            listener(len(batch))
    return outcome


def _first_look(
    catalog: RemoteCatalog, identifier: TableIdentifier, found: Mapping[str, int]
) -> tuple[TableAnswer | None, list[str], AppendedFolder]:
    """Return the table if it is there, the files that it never had, and those left out."""
    if not catalog.tables.exists(identifier):
        return None, list(found), AppendedFolder()
    # Before anything else of it is looked at: what is said of one table must not go into another one.
    table = catalog.tables.load(identifier, "refs")
    return table, *_new_files(catalog, identifier, found)


def _is_same(table: TableAnswer) -> list[JsonObject]:
    """Return the requirement that it is this very table; those of version 1 may have no uuid."""
    uuid = table.metadata.get("table-uuid")
    return [{"type": "assert-table-uuid", "uuid": uuid}] if uuid else []


def _spec_for(table: TableAnswer, folder: ParquetFolder, in_path: Collection[str]) -> int | None:
    """Return the partition spec that takes the values in paths; None for the default one.

    The table may have been partitioned anew since it was made. If no spec has all of these columns, the files may have
    them: the server looks.

    Raises:
        InvalidDataFile: a column that the paths have values of was never in the table.
    """
    metadata = table.metadata
    schemas = {schema["schema-id"]: schema["fields"] for schema in metadata["schemas"]}
    columns = {field["id"]: field["name"] for field in schemas[metadata["current-schema-id"]]}
    # A field of a spec keeps its name when its column gets another one.
    identities = {
        spec["spec-id"]: {
            field["name"]
            for field in spec["fields"]
            if field["transform"] == "identity" and field["source-id"] in columns
        }
        for spec in metadata["partition-specs"]
    }
    there = {*columns.values()}.union(*identities.values())
    former = {field["name"] for fields in schemas.values() for field in fields}
    for name in folder.partitions:
        if name not in there | former:
            raise InvalidDataFile(
                folder.files[0],
                f"its folders name the column {name}, which the table does not have: add it, as an identity partition",
            )
    wanted = there.intersection(in_path)
    default = metadata["default-spec-id"]
    newest_first = sorted(identities, key=lambda spec_id: (spec_id == default, spec_id), reverse=True)
    found = next((spec_id for spec_id in newest_first if wanted <= identities[spec_id]), default)
    return None if found == default else int(found)


def _append(
    catalog: RemoteCatalog,
    identifier: TableIdentifier,
    batch: Sequence[str],
    same: Sequence[JsonObject],
    spec_id: int | None,
    *,
    partition_from_path: bool,
) -> None:
    files = [given({"file-path": file, "spec-id": spec_id}) for file in batch]
    try:
        catalog.appends.append(identifier, files, partition_from_path=partition_from_path, requirements=same)
    except CatalogRefused as refused:
        if ((refused.conflict or {}).get("requirement") or {}).get("type") != "assert-table-uuid":
            raise
        raise SourceFailed(
            f"{identifier} is another table since this began, and these files are not appended to it: "
            "run the same command again to append all of them"
        ) from refused


def _made_table(
    catalog: RemoteCatalog, identifier: TableIdentifier, folder: ParquetFolder, location: str | None
) -> TableAnswer:
    """Make a table for files, with its namespace; return it, or one that was made meanwhile."""
    is_new = not catalog.namespaces.exists(identifier.namespace)
    if is_new:
        catalog.namespaces.create(identifier.namespace)
    try:
        return catalog.tables.create(
            identifier,
            folder.schema.to_object(),
            partition_spec=folder.partition_spec,
            location=location,
            properties=folder.properties,
        )
    except CatalogRefused as refused:
        if is_new and refused.status in _SURE_REFUSALS:
            # It is not dropped: somebody else may count on it by now.
            raise SourceFailed(
                f"{refused.message.rstrip('.')}. Namespace {identifier.namespace} has been made"
            ) from refused
        if refused.status != 409:
            raise
        return catalog.tables.load(identifier, "refs")


def _new_files(
    catalog: RemoteCatalog, identifier: TableIdentifier, found: Mapping[str, int]
) -> tuple[list[str], AppendedFolder]:
    """Return the files that the table never had, and which others are left out."""
    there = set(_live_files(catalog, identifier))
    missing = [path for path in found if loose_place_of(path) not in there]
    former = former_files(catalog, identifier) if missing else FormerFiles()
    new, outcome = list[str](), AppendedFolder()
    for path in missing:
        if former.has(path):
            outcome.let_go.append(path)
        elif former.may_have(found[path]):
            outcome.unsure.append(path)
        else:
            new.append(path)
    return new, outcome


def _batches(paths: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(paths), FILES_A_REQUEST):
        yield list(paths[start : start + FILES_A_REQUEST])


def _live_files(catalog: RemoteCatalog, identifier: TableIdentifier) -> Iterator[tuple[str, str]]:
    table = catalog.tables.load(identifier, "refs")
    if "main" not in (table.metadata.get("refs") or {}):
        return
    for found in catalog.history.files(identifier):
        yield loose_place_of(str(found["file-path"]))

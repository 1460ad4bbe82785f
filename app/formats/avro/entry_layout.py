"""Where the fields are in a manifest's records: the writer's schema, resolved by id."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from operator import methodcaller
from typing import Any

from app.fileio.wanted import check_wanted
from app.formats.avro.container import Block
from app.formats.avro.entry_fields import (
    DATA_FILE,
    ENTRY_FIELDS,
    FIELDS_OF_ENTRY,
    IDS_BY_NAME,
    PARTITION,
    Reader,
    leave_alone,
    reader_of,
)
from app.formats.avro.entry_shapes import EntryShapes
from app.formats.avro.schema_types import compile_type, has_plain_fixed
from app.formats.avro.types import AvroType, NotTraceable, Record, Token


class EntryLayout:
    """How the records of manifests with one schema are read. Safe to use from many threads."""

    def __init__(self, schema: Any, *, counted_fixed: bool = False) -> None:
        """Resolve a schema.

        Raises:
            ValueError: it is not the schema of a manifest.
        """
        self._steps: list[tuple[AvroType, int | None]] = []
        self._flatten(compile_type(schema, counted_fixed=counted_fixed))
        ids = [field_id for _, field_id in self._steps if field_id is not None]
        self.groups: Mapping[int, int] = {field_id: at + 1 for at, field_id in enumerate(ids)}
        """Which group of a match has a field's bytes."""
        if len(self.groups) != len(ids):
            raise ValueError("its entries have a field twice")
        for required_id, field in ENTRY_FIELDS.items():
            if field.required and required_id not in self.groups:
                raise ValueError(f"its entries have no {field.name}")
        readers: dict[int, Reader] = {}
        self._is_usual = True
        for kind, field_id in self._steps:
            if field_id is not None:
                readers[field_id], is_usual = reader_of(kind, ENTRY_FIELDS[field_id])
                self._is_usual = self._is_usual and is_usual
        self.read_partition = readers[PARTITION]
        readers[PARTITION] = leave_alone
        self.readers = tuple(readers.values())
        """The readers of the groups; the partition, which many records share, is left out."""
        self._shapes = EntryShapes()

    def _flatten(self, kind: AvroType, *, below_file: bool = False) -> None:
        if not isinstance(kind, Record):
            raise ValueError("its records are not manifest entries")  # noqa: TRY004 - the file's fault
        for field in kind.fields:
            # Where a writer gave no ids, fields are found by the spec's names.
            field_id = IDS_BY_NAME.get(field.name) if field.field_id is None else field.field_id
            if field_id == DATA_FILE and not below_file:
                self._flatten(field.kind, below_file=True)
            else:
                is_read = field_id is not None and field_id in ENTRY_FIELDS
                is_read = is_read and (field_id in FIELDS_OF_ENTRY) != below_file
                self._steps.append((field.kind, field_id if is_read else None))

    def split(self, content: bytes, pos: int) -> tuple[bytes, ...]:
        """Return the bytes of a record's fields, in the order of `groups`.

        Raises:
            ValueError: there is no record.
            IndexError: the content ends before the record does.
        """
        match = self._shapes.match(content, pos)
        return self._walk(content, pos)[0] if match is None else match.groups()

    def pick(self, content: bytes, pos: int, groups: Sequence[int]) -> tuple[Sequence[bytes], int]:
        """Return the bytes of two or more fields, and the record's end; raises like `split`."""
        match = self._shapes.match(content, pos)
        if match is not None:
            return match.group(*groups), match.end()
        parts, end = self._walk(content, pos)
        return [parts[group - 1] for group in groups], end

    def pick_at(self, content: bytes, starts: Iterable[int], groups: Sequence[int]) -> list[Sequence[bytes]]:
        """Return the bytes of two or more fields of records at some places; raises like `split`."""
        match, pick = self._shapes.first, self.pick
        fields_of = methodcaller("group", *groups)
        # Most records of a manifest have one shape, and the others are looked at with all shapes.
        return [
            pick(content, start, groups)[0] if (found := match(content, start)) is None else fields_of(found)
            for start in starts
        ]

    def pick_all(self, block: Block, groups: Sequence[int]) -> list[Sequence[bytes]]:
        """Return the bytes of two or more fields of each record of a block.

        Raises:
            ValueError: the block does not have the records it says.
            IndexError: a record is cut off.
        """
        content, pos = block.content, 0
        found: list[Sequence[bytes]] = []
        while len(found) < block.record_count:
            # The first record of a run may need a walk, and brings the shape to the front that the next ones have.
            parts, pos = self.pick(content, pos, groups)
            found.append(parts)
            run = self._shapes.run(content, pos)
            if run:
                found += [match.group(*groups) for match in run]
                pos = run[-1].end()
        if len(found) != block.record_count or pos != len(content):
            raise ValueError("a block does not have the records it says")
        return found

    def _walk(self, content: bytes, pos: int) -> tuple[tuple[bytes, ...], int]:
        check_wanted()  # A record may have millions of values.
        # Shapes are for schemas as the spec has them; records of any other are always walked.
        if self._is_usual and self._shapes.wants_lesson():
            self._learn(content, pos)
        parts = []
        for kind, field_id in self._steps:
            end = kind.skip(content, pos)
            if field_id is not None:
                parts.append(content[pos:end])
            pos = end
        if pos > len(content):
            raise IndexError
        return tuple(parts), pos

    def _learn(self, content: bytes, pos: int) -> None:
        tokens: list[Token] = []
        try:
            for kind, field_id in self._steps:
                if field_id is not None:
                    tokens.append(b"(")
                pos = kind.trace(content, pos, tokens)
                if field_id is not None:
                    tokens.append(b")")
        except NotTraceable:
            self._shapes.put_off_lesson()
            return
        self._shapes.learn(tokens)


@lru_cache(maxsize=128)
def layouts_of(schema_text: str) -> tuple[EntryLayout, ...]:
    """Return the layouts that records with a schema can have, likeliest first.

    There are two if a partition has a value of the type `fixed`: see `CountedFixed`. The first that fits a whole
    manifest is right. Manifests of one table share layouts, and what was learnt about their records.

    Raises:
        ValueError: the text is not the schema of a manifest.
    """
    try:
        schema = json.loads(schema_text)
        layout = EntryLayout(schema)
        if has_plain_fixed(schema):
            # A length before each value is hardly there by chance; but read as part of a value, it may look sound.
            return EntryLayout(schema, counted_fixed=True), layout
    except RecursionError as error:
        raise ValueError("its schema is nested too deeply") from error
    return (layout,)

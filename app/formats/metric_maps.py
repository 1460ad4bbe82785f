"""Metrics by field id, as they stand in a manifest: taken apart when somebody asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from app.formats.avro_types import read_long

Value = TypeVar("Value", int, bytes)


class _MetricMap(Mapping[int, Value], Generic[Value]):
    """A mapping over the Avro bytes of an array of pairs, which are known to be sound.

    Most entries of a large manifest are dropped by their partition, so most metrics are never looked at; and as
    bytes they take a fraction of the memory of a dict.
    """

    __slots__ = ("_content", "_values")

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._values: dict[int, Value] | None = None

    def _read(self) -> dict[int, Value]:
        raise NotImplementedError

    @property
    def _known(self) -> dict[int, Value]:
        values = self._values
        if values is None:
            values = self._values = self._read()
        return values

    def __getitem__(self, field_id: int) -> Value:
        return self._known[field_id]

    def get(self, field_id, default=None):
        return self._known.get(field_id, default)

    def __contains__(self, field_id: object) -> bool:
        return field_id in self._known

    def __iter__(self) -> Iterator[int]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def __repr__(self) -> str:
        return repr(self._known)

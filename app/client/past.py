"""Calls about the past: what was dropped, restoring, and differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.client.answers import OpenAnswer, PageAnswer
from app.client.http.http_calls import CatalogCalls
from app.client.request_parts import JsonObject, given, identifier_body
from app.engine.model.identifiers import LEVEL_SEPARATOR, Namespace, TableIdentifier


class _Page(PageAnswer, OpenAnswer):
    """One page of what was dropped, or of a difference."""


class PastCalls(CatalogCalls):
    """The past of one warehouse."""

    def dropped(self, namespace: Namespace | None = None, name: str | None = None) -> Iterator[JsonObject]:
        """Yield what can come back, latest drop first; with a name, only what had it."""
        query = {} if namespace is None else {"namespace": LEVEL_SEPARATOR.join(namespace.levels)}
        if name is not None:
            query["name"] = name
        for page in self._pages("dropped", query):
            yield from page["dropped"]

    def undrop(
        self, wanted: JsonObject, new: JsonObject | None = None, *, create_namespace: bool = False
    ) -> JsonObject:
        """Bring something back.

        Args:
            wanted: an `id`, or a `namespace` with or without a `name`.
            new: the `namespace` or `name` that it gets, if it gets another.
            create_namespace: make the namespace if it is missing.
        """
        body = {**wanted, **given({"as": new or None, "create-namespace": create_namespace or None})}
        return self._calls.read(OpenAnswer, "POST", f"{self._root}/undrop", body=body).model_dump()

    def purge_dropped(self, wanted: JsonObject) -> JsonObject:
        """Forget something that was dropped; `wanted` as for `undrop`."""
        return self._calls.read(OpenAnswer, "POST", f"{self._root}/dropped/purge", body=wanted).model_dump()

    def restore(self, tables: Sequence[TableIdentifier], at: str, *, dry_run: bool) -> JsonObject:
        """Make tables what they were at a time, all or none, or return what would change."""
        body = {"at": at, "tables": [identifier_body(table) for table in tables], "dry-run": dry_run}
        return self._calls.read(OpenAnswer, "POST", f"{self._root}/restore", body=body).model_dump()

    def diff(self, before: str, after: str | None = None) -> Iterator[JsonObject]:
        """Yield pages of the `namespaces`, and then the `names`, that are different at two times."""
        return self._pages("diff", given({"from": before, "to": after}))

    def _pages(self, path: str, query: dict[str, str]) -> Iterator[JsonObject]:
        for page in self._calls.read_pages(_Page, f"{self._root}/{path}", query):
            yield page.model_dump()

"""What routes are given: `Parts`, shared by all requests, and `Visit`, one request."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar

from fastapi import Depends
from starlette.requests import Request
from starlette.types import Scope

from app.api.bodies.json_body import BodyT, check_count, parse_body, unknown_name
from app.api.entrance.commit_ids import CommitIds
from app.api.names_in_paths import (
    decode_piece,
    identifier_in_path,
    namespace_in_path,
    parameters_in_query,
    with_literal_plus,
)
from app.api.patience import Patience
from app.api.responses.packed_answers import PackedAnswers
from app.api.scope_keys import COMMIT_ID, HEADERS, PREFIX, PRINCIPAL, RECEIPT_HEAD, REQUEST_ID
from app.catalog import named
from app.catalog.context.callers import Caller
from app.catalog.context.catalog import Catalog
from app.catalog.context.name_lists import NameLists
from app.catalog.context.past.moments import split_name
from app.catalog.context.pointer_batches import PointerBatches
from app.catalog.context.rows import IdempotencyClaim, ReceiptHead, Warehouse
from app.catalog.context.server import Server
from app.catalog.context.threads.convoys import Convoys
from app.catalog.context.threads.crew import Crew
from app.catalog.context.threads.rooms import Rooms
from app.catalog.health import PunctualChecks
from app.catalog.past.moments import check_moment
from app.catalog.slots.beginnings import Client
from app.catalog.slots.held_loads import HeldLoads
from app.catalog.slots.landing_slots import LandingSlots
from app.catalog.warehouses import WarehouseMemo, is_warehouse_name
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.errors import InvalidRequest
from app.fileio.locations import is_instant
from app.fileio.wanted import ask_if_wanted
from app.shares import Group, group_at_work

Work = TypeVar("Work")
_NAMED_BY_LOCATION = "(named by its location)"
"""All warehouses that prefixes name so, in errors too."""
_NAMING_IN_BODY = frozenset(
    {"/v1/transactions/commit", "/v1/tables/rename", "/v1/views/rename", "/v1/undrop", "/v1/restore"}
)
_FIRST_NAME = re.compile(rb'\{[^{}]{0,1000}"namespace"[^{}]{1,1000}\}')
_HEAD_OF_BODY = 4096
"""Bytes in which the first name is looked for: no thread parses the body before it has room."""
_PROXIES = (b"x-forwarded-for", b"forwarded", b"via")
"""Headers by which proxies show themselves."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What every route may need, put together once by `app.main`."""

    server: Server
    rooms: Rooms
    crew: Crew
    convoys: Convoys
    slots: LandingSlots
    held_loads: HeldLoads
    warehouses: WarehouseMemo
    lookups: PointerBatches
    name_lists: NameLists
    packed_answers: PackedAnswers
    default_warehouse: str
    max_body_values: int
    """How many values the JSON of a request may hold."""
    key_lifetime_minutes: int
    """How long the outcome under an Idempotency-Key is remembered."""
    endpoints: tuple[str, ...]
    """Every operation of the protocol that is served, as `GET /v1/{prefix}/namespaces`."""
    endpoints_of_the_past: tuple[str, ...]
    """Those of them that a warehouse as it was serves."""
    commit_ids: CommitIds
    readiness: PunctualChecks
    """What `/ready` answers."""


class Visit:
    """One request: its target, its content and its caller."""

    __slots__ = ("_scope", "body", "parts")

    def __init__(self, scope: Scope, body: bytes) -> None:
        self._scope = scope
        self.body = body
        self.parts: Parts = scope["app"].state.parts

    def caller(self, claim: IdempotencyClaim | None = None, warehouse: str = "") -> Caller:
        """Return the caller, with the claim of an Idempotency-Key, and what a receipt begins with."""
        head: ReceiptHead | None = self._scope.get(RECEIPT_HEAD)
        if head is not None and head.warehouse != warehouse:
            # The prefix may be a location in it, or name a time as well: the receipt is looked for by its name.
            head = self._scope[RECEIPT_HEAD] = replace(head, warehouse=warehouse)
            self.parts.commit_ids.correct(head)
        return Caller(self.principal, self.request_id, claim, head)

    def catalog_of(self, warehouse: Warehouse, claim: IdempotencyClaim | None = None) -> Catalog:
        """Return a warehouse for this caller: the only way from routes to the catalog.

        Raises:
            InvalidMoment: the prefix names a time that makes no sense.
        """
        caller = self.caller(claim, warehouse.name)
        return Catalog(self.parts.server, warehouse, caller, self.as_of_ms(self.moment))

    @property
    def catalog(self) -> Catalog:
        """The warehouse that the path names, for this caller; raises `NoSuchWarehouse`."""
        return self.catalog_of(self.warehouse)

    async def load_catalog(self) -> Catalog:
        """Return the same, for coroutines; a thread looks the warehouse up, unless it is known."""
        warehouse = self.parts.warehouses.find_kept(self.warehouse_name)
        if warehouse is None:
            warehouse = await self.in_thread(lambda: self.warehouse)
        return self.catalog_of(warehouse)

    @property
    def method(self) -> str:
        return str(self._scope["method"])

    @property
    def raw_target(self) -> bytes:
        """Path and query exactly as they were sent."""
        return bytes(self._scope["raw_path"]) + b"?" + bytes(self._scope["query_string"])

    @property
    def request_id(self) -> str:
        return str(self._scope[REQUEST_ID])

    @property
    def commit_id(self) -> str:
        """The commit id that the answer carries; empty for a request that changes nothing."""
        return str(self._scope.get(COMMIT_ID, ""))

    @commit_id.setter
    def commit_id(self, first: str) -> None:
        self._scope[COMMIT_ID] = first

    @property
    def principal(self) -> str:
        return str(self._scope[PRINCIPAL])

    @property
    def client(self) -> Client | None:
        """The connection that the request came on; None behind a proxy.

        Many clients may share the connections of a proxy.
        """
        found = self._scope.get("client")
        if not found or not found[1] or any(self.header(name) for name in _PROXIES):
            return None
        return found[0], found[1]

    @property
    def query(self) -> dict[str, str]:
        return parameters_in_query(self._scope["query_string"])

    @property
    def literal_query(self) -> dict[str, str]:
        """The query of a client that sends a plus as it is."""
        return parameters_in_query(self._scope["query_string"].replace(b"+", b"%2B"))

    def parameters(self, *known: str) -> dict[str, str]:
        """Return the query of a route of Icetower's own.

        Each of them asks, also those that know no parameter.

        Raises:
            InvalidRequest: it has a parameter that is not known.
        """
        query = self.query
        for name in query:
            if name not in known:
                raise InvalidRequest(f"Invalid query: {unknown_name('parameter', name, known)}")
        return query

    def extension_body(self, model: type[BodyT]) -> BodyT:
        """Return the body of a route of Icetower's own.

        Raises:
            InvalidRequest: names the first part that is wrong, or a query parameter.
        """
        # None of them has parameters: `?dry-run=true` would do what it should only show.
        self.parameters()
        return parse_body(model, self.body)

    @property
    def prefix(self) -> str | None:
        """The warehouse that the path's prefix names, if it has one."""
        prefix: str | None = self._scope.get(PREFIX)
        return prefix

    @property
    def warehouse_name(self) -> str:
        """The warehouse that the prefix names, or the default one."""
        prefix = self.prefix
        return split_name(prefix)[0] if prefix is not None else self.parts.default_warehouse

    @property
    def moment(self) -> str | None:
        """The time that the prefix names, as it was written; None for the present."""
        prefix = self.prefix
        return split_name(prefix)[1] if prefix is not None else None

    def as_of_ms(self, moment: str | None) -> int | None:
        """Return a time in epoch milliseconds; raises `InvalidMoment`."""
        return None if moment is None else check_moment(self.parts.server, moment)

    @property
    def warehouse(self) -> Warehouse:
        """Look the warehouse up; raises `NoSuchWarehouse`."""
        return self.parts.warehouses.load(self.warehouse_name)

    @property
    def has_plus(self) -> bool:
        """Whether names in the path have two readings: the catalog says which one is meant."""
        return any("+" in piece for piece in self._path.values())

    @property
    def namespace(self) -> Namespace:
        piece = self._path["namespace"]
        found = namespace_in_path(piece)
        if "+" not in piece:
            return found
        return named.choose_namespace(self.catalog, found, namespace_in_path(with_literal_plus(piece)))

    @property
    def table(self) -> TableIdentifier:
        return self._identifier("table")

    @property
    def view(self) -> TableIdentifier:
        return self._identifier("view")

    def _identifier(self, kind: str) -> TableIdentifier:
        pieces = self._path["namespace"], self._path[kind]
        found = identifier_in_path(*pieces)
        if "+" not in "".join(pieces):
            return found
        return named.choose_identifier(
            self.catalog, found, identifier_in_path(*map(with_literal_plus, pieces))
        )

    def room(self) -> AbstractAsyncContextManager[None]:
        """Hold room for one thread; raises `Unavailable`. All work in threads for requests is done in it."""
        return self.parts.rooms.room_for(*self.group)

    @property
    def group(self) -> Group:
        """Whom its work is for; what it waits for holds up others of the same group first."""
        path = self._scope["path"]
        if not path.startswith("/v1/") or path == "/v1/config":
            return "", self._place
        name = self.warehouse_name
        # A warehouse has one name, and locations without end: it must not have as many shares of the threads.
        return name if is_warehouse_name(name) else _NAMED_BY_LOCATION, self._place

    def _has_room(self) -> bool:
        return self.parts.rooms.has_room(*self.group)

    @property
    def _place(self) -> str:
        """What it is about.

        What is no table is kept apart by its path, as a namespace's listing. A transaction, and what else has its names
        in the body, is about the first of them.
        """
        path: str = self._scope["path"]
        if path in _NAMING_IN_BODY and (first := _FIRST_NAME.search(self.body, 0, _HEAD_OF_BODY)):
            return f"{path} {first[0].decode('latin-1')}"
        return "/".join(path.split("/", 6)[:6]) if "table" in self._path or "view" in self._path else path

    async def in_thread(self, work: Callable[[], Work]) -> Work:
        """Run work in a thread as soon as there is room; raises `Unavailable`, and what it raises."""
        async with self.room():
            return await self.parts.crew.run(work)

    async def in_convoy(self, work: Callable[[], Work]) -> Work:
        """Run work like `in_thread`, together with what else comes for its warehouse.

        Where its files are not on this machine it has a thread for itself: it may wait for long.
        """
        parts = self.parts
        warehouse = parts.warehouses.find_kept(self.warehouse_name)
        if warehouse is None or not is_instant(warehouse.root_location):
            return await self.in_thread(work)
        return await parts.convoys.run(warehouse.name, self._place, self.room, work, self._has_room)

    @property
    def warehouse_piece(self) -> str:
        """The warehouse in the path as it was sent, still percent-encoded."""
        return self._path["warehouse"]

    def text(self, name: str) -> str:
        """Return a piece of the path, decoded."""
        return decode_piece(self._path[name])

    def header(self, name: bytes) -> bytes | None:
        """Return a header by its lower-case name."""
        headers: Mapping[bytes, bytes] = self._scope[HEADERS]
        return headers.get(name)

    @property
    def _path(self) -> Mapping[str, str]:
        path: dict[str, Any] = self._scope["path_params"]
        return path


async def open_visit(request: Request) -> Visit:
    """Read the whole request.

    Raises:
        InvalidRequest: its JSON holds more values than are accepted.
    """
    body = await request.body()
    parts: Parts = request.scope["app"].state.parts
    parts.commit_ids.begin(request.scope)
    check_count(body, parts.max_body_values)
    # Threads get a copy of this request's context, and no other request sees it.
    ask_if_wanted.set(Patience(Request(request.scope, request.receive)))
    visit = Visit(request.scope, body)
    group_at_work.set(visit.group)
    return visit


async def _visit_with_room(request: Request) -> AsyncIterator[Visit]:
    visit = await open_visit(request)
    async with visit.room():
        yield visit


Visited = Annotated[Visit, Depends(_visit_with_room, scope="function")]
"""The parameter of every route that FastAPI runs in its thread pool: it waits until there is room."""

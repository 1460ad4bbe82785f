"""The layer around every request: id, path, size limit, timing, log, gzip, last handler."""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from time import perf_counter

from prometheus_client import Counter, Histogram
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.compression import MIN_GZIP_BYTES, SLOW_GZIP_BYTES, accepts_gzip, compress, made_beside
from app.api.entrance.addresses import Addresses
from app.api.entrance.authentication import principal_of
from app.api.entrance.body_budget import BodyBudget
from app.api.entrance.commit_ids import COMMIT_ID_HEADER, CommitIds
from app.api.entrance.incoming import Incoming
from app.api.entrance.web_pages import check_given_once, check_sender
from app.api.error_responses import RETRY_AFTER_SECONDS, body_of, is_retry_safe, status_and_type
from app.api.names_in_paths import split_prefix
from app.api.responses.answers import JSON
from app.api.scope_keys import COMMIT_ID, HEADERS, PREFIX, PRINCIPAL, REQUEST_ID
from app.error_frames import let_go_of_frames
from app.errors import InvalidRequest
from app.fileio.storage_settings import MASK
from app.telemetry import REQUEST_SECONDS, REQUESTS, log_lines, loggable, new_request_id, request_id

_SANE_ID = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_CLIENT_GONE = 499
_LOOKED_AT = 10_000
"""Characters of a refusal in which secrets are looked for: it may repeat a name of many megabytes."""
# Each looks at a character a few times at most: texts may be long, and are somebody else's.
_USER_OF_URL = re.compile(r"://[^/?#\s'\":]*+:[^/?#\s'\"]*@")
_URL = re.compile(r"(://[^?\s'\"]*+)(\?[^\s'\"]++)?")


class FrontDoor:
    """Wraps the application: every request is logged and answered here."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        addresses: Addresses,
        max_body_bytes: int,
        max_bodies_bytes: int,
        log_requests: bool,
        route_labels: Mapping[object, str],
        commit_ids: CommitIds,
    ) -> None:
        self.app = app
        self.addresses = addresses
        self.max_body_bytes = max_body_bytes
        self.budget = BodyBudget(max_bodies_bytes)
        self.log_requests = log_requests
        self.route_labels = route_labels
        self.commit_ids = commit_ids
        self._meters: dict[tuple[object, str, int], tuple[Counter, Histogram, str]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = perf_counter()
        headers: dict[bytes, bytes] = dict(scope["headers"])
        given = headers.get(b"x-request-id")
        if given is not None and _SANE_ID.fullmatch(given):
            id_bytes, visit_id = given, given.decode("ascii")
        else:
            visit_id = new_request_id()
            id_bytes = visit_id.encode("ascii")
        request_id.set(visit_id)
        scope[HEADERS] = headers
        scope[REQUEST_ID] = visit_id
        gzip_accepted = accepts_gzip(headers.get(b"accept-encoding", b""))
        incoming = Incoming(
            receive, headers, scope["raw_path"], max_bytes=self.max_body_bytes, budget=self.budget
        )
        answer = _Answer(scope, send, id_bytes, incoming, gzip_accepted=gzip_accepted)
        failure: Exception | None = None
        try:
            if len(headers) != len(scope["headers"]):
                check_given_once(scope["headers"])
            if b"host" not in headers and scope["http_version"] == "1.1":
                raise InvalidRequest("Invalid request: it has no header Host")
            check_sender(scope["method"], headers, self.addresses.host_check(scope))
            scope[PRINCIPAL] = principal_of(headers)
            path, scope[PREFIX] = split_prefix(scope["raw_path"])
            scope["path"] = path
            self.addresses.check_path(scope, path)
            incoming.check()
            await self.app(scope, incoming.receive, answer.send)
        except ClientDisconnect:
            answer.status = _CLIENT_GONE
        except Exception as error:  # the outermost handler: every failure is answered here
            failure = error
            self._report(error, visit_id)
            self.commit_ids.fail(scope, error)
            if answer.has_started:
                # Half an answer is out: only a broken connection shows the client that it is not whole.
                raise
            await _send_error(scope, answer.send, error)
        finally:
            incoming.let_go()
            self.commit_ids.end(scope)
            self._close(scope, answer, perf_counter() - started, failure)
            if failure is not None:
                let_go_of_frames(failure)

    def _report(self, error: Exception, visit_id: str) -> None:
        """Log the cause of a 5xx; a refusal says everything in its answer."""
        status, kind = status_and_type(error)
        if status < 500:
            return
        log_lines.write(
            {
                "at": datetime.now(UTC),
                "level": "error" if status == 500 else "warning",
                "event": "failure",
                "request_id": visit_id,
                "type": kind,
                "error": type(error).__name__,
                "message": loggable(str(error)),
                "traceback": loggable("".join(traceback.format_exception(error))),
            }
        )
        log_lines.flush()

    def _close(self, scope: Scope, answer: _Answer, seconds: float, failure: Exception | None) -> None:
        """Count and log an answered request."""
        status = answer.status
        method = scope["method"]
        key = (scope.get("endpoint"), method, status)
        meters = self._meters.get(key)
        if meters is None:
            label = self.route_labels.get(key[0], "none")
            method_label = method if method in _METHODS else "other"
            meters = self._meters[key] = (
                REQUESTS.labels(method_label, label, str(status)),
                REQUEST_SECONDS.labels(method_label, label),
                label,
            )
        counter, histogram, label = meters
        counter.inc()
        histogram.observe(seconds)
        if not self.log_requests and status < 500:
            return
        # The query and the headers stay out of the log: they may hold secrets.
        line: dict[str, object] = {
            "at": datetime.now(UTC),
            "level": "info" if status < 500 else "warning",
            "event": "request",
            "request_id": scope[REQUEST_ID],
            "method": method,
            "path": scope["raw_path"][:2_000].decode("latin-1"),
            "route": label,
            "status": status,
            "ms": round(seconds * 1000, 3),
            "bytes": answer.sent_bytes,
        }
        if COMMIT_ID in scope:
            line["commit_id"] = scope[COMMIT_ID]
        client = scope.get("client")
        if client:
            line["client"] = client[0]
        if failure is not None and status < 500:
            line["error"] = _without_secrets_of_urls(str(failure)[:_LOOKED_AT])[:500]
        log_lines.write(line)


def _without_secrets_of_urls(text: str) -> str:
    """Hide queries and users of URLs that a refusal repeats: signed ones are keys."""
    without_users = _USER_OF_URL.sub(f"://{MASK}@", text)
    return _URL.sub(lambda found: f"{found[1]}?{MASK}" if found[2] else found[0], without_users)


class _Answer:
    """The answer to one request: adds headers, and compresses a large body."""

    __slots__ = (
        "_accepts_gzip",
        "_held",
        "_id",
        "_incoming",
        "_scope",
        "_send",
        "has_started",
        "sent_bytes",
        "status",
    )

    def __init__(
        self, scope: Scope, send: Send, id_bytes: bytes, incoming: Incoming, *, gzip_accepted: bool
    ) -> None:
        self._scope = scope
        self._send = send
        self._id = id_bytes
        self._incoming = incoming
        self._accepts_gzip = gzip_accepted
        self._held: Message | None = None
        self.has_started = False
        self.sent_bytes = 0
        self.status = 500

    async def send(self, message: Message) -> None:
        """Pass one ASGI message on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message["headers"], (b"x-request-id", self._id)]
            if COMMIT_ID in self._scope:
                headers.append((COMMIT_ID_HEADER, self._scope[COMMIT_ID].encode("ascii")))
            if not self._incoming.is_whole:
                # The rest of the body will not be read.
                headers.append((b"connection", b"close"))
            start: Message = {"type": "http.response.start", "status": self.status, "headers": headers}
            if self._accepts_gzip and _is_compressible(headers):
                self._held = start
                return
            self.has_started = True
            await self._send(start)
            return
        held = self._held
        if held is not None:
            self._held = None
            message = await _compressed(held, message)
            self.has_started = True
            await self._send(held)
        self.sent_bytes += len(message.get("body", b""))
        await self._send(message)


async def _send_error(scope: Scope, send: Send, error: Exception) -> None:
    """Answer with an error in the protocol's shape; a HEAD request gets the status alone."""
    status, _ = status_and_type(error)
    body = body_of(error, scope[REQUEST_ID], scope.get(PREFIX))
    headers = [JSON]
    if is_retry_safe(error):
        headers.append((b"retry-after", str(RETRY_AFTER_SECONDS).encode("ascii")))
    if scope["method"] == "HEAD":
        body = b""
    else:
        headers.append((b"content-length", str(len(body)).encode("ascii")))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _is_compressible(headers: list[tuple[bytes, bytes]]) -> bool:
    length = 0
    for name, value in headers:
        if name == b"content-encoding":
            return False
        if name == b"content-length":
            length = int(value)
    return length >= MIN_GZIP_BYTES


async def _compressed(start: Message, message: Message) -> Message:
    """Compress a whole body and note it in the headers; a body in pieces goes out as it is."""
    if message.get("more_body", False):
        return message
    body: bytes = message["body"]
    if len(body) >= SLOW_GZIP_BYTES:
        packed = await made_beside(partial(compress, body))
    else:
        packed = compress(body)
    headers: list[tuple[bytes, bytes]] = [pair for pair in start["headers"] if pair[0] != b"content-length"]
    headers.append((b"content-encoding", b"gzip"))
    headers.append((b"content-length", str(len(packed)).encode("ascii")))
    headers.append((b"vary", b"accept-encoding"))
    start["headers"] = headers
    return {"type": "http.response.body", "body": packed}

"""One HTTP call: sent, retried where that is safe, and its answer read.

Retries follow those of the protocol's own clients. GET, HEAD and DELETE are sent again when the server is busy or away
(429, 502, 503, 504) or the connection broke. POST is sent again only on 429 or 503 with a `Retry-After`, which promise
that nothing was applied. A mutation keeps its Idempotency-Key when it is sent again.
"""

from __future__ import annotations

import re
import secrets
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import PackageNotFoundError, version
from ipaddress import ip_address
from typing import Protocol, TypeVar
from uuid import UUID

import httpx
from pydantic import ValidationError

from app.client.answers import PageAnswer, ServerAnswer
from app.client.http import failures
from app.client.http.bounded_answers import read_whole
from app.client.request_parts import JsonObject, named_path, path_piece
from app.engine.model.identifiers import TableIdentifier

A = TypeVar("A", bound=ServerAnswer)
P = TypeVar("P", bound=PageAnswer)
PAGE_SIZE = 1000
MOST_PAGES = 100_000
"""A listing that has more has no end: some servers send a new token each time."""
SAFE_TO_REPEAT = frozenset({"GET", "HEAD", "DELETE"})
MUTATIONS = frozenset({"POST", "DELETE", "PUT", "PATCH"})
BUSY = frozenset({429, 502, 503, 504})
LOGIN_OVER = frozenset({401, 419})
"""The token is not, or no more, valid; nothing was applied."""
NOTHING_APPLIED = frozenset({429, 503})
"""Statuses that, with a `Retry-After`, promise that the request changed nothing."""

_NOT_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
"""What OpenSSL says of an answer that is not TLS."""
CONNECTION_BROKE = (httpx.ReadError, httpx.WriteError, httpx.CloseError, httpx.RemoteProtocolError)


@dataclass(frozen=True, slots=True)
class Retries:
    """How often and after how long a call is sent again."""

    most: int = 5
    first_wait_seconds: float = 0.25
    longest_wait_seconds: float = 30.0
    sleep: Callable[[float], None] = field(default=time.sleep)
    now: Callable[[], float] = field(default=time.time)
    elapsed: Callable[[], float] = field(default=time.monotonic)


def new_idempotency_key() -> str:
    """Return a fresh UUID of version 7: time first, so that the server's index stays compact."""
    milliseconds = time.time_ns() // 1_000_000
    bits = (milliseconds & (1 << 48) - 1) << 80 | 7 << 76 | secrets.randbits(12) << 64
    return str(UUID(int=bits | 0b10 << 62 | secrets.randbits(62)))


class Tokens(Protocol):
    """Where the tokens of a client come from."""

    def current(self) -> str:
        """Return a token; raises `LoginFailed`."""
        ...

    def forget(self, refused: str) -> None:
        """Use a token no more, which a server has refused."""
        ...


class HttpCalls:
    """Calls to one server, over kept connections."""

    def __init__(
        self,
        uri: str,
        *,
        retries: Retries | None = None,
        timeout_seconds: float = 60.0,
        transport: httpx.BaseTransport | None = None,
        headers: Mapping[str, str] | None = None,
        tokens: Tokens | None = None,
        warehouse: str | None = None,
    ) -> None:
        self.uri = shown_uri(uri).rstrip("/")
        # What has become of a change is found in its own warehouse only.
        place = ["--uri", self.uri, *([] if warehouse is None else ["--warehouse", warehouse])]
        self._place: str | None = f" {shlex.join(place)}"
        self._tokens = tokens
        self._retries = retries or Retries()
        self._timeout_seconds = timeout_seconds
        url = checked_url(uri)
        self._http = httpx.Client(
            headers={
                "Accept": "application/json",
                "User-Agent": f"icetower/{_own_version()}",
                **(headers or {}),
            },
            timeout=httpx.Timeout(timeout_seconds, connect=min(timeout_seconds, 10.0)),
            transport=transport,
            auth=(url.username, url.password) if url.userinfo else None,
            # A proxy configured for the outside world has no way to this machine's own loopback.
            trust_env=not is_loopback(url.host),
        )

    def go_on_at(self, uri: str) -> None:
        """Send further calls to another address; raises `CatalogUnreachable` if it is none."""
        checked_url(uri)
        self.uri = shown_uri(uri).rstrip("/")

    def expect_no_receipts(self) -> None:
        """Note that the server keeps none: it is no Icetower."""
        self._place = None

    def close(self) -> None:
        """Close the kept connections."""
        self._http.close()

    def read(
        self,
        answer: type[A],
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: JsonObject | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> A:
        """Send one call and return its answer as a value."""
        response = self.send(method, path, query=query, body=body, headers=headers)
        try:
            return answer.read(response.content)
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in problem["loc"]) or "the body"
            raise failures.AnswerNotUnderstood(
                str(response.url),
                response.status_code,
                f"{where}: {problem['msg']}",
                _key_of(response.request),
                self._place,
            ) from error

    def read_pages(self, page: type[P], path: str, query: Mapping[str, str] | None = None) -> Iterator[P]:
        """Yield every page of a listing.

        Raises:
            CallFailed: a call failed, or the listing has no end.
        """
        token, seen = "", {""}
        for _ in range(MOST_PAGES):
            asked = {**(query or {}), "pageToken": token, "pageSize": str(PAGE_SIZE)}
            found = self.read(page, "GET", path, query=asked)
            yield found
            token = found.next_page_token or ""
            if not token:
                return
            if token in seen:
                # To stop here would look as if the listing were whole.
                raise failures.AnswerNotUnderstood(f"{self.uri}/{path}", 200, "it sends a page token again")
            seen.add(token)
        raise failures.AnswerNotUnderstood(
            f"{self.uri}/{path}", 200, f"its listing goes on after {MOST_PAGES} pages"
        )

    def exists(self, path: str) -> bool:
        """Send a HEAD and return whether the server knows what it names."""
        try:
            self.send("HEAD", path)
        except failures.CatalogRefused as refused:
            if refused.status == 404:
                return False
            raise
        return True

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: JsonObject | None = None,
        headers: Mapping[str, str] | None = None,
        once: bool = False,
    ) -> httpx.Response:
        """Send one call and return the first successful response.

        Args:
            method: of HTTP.
            path: below the server's address.
            query: its parameters.
            body: its JSON.
            headers: more of them.
            once: not to be sent again while it may have been done, whatever its method.

        Raises:
            CallFailed: no attempt was successful, or another attempt would not be safe.
        """
        key = {"Idempotency-Key": new_idempotency_key()} if method in MUTATIONS else {}
        request = self._request(method, path, query, body, {**(headers or {}), **key})
        is_safe = method in SAFE_TO_REPEAT and not once
        wait_seconds = self._retries.first_wait_seconds
        for left in range(self._retries.most, -1, -1):
            try:
                response = self._whole_answer(request)
            except httpx.RequestError as error:
                if left == 0 or not is_safe or not isinstance(error, CONNECTION_BROKE):
                    raise self._failure(request, error) from error
                asked_seconds = None
            else:
                if response.is_success:
                    return response
                asked_seconds = _retry_after_seconds(response, self._retries.now())
                is_too_long = (asked_seconds or 0.0) > self._retries.longest_wait_seconds
                if (
                    left == 0
                    or is_too_long
                    or not _may_repeat(response.status_code, asked_seconds, is_safe=is_safe)
                ):
                    raise _refusal(response, self._place)
            self._retries.sleep(wait_seconds if asked_seconds is None else asked_seconds)
            wait_seconds = min(wait_seconds * 2, self._retries.longest_wait_seconds)
        raise AssertionError("the last sending returns or raises")

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: JsonObject | None,
        headers: Mapping[str, str],
    ) -> httpx.Request:
        url = f"{self.uri}/{path}"
        try:
            return self._http.build_request(method, url, params=query, json=body, headers=headers)
        except UnicodeEncodeError as error:
            # The names of some files are no text.
            found = error.object[max(0, error.start - 20) : error.end].rpartition('"')[2]
            raise failures.NothingSent(url, f"a name or value in it is not UTF-8: {found!r}") from error
        except httpx.InvalidURL as error:
            raise failures.NothingSent(url, str(error)) from error

    def _whole_answer(self, request: httpx.Request) -> httpx.Response:
        if self._tokens is None:
            return self._answer(request)
        token = self._tokens.current()
        request.headers["Authorization"] = f"Bearer {token}"
        response = self._answer(request)
        if response.status_code in LOGIN_OVER:
            # It may have been withdrawn, or end earlier than it said.
            self._tokens.forget(token)
            request.headers["Authorization"] = f"Bearer {self._tokens.current()}"
            response = self._answer(request)
        return response

    def _answer(self, request: httpx.Request) -> httpx.Response:
        with closing(self._http.send(request, stream=True)) as response:
            return read_whole(response, self._timeout_seconds, self._retries.elapsed)

    def _failure(self, request: httpx.Request, error: httpx.RequestError) -> failures.CallFailed:
        reason = str(error) or type(error).__name__
        if any(words in reason for words in _NOT_TLS):
            reason += ". It may speak plain HTTP: try http:// instead of https://"
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.UnsupportedProtocol):
            return failures.CatalogUnreachable(self.uri, reason)
        return failures.AnswerLost(request.method, str(request.url), reason, _key_of(request), self._place)


class CatalogCalls:
    """Calls about one warehouse of a server; all its endpoints are below the path `root`."""

    def __init__(self, calls: HttpCalls, root: str) -> None:
        self._calls = calls
        self._root = root

    def _below_table(self, identifier: TableIdentifier, *pieces: str) -> str:
        return "/".join([self._root, named_path(identifier, "tables"), *map(path_piece, pieces)])


def _key_of(request: httpx.Request) -> str | None:
    key: str | None = request.headers.get("Idempotency-Key")
    return key


def _may_repeat(status: int, asked_seconds: float | None, *, is_safe: bool) -> bool:
    if is_safe:
        return status in BUSY
    return status in NOTHING_APPLIED and asked_seconds is not None


def _retry_after_seconds(response: httpx.Response, now: float) -> float | None:
    """Return the wait that `Retry-After` asks for, as seconds or as a date."""
    text = response.headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.fromtimestamp(now, UTC)).total_seconds())


def _refusal(
    response: httpx.Response, place: str | None
) -> failures.CatalogRefused | failures.AnswerNotUnderstood:
    """Read the protocol's error body; a HEAD has none, so only its status is known."""
    status = response.status_code
    if response.has_redirect_location:
        target = shown_uri(response.headers["Location"])[:500]
        reason = f"it sends its callers on to {target}. Use the address that this belongs to"
        return failures.AnswerNotUnderstood(str(response.url), status, reason)
    if response.request.method == "HEAD":
        return failures.CatalogRefused(status, "RESTException", f"{response.reason_phrase} at {response.url}")
    try:
        body = response.json()
        error = body["error"]
        conflict = error.get("conflict")
        details = conflict if isinstance(conflict, dict) else None
        return failures.CatalogRefused(status, str(error["type"]), str(error["message"]), details)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        if status in LOGIN_OVER:
            # A proxy in front of a catalog asks for tokens too, and knows nothing of the catalog's errors.
            said = f"{response.url} wants to know who asks: it was sent no token, or none that it takes"
            return failures.CatalogRefused(status, "NotAuthorizedException", said)
        key = _key_of(response.request) if status >= 500 else None
        return failures.AnswerNotUnderstood(
            str(response.url), status, "its error has another form", key, place
        )


def shown_uri(uri: str) -> str:
    """Return an address without the user and password that it may name."""
    return re.sub(r"//[^/]*@", "//", uri)


def checked_url(uri: str) -> httpx.URL:
    """Return an address that can be called; raises `CatalogUnreachable`."""
    shown = shown_uri(uri)
    try:
        url = httpx.URL(uri)
        # The system's resolver takes no other names, and no error of httpx says so.
        url.raw_host.decode("ascii").encode("idna")
    except (httpx.InvalidURL, UnicodeError) as error:
        raise failures.CatalogUnreachable(shown, str(error)) from error
    if url.scheme not in {"http", "https"} or not url.host:
        raise failures.CatalogUnreachable(
            shown, "an address starts with http:// or https:// and names a host"
        )
    if not 0 < (url.port or 80) < 1 << 16:
        raise failures.CatalogUnreachable(shown, f"there is no port {url.port}")
    return url


def _own_version() -> str:
    try:
        return version("icetower")
    except PackageNotFoundError:
        return "unknown"


def is_loopback(host: str) -> bool:
    """Return whether only this machine itself reaches a host of this name or address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")

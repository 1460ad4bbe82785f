"""Logging in by OAuth2: a client's id and secret become tokens, which end and are renewed."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from math import isfinite
from typing import Final

import httpx

from app.client.http.bounded_answers import read_whole
from app.client.http.failures import LoginFailed
from app.client.http.http_calls import BUSY, CONNECTION_BROKE, Retries, checked_url, is_loopback, shown_uri

DEFAULT_SCOPE: Final = "catalog"
DEFAULT_ENDPOINT: Final = "v1/oauth/tokens"
_MOST_BYTES: Final = 1 << 20
_ANSWER_SECONDS: Final = 60.0
_MARGIN_SECONDS: Final = 60.0
_LONGEST_REASON: Final = 300
_TOKEN_TYPES: Final = frozenset({"bearer", "n_a"})


@dataclass(frozen=True, slots=True)
class ClientLogin:
    """What a client shows a token endpoint; the names are those of Iceberg's own clients.

    Attributes:
        credential: `id:secret`, or a secret alone.
        oauth2_server_uri: address of the token endpoint.
        scope: what is asked for; not sent if empty.
        further: other fields of the form: `audience`, `resource`.
        headers: sent with each call to the token endpoint.
    """

    credential: str = field(repr=False)
    oauth2_server_uri: str
    scope: str = DEFAULT_SCOPE
    further: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def secret(self) -> str:
        """The part that no message may show."""
        return self.credential.partition(":")[2].strip() or self.credential

    def form(self) -> dict[str, str]:
        """Return the fields that ask for a token."""
        client_id, colon, secret = (part.strip() for part in self.credential.partition(":"))
        client = {"client_id": client_id, "client_secret": secret} if colon else {"client_secret": client_id}
        scope = {"scope": self.scope} if self.scope else {}
        return {"grant_type": "client_credentials", **client, **scope, **self.further}


@dataclass(frozen=True, slots=True)
class _Token:
    text: str = field(repr=False)
    renewed_at: float | None
    """By the clock of `Retries.elapsed`; None if it is not known when it ends."""


class OAuth2Tokens:
    """Tokens of one client; safe to use from several threads, of which one asks for all."""

    def __init__(
        self,
        login: ClientLogin,
        *,
        retries: Retries | None = None,
    ) -> None:
        """Log in at the first call.

        Args:
            login: what is shown to the token endpoint.
            retries: how often it is asked again while it is busy.
        """
        self._login = login
        self._retries = retries or Retries()
        self._lock = threading.Lock()
        self._token: _Token | None = None
        self._uri = shown_uri(login.oauth2_server_uri)
        # Redirects are not followed: the secret would go along.
        self._http = httpx.Client(
            headers={"Accept": "application/json", **login.headers},
            timeout=httpx.Timeout(_ANSWER_SECONDS, connect=10.0),
            follow_redirects=False,
            trust_env=not is_loopback(checked_url(login.oauth2_server_uri).host),
        )

    def close(self) -> None:
        """Close the connections to the token endpoint."""
        self._http.close()

    def current(self) -> str:
        """Return a token that has some time left, as far as its server says when it ends.

        Raises:
            LoginFailed: the token endpoint gives none.
        """
        with self._lock:
            found = self._token
            if found is None or (
                found.renewed_at is not None and self._retries.elapsed() >= found.renewed_at
            ):
                found = self._token = self._fetch()
            return found.text

    def forget(self, refused: str) -> None:
        """Use a token no more, which a server has refused; another one that came since stays."""
        with self._lock:
            if self._token is not None and self._token.text == refused:
                self._token = None

    def _fetch(self) -> _Token:
        wait_seconds = self._retries.first_wait_seconds
        for left in range(self._retries.most, -1, -1):
            asked_at = self._retries.elapsed()
            try:
                response = self._answer()
            except httpx.RequestError as error:
                if left == 0 or not isinstance(error, CONNECTION_BROKE):
                    raise self._failure(str(error) or type(error).__name__) from None
            else:
                if left == 0 or response.status_code not in BUSY:
                    return self._read(response, asked_at)
            self._retries.sleep(wait_seconds)
            wait_seconds = min(wait_seconds * 2, self._retries.longest_wait_seconds)
        raise AssertionError("the last request returns or raises")

    def _answer(self) -> httpx.Response:
        request = self._http.build_request("POST", self._login.oauth2_server_uri, data=self._login.form())
        with closing(self._http.send(request, stream=True)) as response:
            return read_whole(response, _ANSWER_SECONDS, self._retries.elapsed, _MOST_BYTES)

    def _read(self, response: httpx.Response, asked_at: float) -> _Token:
        status = response.status_code
        if response.is_redirect:
            raise self._failure(
                f"it redirects elsewhere (HTTP status {status}), where the secret would go along: give the address "
                "itself as oauth2-server-uri"
            )
        try:
            answer = response.json()
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            hint = (
                "; give the address of its token endpoint as oauth2-server-uri"
                if status in (404, 405)
                else ""
            )
            raise self._failure(f"it answers with HTTP status {status} and no JSON object{hint}")
        if not response.is_success:
            raise self._failure(f"{_error_of(answer)} (HTTP status {status})")
        text, kind = answer.get("access_token"), answer.get("token_type", "bearer")
        if not isinstance(kind, str) or kind.lower() not in _TOKEN_TYPES:
            raise self._failure("it gives a token of another type than bearer")
        # It becomes a header.
        if (
            not isinstance(text, str)
            or not text
            or not (text.isascii() and text.isprintable())
            or " " in text
        ):
            raise self._failure(f"it answers with HTTP status {status} and no token")
        lifetime = _lifetime_seconds(answer.get("expires_in"))
        if lifetime is None:
            return _Token(text, None)
        return _Token(text, asked_at + lifetime - min(_MARGIN_SECONDS, lifetime / 2))

    def _failure(self, reason: str) -> LoginFailed:
        # A server may repeat what it was sent.
        shown = reason.replace(self._login.credential, "…").replace(self._login.secret, "…")
        return LoginFailed(self._uri, shown[:_LONGEST_REASON])


def _error_of(answer: dict[str, object]) -> str:
    """Return what RFC 6749 or the catalog protocol calls an error."""
    error, description = answer.get("error"), answer.get("error_description")
    texts = (error.get("type"), error.get("message")) if isinstance(error, dict) else (error, description)
    return ": ".join(text for text in texts if isinstance(text, str) and text) or "no token"


def _lifetime_seconds(value: object) -> float | None:
    """Return how long a token holds, if the server says it in a way that makes sense."""
    try:
        seconds = float(value) if isinstance(value, int | float | str) and value is not True else 0.0
    except (ValueError, OverflowError):
        return None
    return seconds if isfinite(seconds) and seconds > 0 else None

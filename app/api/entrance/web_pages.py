"""Keeps web pages of other sites out: the browser of a machine reaches its loopback.

A page can send requests to any address that its browser reaches. Three things mark them: `Host`, which must be a name
of this server (a page's own name may be made to lead here); `Sec-Fetch-Site` or `Origin`, which say where the page is
from; and the type of the body, since pages may not send `application/json` to other sites without asking first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from app.api.entrance.addresses import HostCheck
from app.errors import InvalidRequest, NotAllowed, UnsupportedMediaType

_OF_THIS_SITE = frozenset({b"same-origin", b"none"})
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_ONLY_ONCE = frozenset(
    {
        b"authorization",
        b"content-encoding",
        b"content-type",
        b"host",
        b"idempotency-key",
        b"origin",
        b"sec-fetch-mode",
        b"sec-fetch-site",
        b"x-icetower-conflict-filter",
        b"x-icetower-expected-metadata-location",
        b"x-icetower-job",
        b"x-icetower-rebase",
        b"x-icetower-unread",
    }
)
_OAUTH_TOKENS = b"/oauth/tokens"
"""The one path of the protocol to which clients send forms."""


def check_sender(method: str, headers: Mapping[bytes, bytes], is_ours: HostCheck) -> None:
    """Refuse a request that a page of another site may have sent.

    A link to this server that somebody follows is no such request.

    Raises:
        NotAllowed: the request's host is not this server, or it comes from elsewhere.
    """
    host = headers.get(b"host")
    if host is not None and not is_ours(host):
        raise NotAllowed(
            f"Host {_shown(host)} is not a name of this server; the setting allowed_hosts adds names to localhost"
        )
    site = headers.get(b"sec-fetch-site")
    origin = headers.get(b"origin")
    if site is not None:
        is_followed = method == "GET" and headers.get(b"sec-fetch-mode") == b"navigate"
        if site in _OF_THIS_SITE or is_followed:
            return
    elif origin is None or _is_origin_of(origin, host):
        return
    raise NotAllowed(f"Requests from web pages of another site are refused: {_shown(origin or site or b'')}")


def check_given_once(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse a request with two headers of which only one can count.

    A proxy may believe the other one.

    Raises:
        InvalidRequest: names the header.
    """
    seen: set[bytes] = set()
    for name, _ in headers:
        if name in seen and name in _ONLY_ONCE:
            raise InvalidRequest(
                f"Invalid request: it has more than one header {name.decode('ascii').title()}"
            )
        seen.add(name)


def check_media_type(headers: Mapping[bytes, bytes], raw_path: bytes) -> None:
    """Refuse a body that is not announced as JSON.

    Raises:
        UnsupportedMediaType: names the type that was announced.
    """
    given = headers.get(b"content-type")
    if given is not None and given.partition(b";")[0].strip().lower() == b"application/json":
        return
    if not asks_for_tokens(raw_path):
        raise UnsupportedMediaType(None if given is None else given[:100].decode("latin-1"))


def asks_for_tokens(raw_path: bytes) -> bool:
    """Say whether a path is that of a token endpoint, with any prefix or slash at its end."""
    return raw_path.rstrip(b"/").endswith(_OAUTH_TOKENS)


def _is_origin_of(origin: bytes, host: bytes | None) -> bool:
    scheme, _, place = origin.decode("latin-1").lower().partition("://")
    port = _DEFAULT_PORTS.get(scheme)
    if host is None or port is None:
        return False
    return place.removesuffix(port) == host.decode("latin-1").lower().removesuffix(port)


def _shown(header: bytes) -> str:
    return repr(header[:100].decode("latin-1"))

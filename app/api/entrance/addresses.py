"""The addresses that the server listens on: their names, and what each serves."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from ipaddress import ip_address

from starlette.types import Scope

from app.api.short_arguments import kept_if_short
from app.errors import NoSuchRoute

ON, OFF = "on", "off"
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@/]+?)\.?(?::[0-9]*)?")
_MANAGEMENT = "/management/"

HostCheck = Callable[[bytes], bool]
"""Says whether a `Host` header names this server."""


def host_check(bound_to: str, allowed: Sequence[str]) -> HostCheck:
    """Return the test of `Host` headers for a server that listens on an address.

    On loopback, only loopback names and those allowed are names of the server. Elsewhere every name is, unless some are
    allowed: then also addresses, which no page can make its own, and loopback names.

    Args:
        bound_to: the address or name that the server listens on.
        allowed: further names; `*.example.com` stands for all below example.com, `*` for every name.
    """
    is_local = is_loopback(bound_to)
    names = frozenset(name.lower() for name in allowed)
    endings = tuple(name[1:] for name in names if name.startswith("*."))

    @kept_if_short(256)
    def is_ours(header: bytes) -> bool:
        match = _HOST.fullmatch(header.decode("latin-1").lower())
        if match is None:
            return False
        name = match[1].strip("[]")
        if "*" in names or name in names or (endings and name.endswith(endings)) or is_loopback(name):
            return True
        return not is_local and (not names or _is_address(name))

    return is_ours


def is_loopback(host: str) -> bool:
    """Say whether only this machine itself reaches a host of this name or address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


class Addresses:
    """The address of the catalog, and of the management API if it has one of its own.

    The management address serves everything, the catalog's then all but the management API.
    """

    def __init__(self, host: str, allowed_hosts: Sequence[str], management: str) -> None:
        """Take settings of these names; `management` with the port that is listened on."""
        self._management = management
        self._is_ours = host_check(host, allowed_hosts)
        self._port: int | None = None
        self._is_ours_for_management = self._is_ours
        if management not in {ON, OFF}:
            manager, self._port = host_and_port(management)
            self._is_ours_for_management = host_check(manager, allowed_hosts)

    def host_check(self, scope: Scope) -> HostCheck:
        """Return the test of the `Host` header of a request."""
        return self._is_ours_for_management if self._is_at_management(scope) else self._is_ours

    def check_path(self, scope: Scope, path: str) -> None:
        """Refuse a path of the management API where that is not served.

        Raises:
            NoSuchRoute: says whether it is off or elsewhere.
        """
        if not path.startswith(_MANAGEMENT) or self._management == ON:
            return
        if self._management == OFF:
            raise NoSuchRoute("The management API is switched off by the setting management")
        if not self._is_at_management(scope):
            raise NoSuchRoute("The management API has an address of its own: see the setting management")

    def _is_at_management(self, scope: Scope) -> bool:
        if self._port is None:
            return False
        server = scope.get("server")
        return server is not None and server[1] == self._port


def host_and_port(address: str) -> tuple[str, int]:
    """Return the parts of `host:port`; an IPv6 address stands in brackets."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True

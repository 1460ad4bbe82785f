"""The sockets that a server listens on; a port in use is an error of one line."""

from __future__ import annotations

import errno
import socket

import typer

from app.api.entrance.addresses import OFF, ON, host_and_port
from app.cli.terminal.output import print_failure

LISTEN_BACKLOG = 2048


class Listeners:
    """The sockets of the catalog and of the management address, if there is one.

    Attributes:
        sockets: all of them; every worker accepts on each.
        port: the catalog's port, also if any free one was wanted.
        management: the setting `management`, with the port that is listened on.
    """

    def __init__(self, host: str, port: int, management: str) -> None:
        self.sockets = [_listen(host, port, "--port")]
        self.port: int = self.sockets[0].getsockname()[1]
        self.management = management
        if management not in {ON, OFF}:
            try:
                manager = _listen(*host_and_port(management), "the setting management")
            except typer.Exit:
                self.close()
                raise
            self.sockets.append(manager)
            self.management = f"{management.rpartition(':')[0]}:{manager.getsockname()[1]}"

    def close(self) -> None:
        """Stop listening."""
        for listener in self.sockets:
            listener.close()


def _listen(host: str, port: int, name: str) -> socket.socket:
    """Open the port first, so that a port in use gives an error of one line."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(LISTEN_BACKLOG)
        except OSError:
            listener.close()
            raise
    except (OSError, UnicodeError) as error:  # a host's name is encoded before it is looked up
        print_failure(_why_not_listening(host, port, name, error))
        raise typer.Exit(1) from error
    listener.set_inheritable(True)
    return listener


def _why_not_listening(host: str, port: int, name: str, error: OSError | UnicodeError) -> str:
    if isinstance(error, UnicodeError):
        return f"Cannot listen on {host[:100]!r} port {port}: no host can have this name"
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} of {host} is in use by another process. Choose another one for {name}"
    if error.errno == errno.EACCES:
        return f"Port {port} may only be used by an administrator. Choose one above 1023 for {name}"
    return f"Cannot listen on {host} port {port}: {error.strerror or error}"

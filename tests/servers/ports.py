"""Ports for servers that need a number to listen on, and that may be killed and started again."""

from __future__ import annotations

import socket
from contextlib import ExitStack


def hold_port(held: ExitStack) -> int:
    """Return a port where one server may listen, and that nothing else gets until `held` closes.

    Sockets that allow it may have one port together as long as only one of them listens, and servers do. Who asks for
    any port, as a client does with each connection, gets another one.
    """
    own = held.enter_context(socket.socket())
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    own.bind(("127.0.0.1", 0))
    return int(own.getsockname()[1])

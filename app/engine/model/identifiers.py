"""Names of namespaces, tables and views."""

from __future__ import annotations

from dataclasses import dataclass

from app.errors import InvalidName

LEVEL_SEPARATOR = "\x1f"
MAX_NAME_LENGTH = 255
MAX_NAMESPACE_LENGTH = 1000
"""Characters; both keep a Postgres index entry under its 2,704-byte limit, also in four-byte UTF-8."""


@dataclass(frozen=True, slots=True, order=True)
class Namespace:
    """The levels of a namespace, outermost first; never empty."""

    levels: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.levels)


@dataclass(frozen=True, slots=True, order=True)
class TableIdentifier:
    """The name of a table or a view."""

    namespace: Namespace
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}"


def check_namespace(namespace: Namespace) -> Namespace:
    """Return the namespace if its levels can be used as names.

    Raises:
        InvalidName: it has no level, a level cannot be a name, or it is too long as a whole.
    """
    if not namespace.levels:
        raise InvalidName("Invalid namespace: it has no levels")
    for level in namespace.levels:
        check_name(level, "namespace level")
    length = len(LEVEL_SEPARATOR.join(namespace.levels).encode())
    if length > MAX_NAMESPACE_LENGTH:
        raise InvalidName(f"Invalid namespace: {length} bytes are more than {MAX_NAMESPACE_LENGTH}")
    return namespace


def check_identifier(identifier: TableIdentifier) -> TableIdentifier:
    """Return the identifier if its namespace and name can be used.

    Raises:
        InvalidName: as for `check_namespace` and `check_name`.
    """
    check_namespace(identifier.namespace)
    check_name(identifier.name, "name")
    return identifier


def check_name(name: str, what: str) -> str:
    """Return the name if it can be stored and sent back unchanged.

    Raises:
        InvalidName: it is empty, too long, `.` or `..`, or has a control character or a lone surrogate.
    """
    if not name:
        raise InvalidName(f"Invalid {what}: it is empty")
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidName(f"Invalid {what}: {len(name)} characters are more than {MAX_NAME_LENGTH}")
    if name in (".", ".."):
        # URL libraries and proxies resolve these as steps in the path, also percent-encoded.
        raise InvalidName(f"Invalid {what} {name!r}: no path can hold it")
    for character in name:
        if character < " " or character == "\x7f" or "\ud800" <= character <= "\udfff":
            raise InvalidName(f"Invalid {what} {name!r}: it contains {character!r}")
    return name

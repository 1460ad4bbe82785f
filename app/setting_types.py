"""Types of settings: database URLs, properties with secrets, locations, host names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Secret
from pydantic_settings import NoDecode

from app.engine.health.thresholds import HealthThresholds
from app.fileio.schemes import flaw_of_root
from app.fileio.storage_settings import MASK, masked

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:")
_ADDRESS = re.compile(r"(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:]+\]):([0-9]{1,5})")
_HOST_NAME = re.compile(r"\*|(\*\.)?[A-Za-z0-9_.-]+|[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?|\*")
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_DATABASE_SCHEMES = ("sqlite:", "sqlite+pysqlite:", "postgresql:", "postgresql+psycopg:", "postgres:")


def mask_url_password(url: str) -> str:
    """Return a database URL that can be shown to anyone."""
    masked = re.sub(r"^([^:/?#]+://[^:@/]*):.*@", rf"\1:{MASK}@", url)
    return re.sub(r"([?&](?:ssl)?password=)[^&#]*", rf"\1{MASK}", masked)


class DatabaseUrl(Secret[str]):
    """A database URL that hides its password when printed."""

    def _display(self) -> str:
        return mask_url_password(self.get_secret_value())


class SecretProperties(Secret[dict[str, str]]):
    """Names and values, such as object store settings, that hide secrets when printed."""

    def _display(self) -> str:
        return str(masked(self.get_secret_value()))


def _json_object(value: object) -> object:
    """Read JSON of environment variables, and nested tables of TOML's dotted keys."""
    if isinstance(value, Secret):
        return value
    if isinstance(value, str):
        value = _json(value, "a JSON object of names and values")
    if not isinstance(value, dict):
        raise ValueError("expected names and values")  # noqa: TRY004 - what Pydantic collects is a ValueError
    found = dict(_flattened(value, ""))
    # Pydantic takes them, and every answer that has one fails.
    if any(_HALF_CHARACTER.search(text) for text in (*found, *found.values()) if isinstance(text, str)):
        raise ValueError("a name or value has half of a character (a surrogate without the other one)")
    return found


def _json(text: str, expected: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"expected {expected}: {error}") from error
    except RecursionError as error:
        raise ValueError(f"expected {expected}: it is nested too deeply") from error


def _flattened(table: Mapping[str, object], prefix: str) -> list[tuple[str, object]]:
    pairs: list[tuple[str, object]] = []
    for key, value in table.items():
        if isinstance(value, Mapping):
            pairs += _flattened(value, f"{prefix}{key}.")
        elif isinstance(value, bool):
            pairs.append((prefix + key, str(value).lower()))
        elif isinstance(value, int | float):
            pairs.append((prefix + key, str(value)))
        else:
            pairs.append((prefix + key, value))
    return pairs


def _comma_separated(value: object) -> object:
    if isinstance(value, str) and not value.lstrip().startswith("["):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return _json(value, "a comma-separated list or a JSON array") if isinstance(value, str) else value


def _known_database(url: DatabaseUrl) -> DatabaseUrl:
    """SQLite paths become absolute, so that no worker depends on where it was started."""
    text = url.get_secret_value()
    if not text.startswith(_DATABASE_SCHEMES):
        raise ValueError("expected a URL that starts with sqlite:/// or postgresql://")
    head, slashes, path = text.partition(":///")
    if text.startswith("sqlite") and slashes and path and not path.startswith(("/", ":memory:", "file:")):
        # In a URL, these two characters of the folder's name would mean something else.
        folder = str(Path.cwd()).replace("%", "%25").replace("?", "%3F")
        return DatabaseUrl(f"{head}:///{folder}/{path.removeprefix('./')}")
    return url


def _location(value: str) -> str:
    """Make a folder a `file://` URI; a URI stays as it is, without a slash at its end.

    To Hadoop readers a bare path would mean the cluster's default file system. The path is not
    percent-encoded: neither Hadoop nor PyIceberg decodes it.
    """
    if not value.strip():
        raise ValueError("expected a folder or a URI")
    if not _SCHEME.match(value):
        try:
            value = f"file://{Path(value).expanduser().absolute()}"
        except RuntimeError as error:
            raise ValueError(
                "there is no user whose folder this could be; write ./~ for a folder that begins so"
            ) from error
    stripped = value.rstrip("/")
    return value if stripped.endswith(":") else stripped


def _known_location(value: str) -> str:
    flaw = flaw_of_root(value)
    if flaw is not None:
        raise ValueError(f"{value[:200]!r}: {flaw}")
    return value


def _local_folder(value: object) -> object:
    if isinstance(value, str) and _SCHEME.match(value):
        raise ValueError("expected a folder of this machine, not a URI")
    try:
        if isinstance(value, str | Path) and Path(value).exists() and not Path(value).is_dir():
            raise ValueError("expected a folder: this is a file")
    except OSError as error:
        raise ValueError(f"it cannot be a folder: {error.strerror}") from error
    return value


def _host_name(value: str) -> str:
    """Return a name as `Host` headers have it, in lower case and without a port."""
    if not _HOST_NAME.fullmatch(value):
        raise ValueError("expected a host name such as catalog.example.com, or *.example.com, without a port")
    return value.lower()


ValidDatabaseUrl = Annotated[DatabaseUrl, AfterValidator(_known_database)]
OneLocation = Annotated[str, AfterValidator(_location)]


def _variable(value: str) -> str:
    """Return the name of an environment variable, or the beginning of names with `*` behind it."""
    if not _VARIABLE.fullmatch(value):
        raise ValueError(
            "expected names of environment variables; a name that ends in * stands for all that begin so"
        )
    return value


def _management(value: object) -> object:
    """Return `on`, `off` or `host:port`."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str) and value.lower() in {"on", "off"}:
        return value.lower()
    if isinstance(value, str) and (match := _ADDRESS.fullmatch(value)) and int(match[1]) < 1 << 16:
        return value
    raise ValueError("expected on, off, or an address such as 127.0.0.1:8182")


def _thresholds(value: object) -> object:
    """Return thresholds of health by name, as JSON or a TOML table has them, checked."""
    found = _json_object(value)
    if isinstance(found, dict):
        found = {str(name): str(number) for name, number in found.items()}
        HealthThresholds.of(found)
    return found


Thresholds = Annotated[dict[str, str], NoDecode, BeforeValidator(_thresholds)]
Properties = Annotated[SecretProperties, NoDecode, BeforeValidator(_json_object)]
Locations = Annotated[
    tuple[Annotated[OneLocation, AfterValidator(_known_location)], ...],
    NoDecode,
    BeforeValidator(_comma_separated),
]
LocalFolder = Annotated[Path, BeforeValidator(_local_folder)]
Management = Annotated[str, BeforeValidator(_management)]
Variables = Annotated[
    tuple[Annotated[str, AfterValidator(_variable)], ...], NoDecode, BeforeValidator(_comma_separated)
]
HostNames = Annotated[
    tuple[Annotated[str, AfterValidator(_host_name)], ...], NoDecode, BeforeValidator(_comma_separated)
]

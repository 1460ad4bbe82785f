"""Storage settings of a warehouse: looked up, typed, and read from the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from app.errors import InvalidSetting

MAY_CHANGE_BESIDE_KEPT_SECRETS = frozenset(
    {
        "s3.access-key-id",
        "s3.connect-timeout",
        "s3.request-timeout",
        "s3.retry.num-retries",
        "s3.role-session-name",
        "gcs.project-id",
        "gcs.oauth2.token-expires-at",
        "hdfs.connect-timeout",
        "hdfs.request-timeout",
    }
)
"""Settings that do not decide where secrets are sent; all others are taken to do so."""

ALLOWED_LOCATIONS = "allowed-locations"
"""Setting of a warehouse for all stores: further roots, separated by commas."""

MASK = "********"
"""What is shown in the place of a secret."""

_AZURE = frozenset({"abfs", "abfss", "wasb", "wasbs"})
_FROM_ENVIRONMENT = "env:"
_HIDDEN = re.compile(
    r"secret|password|token|credential|sas|authorization|(access|account|shared|private)[.\-]?key(?!-id|\.account\.name)",
    re.IGNORECASE,
)
_USER_IN_URL = re.compile(r"^[^/?#]*//[^/?#]*:[^/?#]*@")
_SECRET_NAME = re.compile(r"key|secret|token", re.IGNORECASE)
_SHORTEST_SECRET = 6  # hiding a shorter one would make holes in words


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """Settings with typed look-ups; the first of several names that is set counts."""

    values: Mapping[str, str]
    from_environment: frozenset[str] = frozenset()
    """Names of the settings whose values were read from the environment."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that no error may show: those with a secret's name, and all of the environment."""
        return tuple(
            value
            for name, value in self.values.items()
            if (name in self.from_environment and value)
            or (len(value) >= _SHORTEST_SECRET and _SECRET_NAME.search(name))
        )

    def find(self, *names: str) -> str | None:
        return next((self.values[name] for name in names if self.values.get(name)), None)

    def find_flag(self, name: str) -> bool | None:
        """Return a setting that is `true` or `false`; raises `InvalidSetting` for other texts."""
        value = self.find(name)
        if value is None:
            return None
        if value.lower() not in {"true", "false"}:
            raise InvalidSetting(f"Storage setting {name} must be true or false")
        return value.lower() == "true"

    def read_number(self, name: str, default: float) -> float:
        """Return a setting that is a number of at least 0; raises `InvalidSetting`."""
        value = self.find(name)
        if value is None:
            return default
        try:
            number = float(value)
        except ValueError:
            number = -1
        if not 0 <= number < float("inf"):
            raise InvalidSetting(f"Storage setting {name} must be a number of at least 0")
        return number


@dataclass(frozen=True, slots=True)
class StorageEnvironment:
    """Which environment variables `env:NAME` in storage settings may name.

    The maker of a warehouse chooses where its secrets are sent. So only variables that are meant for warehouses may be
    named, except in storage settings that are the operator's own.

    Attributes:
        allowed: names of variables; one that ends in `*` stands for all that begin so.
        own: the operator's own storage settings, which may name any variable.
        own_root: the root of the warehouse that the operator has given them for.
    """

    allowed: tuple[str, ...] = ()
    own: Mapping[str, str] = field(default_factory=dict)
    own_root: str = ""

    def for_root(self, root: str) -> StorageEnvironment:
        """Return which variables the settings of a warehouse may name.

        In Azure a location names the host to which secrets are sent: there the operator's own settings are for the
        operator's host.
        """
        is_own_host = _azure_host(root) in {"", _azure_host(self.own_root)}
        return self if is_own_host else replace(self, own={})

    def read(self, storage: Mapping[str, str]) -> StorageSettings:
        """Return the settings with each value `env:NAME` replaced by the environment variable NAME.

        Raises:
            InvalidSetting: a variable may not be named, is not set, or is empty.
        """
        values = dict(storage)
        variables = {
            key: value.removeprefix(_FROM_ENVIRONMENT)
            for key, value in storage.items()
            if is_reference(value)
        }
        for key, variable in variables.items():
            if storage != self.own and not self._allows(variable):
                raise InvalidSetting(
                    f"Storage setting {key} may not read environment variable {variable}: the server's setting "
                    f"storage_environment allows {', '.join(self.allowed) or 'none'}"
                )
            values[key] = os.environ.get(variable, "")
            if not values[key]:
                raise InvalidSetting(
                    f"Environment variable {variable} of the server is not set (`.env` is not asked); "
                    f"storage setting {key} wants it"
                )
        return StorageSettings(values, frozenset(variables))

    def _allows(self, variable: str) -> bool:
        return any(
            variable.startswith(name[:-1]) if name.endswith("*") else variable == name
            for name in self.allowed
        )


def _azure_host(location: str) -> str:
    """Return the host in a location; empty where the settings decide which one it is."""
    scheme, _, rest = location.lower().partition("://")
    return rest.partition("/")[0].partition("@")[2] if scheme in _AZURE else ""


def holds_secret(name: str, value: str) -> bool:
    """Say whether a setting or property of a warehouse must not be shown or saved.

    Its name says so, unless the value is a reference, `env:NAME`; or its value is a URL with a password.
    """
    is_hidden = _HIDDEN.search(name) is not None and not is_reference(value)
    return is_hidden or _USER_IN_URL.match(value) is not None


def is_reference(value: str) -> bool:
    """Say whether a value is read from the environment, as `env:NAME`."""
    return value.startswith(_FROM_ENVIRONMENT)


def masked(properties: Mapping[str, str]) -> dict[str, str]:
    """Return settings or properties as they may be shown to anyone."""
    return {name: MASK if holds_secret(name, value) else value for name, value in properties.items()}


def is_secret_name(name: str) -> bool:
    """Say whether a setting's name is that of a secret."""
    return _HIDDEN.search(name) is not None


def further_roots(storage: Mapping[str, str]) -> list[str]:
    """Return the locations beside its root below which files of a warehouse may lie."""
    return [item.strip() for item in storage.get(ALLOWED_LOCATIONS, "").split(",") if item.strip()]


def check_names(storage: Mapping[str, str], known: frozenset[str]) -> None:
    """Raise `InvalidSetting` for an unknown setting of a store: it would silently do nothing."""
    stores = _stores(known)
    for name in storage:
        store = _store(name)
        if store in stores and name not in known:
            candidates = ", ".join(sorted(other for other in known if _store(other) == store))
            raise InvalidSetting(f"Unknown storage setting {name}; known are {candidates}")


def check_stores(storage: Mapping[str, str], known: frozenset[str]) -> None:
    """Raise `InvalidSetting` for a setting that is of no store, nor for all."""
    stores = _stores(known)
    for name in storage:
        if _store(name) not in stores and name != ALLOWED_LOCATIONS:
            raise InvalidSetting(
                f"Unknown storage setting {name[:200]}; known are {ALLOWED_LOCATIONS}, and what begins with "
                f"{', '.join(sorted(stores))}"
            )


def _stores(known: frozenset[str]) -> set[str]:
    return {_store(name) for name in known}


def _store(name: str) -> str:
    """Return how the settings of a store begin, with the dot."""
    return "".join(name.partition(".")[:2])

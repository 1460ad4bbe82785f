"""Storage settings of a warehouse: looked up, typed, and read from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from app.errors import InvalidSetting

_FROM_ENVIRONMENT = "env:"


def read_environment(storage: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with each value `env:NAME` replaced by the environment variable NAME.

    Raises:
        InvalidSetting: a variable is not set, or empty.
    """
    settings = dict(storage)
    for key, value in storage.items():
        if value.startswith(_FROM_ENVIRONMENT):
            variable = value.removeprefix(_FROM_ENVIRONMENT)
            settings[key] = os.environ.get(variable, "")
            if not settings[key]:
                raise InvalidSetting(
                    f"Environment variable {variable} is not set; storage setting {key} asks for it"
                )
    return settings


def check_names(storage: Mapping[str, str], known: frozenset[str]) -> None:
    """Raise `InvalidSetting` for an unknown setting of a store: it would silently do nothing."""
    prefixes = {name.partition(".")[0] for name in known}
    for name in storage:
        prefix = name.partition(".")[0]
        if prefix in prefixes and name not in known:
            candidates = ", ".join(sorted(other for other in known if other.startswith(prefix + ".")))
            raise InvalidSetting(f"Unknown storage setting {name}; known are {candidates}")


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """Settings with typed look-ups; the first of several names that is set counts."""

    values: Mapping[str, str]

    def find(self, *names: str) -> str | None:
        return next((self.values[name] for name in names if self.values.get(name)), None)

    def find_flag(self, name: str) -> bool | None:
        """Return a setting that is `true` or `false`; raises `InvalidSetting` for other texts."""
        value = self.find(name)
        if value is None:
            return None
        if value.lower() not in {"true", "false"}:
            raise InvalidSetting(f"Storage setting {name} must be true or false, not {value!r}")
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
            raise InvalidSetting(f"Storage setting {name} must be a number of at least 0, not {value!r}")
        return number

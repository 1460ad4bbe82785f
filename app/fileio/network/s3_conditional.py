"""Conditional writes to S3: an object is put only if it is absent. pyarrow cannot ask for that."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import logging
import os
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

from app.errors import FilesUnavailable, Throttled
from app.fileio.failures import without_secrets
from app.fileio.storage_settings import StorageSettings
from app.tree_errors import TreeRefusal

log = logging.getLogger(__name__)

_SERVICE: Final = "s3"
_TAKEN, _AT_THE_SAME_TIME = 412, 409
_TRIES: Final = 5
_TIMEOUT_S: Final = 15.0
_LONGEST_ANSWER: Final = 16 << 10
"""So much is read: AWS repeats a session token that it does not take, and what is cut off is not found."""
_SHOWN: Final = 400


class ReplyLost(Exception):
    """The store was asked, and did not say what it did."""


@dataclass(frozen=True, slots=True)
class _Keys:
    key_id: str
    secret: str
    token: str | None


class ConditionalPuts:
    """Puts objects with `If-None-Match: *`, signed by AWS Signature Version 4.

    A store is believed only after it has refused a second object under one name: there are some that ignore the
    header. That shows the header, and nothing about two requests at the same moment: for that the store has
    to be one of which it is known.
    """

    def __init__(self, settings: StorageSettings, region: str) -> None:
        self._settings = settings
        self._region = region
        self._refusals: dict[str, str | None] = {}
        # One for each bucket: one that does not answer must not hold up the others.
        self._locks = defaultdict[str, threading.Lock](threading.Lock)

    def put(self, bucket: str, key: str, content: bytes) -> bool:
        """Put an object that is absent; False if it was there.

        Raises:
            ReplyLost: it is not known what the store did.
            FilesUnavailable, Throttled: nothing was put.
        """
        status, reason = _AT_THE_SAME_TIME, "other writers were at it all the time"
        for attempt in range(_TRIES):
            try:
                status, reason = self._send("PUT", bucket, key, content)
            except ConnectionRefusedError as error:
                raise FilesUnavailable(f"Cannot write s3://{bucket}/{key}: {error}") from error
            except (OSError, http.client.HTTPException) as error:
                raise ReplyLost(f"{type(error).__name__}: {error}") from error
            if status in (200, 201, 204):
                return True
            if status == _TAKEN:
                return False
            if status != _AT_THE_SAME_TIME:
                break
            # Another writer is at it; that it has won is not said yet.
            time.sleep(0.05 * 2**attempt)
        # A proxy says 503 also if the store's answer did not come; the store itself says why in XML. A proxy
        # that only slows clients down looks the same.
        if status >= 500 and not (status == 503 and "<Code>" in reason):
            raise ReplyLost(f"HTTP status {status}: {reason}")
        kind = Throttled if status in (429, 503) else FilesUnavailable
        raise kind(f"Cannot write s3://{bucket}/{key}: HTTP status {status}: {reason}")

    def delete(self, bucket: str, key: str) -> None:
        """Delete an object, also one whose key ends in a slash; one that is absent is fine.

        Raises:
            FilesUnavailable: the store does not answer, or refuses.
        """
        try:
            status, reason = self._send("DELETE", bucket, key, b"")
        except (OSError, http.client.HTTPException) as error:
            raise FilesUnavailable(f"Cannot delete s3://{bucket}/{key}: {error}") from error
        if status not in (200, 204, 404):
            raise FilesUnavailable(f"Cannot delete s3://{bucket}/{key}: HTTP status {status}: {reason}")

    def check(self, bucket: str, prefix: str) -> None:
        """Check once for each bucket that the store refuses to put an object that is there.

        Raises:
            TreeRefusal: it does not, or the server has no keys to ask with.
            FilesUnavailable: it could not be asked.
        """
        if bucket not in self._refusals:
            with self._locks[bucket]:
                if bucket not in self._refusals:
                    self._refusals[bucket] = self._probe(bucket, prefix)
        refusal = self._refusals[bucket]
        if refusal is not None:
            raise TreeRefusal(f"Cannot commit to file-system tables in s3://{bucket}: {refusal}")

    def _probe(self, bucket: str, prefix: str) -> str | None:
        if self._keys() is None:
            return (
                "a conditional write needs storage settings s3.access-key-id and s3.secret-access-key (or AWS's "
                "environment variables of these names, without s3.anonymous and s3.role-arn)"
            )
        key = f"{prefix}.icetower-probe-{os.urandom(8).hex()}"
        try:
            # Refused already if a proxy has sent it twice. No other writer has the name.
            self.put(bucket, key, b"1")
            is_obeyed = not self.put(bucket, key, b"2")
        except ReplyLost as error:
            raise FilesUnavailable(f"Cannot try conditional writes in s3://{bucket}: {error}") from error
        try:
            self.delete(bucket, key)
        except FilesUnavailable as error:
            log.warning("an object of one byte stays that was written to try conditional writes: %s", error)
        if is_obeyed:
            return None
        return "its store ignores `If-None-Match: *`, so that of two writers both would win"

    def _keys(self) -> _Keys | None:
        find = self._settings.find
        key_id, secret, token = (
            find("s3.access-key-id"),
            find("s3.secret-access-key"),
            find("s3.session-token"),
        )
        if key_id is None and (self._settings.find_flag("s3.anonymous") or find("s3.role-arn")):
            return None  # the keys of the environment are somebody else's than who reads
        if key_id is None:
            names = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"
            key_id, secret, token = (os.environ.get(name) for name in names)
        return _Keys(key_id, secret, token) if key_id and secret else None

    def _address(self, bucket: str, key: str) -> tuple[bool, str, str]:
        """Return whether to use TLS, the host, and the path."""
        endpoint = self._settings.find("s3.endpoint")
        path_style = self._settings.find_flag("s3.path-style-access")
        if endpoint is None:
            endpoint, path_style = aws_endpoint(self._region), bool(path_style)
        parts = urlsplit(endpoint if "://" in endpoint else f"https://{endpoint}")
        path, is_tls = quote(key, safe="/~"), parts.scheme == "https"
        # Certificates name hosts with one more piece: where a bucket's name has dots, pyarrow puts it into the path.
        if path_style is False and not (is_tls and "." in bucket):
            return is_tls, f"{bucket}.{parts.netloc}", f"/{path}"
        return is_tls, parts.netloc, f"/{bucket}/{path}"

    def _send(self, method: str, bucket: str, key: str, content: bytes) -> tuple[int, str]:
        keys = self._keys()
        if keys is None:
            raise FilesUnavailable(f"Cannot write s3://{bucket}/{key}: the server has no keys to sign with")
        is_tls, host, path = self._address(bucket, key)
        headers = {"host": host}
        if method == "PUT":
            headers["if-none-match"] = "*"
        headers = _signed(headers, method, path, content, keys, self._region)
        kind = http.client.HTTPSConnection if is_tls else http.client.HTTPConnection
        connection = kind(host, timeout=_TIMEOUT_S)
        try:
            connection.request(method, path, body=content, headers=headers)
            answer = connection.getresponse()
            said = answer.read(_LONGEST_ANSWER).decode("utf-8", "replace")
            secrets = [*self._settings.secrets, *filter(None, (keys.secret, keys.token))]
            return answer.status, without_secrets(said, secrets)[:_SHOWN]
        finally:
            connection.close()


def aws_endpoint(region: str) -> str:
    """Return where AWS's own S3 is in a region."""
    return f"https://s3.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"


def _signed(
    headers: dict[str, str], method: str, path: str, content: bytes, keys: _Keys, region: str
) -> dict[str, str]:
    """Return the headers with a signature: AWS Signature Version 4, without a query."""
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    digest = hashlib.sha256(content).hexdigest()
    headers = {**headers, "x-amz-content-sha256": digest, "x-amz-date": now}
    if keys.token is not None:
        headers["x-amz-security-token"] = keys.token
    names = ";".join(sorted(headers))
    canonical = "\n".join(
        [method, path, "", *(f"{name}:{headers[name]}" for name in sorted(headers)), "", names, digest]
    )
    scope = f"{now[:8]}/{region}/{_SERVICE}/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{keys.secret}".encode()
    for part in (now[:8], region, _SERVICE, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    credential = (
        f"AWS4-HMAC-SHA256 Credential={keys.key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return {**headers, "authorization": credential}

"""The parts of a location: its scheme, and what it lies inside. Pure; touches no file."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from typing import Final
from urllib.parse import unquote

from app.errors import InvalidLocation

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_PLAIN = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9 !$&'()*+,;=:@_.~-]+")
"""A segment that all clients read alike."""
LONGEST_LOCATION: Final = 32 << 10
"""Characters; no store has names as long."""
_MOST_SEGMENTS: Final = 1024
"""Each is a folder to make and to sync, and each folder around a table is looked up."""
LONGEST_LOCAL_PATH: Final = 4095
_LONGEST_PATHS: Final = {"file": LONGEST_LOCAL_PATH, "s3": 1024, "gs": 1024}
"""Bytes of a path, by store: nothing can be written to longer ones."""
_LONGEST_KEPT: Final = 512
"""Characters of a folder that is remembered."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

_BUCKET = r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?=[A-Za-z0-9_-]))*"
_CONTAINER = rf"[^@:]+(?:@{_BUCKET})?"
_AUTHORITIES: Final = {
    "s3": (re.compile(_BUCKET), "a bucket: letters, digits, '.', '-' and '_'"),
    "gs": (re.compile(_BUCKET), "a bucket: letters, digits, '.', '-' and '_'"),
    "abfs": (re.compile(_CONTAINER), "container@account.host, without a port"),
    "wasb": (re.compile(_CONTAINER), "container@account.host, without a port"),
}
"""What can stand after the slashes, by store: in a location with anything else no file can be read or written."""

# Names of one and the same store.
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "wasb"}

# Those of one file under different protocols, beside the schemes above: only in the question what may be one place.
_MAY_BE_SAME_STORE = {"wasb": "abfs", "gcs": "gs", "webhdfs": "hdfs", "swebhdfs": "hdfs"}

# A percent sign that was encoded again and again is decoded so often.
_MOST_DECODINGS = 4

# In these, an empty segment (`a//b`) is no segment. In object stores it is part of the key.
_DIRECTORY_STORES = frozenset({"file", "hdfs"})

# Here Java reads `?` and `#` as they are, so tables may lie there; PyIceberg does not, see `flaw_of_new`.
_LITERAL_STORES = frozenset({"file", "hdfs", "memory"})


@dataclass(frozen=True, slots=True)
class _Place:
    """A location taken apart; two spellings of one place are equal."""

    store: str
    authority: str
    segments: tuple[str, ...]


_INSTANT_SCHEMES: Final = frozenset({"file", "memory"})


def is_instant(location: str) -> bool:
    """Return whether files there are on this machine; raises like `scheme_of`."""
    return scheme_of(location) in _INSTANT_SCHEMES


def scheme_of(location: str) -> str:
    """Return the scheme in lower case; a bare absolute path is a `file`.

    Raises:
        InvalidLocation: neither a scheme nor an absolute path.
    """
    if location.startswith("/"):
        return "file"
    match = _SCHEME.match(location)
    if match is None:
        raise InvalidLocation(f"Not a location: {location[:200]!r}; expected a scheme or an absolute path")
    return match[1].lower()


def store_of(location: str) -> str:
    """Return scheme and authority as spelled, as in `s3://b`; empty for a bare path."""
    scheme, mark, rest = location.partition("://")
    return f"{scheme}{mark}{rest.partition('/')[0]}" if mark else ""


def flaw_of(location: str) -> str | None:
    """Return why a location must not be given to clients; None if all read it as one place.

    Clients differ: some decode percent signs, some fold `..` or `//`, some cut at `?`. A location that only some
    of them take for a place inside a warehouse is not inside it.
    """
    folder = _folder_of_plain(location)
    if folder is not None and _has_no_flaw(folder):
        return None
    return _find_flaw(location)


def flaw_of_new(location: str) -> str | None:
    """Return why nothing new is to be put at a location; None if it may be.

    What is there already can be read there by those who know how.
    """
    if "?" in location or "#" in location:
        return (
            "it contains '?' or '#', where PyIceberg and others end the path: they would write all files of all tables "
            "into one; choose another folder"
        )
    return None


def _find_flaw(location: str) -> str | None:
    if len(location) > LONGEST_LOCATION:
        return f"it has {len(location)} characters, more than {LONGEST_LOCATION}"
    if _CONTROL.search(location):
        return "it contains a control character"
    try:
        location.encode()
        place = _place_of(location)
    except UnicodeEncodeError:
        return "it contains half of a surrogate pair"
    except InvalidLocation as error:
        return str(error)
    if place.store not in _LITERAL_STORES and ("?" in location or "#" in location):
        return "it contains '?' or '#', which some clients take for the end of the path"
    if place.store not in _LITERAL_STORES and "\\" in location:
        return "it contains a backslash, which some stores take for a slash"
    if place.store not in _DIRECTORY_STORES and "" in place.segments:
        return "it contains '//', which some clients take for one slash"
    if any(_climbs(segment) for segment in place.segments):
        return "it contains a '.' or '..' segment"
    authority, expected = _AUTHORITIES.get(place.store, (None, ""))
    if authority is not None and not authority.fullmatch(place.authority):
        return f"{place.authority[:100]!r} cannot be {expected}"
    return _flaw_of_length(place)


def _flaw_of_length(place: _Place) -> str | None:
    if len(place.segments) > _MOST_SEGMENTS:
        return f"its path has {len(place.segments)} segments, more than {_MOST_SEGMENTS}"
    longest = _LONGEST_PATHS.get(place.store)
    size_bytes = len("/".join(place.segments).encode()) + (place.store == "file")
    if longest is not None and size_bytes > longest:
        return f"its path has {size_bytes} bytes, more than the {longest} that {place.store} locations have"
    return None


def is_inside(location: str, root: str) -> bool:
    """Say whether a location is the root or lies below it, for every client.

    Compares whole segments. `s3`, `s3a` and `s3n` are one scheme; `file:/x`, `file:///x` and `/x` are one place.
    What has a flaw (see `flaw_of`) is inside nothing. Symbolic links are not followed: nothing here touches a file.
    """
    folder = _folder_of_plain(location)
    return (folder is not None and _is_folder_inside(folder, root)) or _lies_inside(location, root)


def _lies_inside(location: str, root: str) -> bool:
    if _find_flaw(location) is not None or _find_flaw(root) is not None:
        return False
    inner, outer = _place_of(location), _place_of(root)
    return (
        inner.store == outer.store
        and inner.authority == outer.authority
        and inner.segments[: len(outer.segments)] == outer.segments
    )


def _folder_of_plain(location: str) -> str | None:
    """Return what goes before the last slash; None unless what follows surely has no flaw."""
    folder, _, name = location.rpartition("/")
    is_short = len(folder) <= _LONGEST_KEPT and len(name) <= _LONGEST_KEPT
    if folder and not folder.endswith("/") and is_short and _PLAIN.fullmatch(name):
        return folder
    return None


# Thousands of files of one table share a folder.
@lru_cache(maxsize=4096)
def _has_no_flaw(folder: str) -> bool:
    return _find_flaw(folder) is None


@lru_cache(maxsize=4096)
def _is_folder_inside(folder: str, root: str) -> bool:
    return _lies_inside(folder, root)


def place_of(location: str) -> Hashable:
    """Return one value for all spellings of what may be one place, as `file:/x` and `/x`.

    See `folder_name` for what may be one.
    """
    try:
        return _may_be(_place_of(location))
    except InvalidLocation:
        return location


def may_be_inside(location: str, root: str) -> bool:
    """Say whether a location may lie below a root, as `folder_name` takes places for one.

    For the question whose files something may be, where "no" leads to its deletion; what may be used, `is_inside` says.
    """
    try:
        inner, outer = _may_be(_place_of(location)), _may_be(_place_of(root))
    except InvalidLocation:
        return False
    stores = {inner.authority, outer.authority}
    if inner.store == outer.store == "abfs" and any("@" not in store for store in stores):
        stores = {store.partition("@")[0] for store in stores}  # it may be the same account
    return (
        inner.store == outer.store
        and len(stores) == 1
        and inner.segments[: len(outer.segments)] == outer.segments
    )


def loose_place_of(location: str) -> tuple[str, str]:
    """Return store and path, equal for all that any client may take for one file.

    For the question whether a file may be one that something names, where "no" leads to its deletion: percent signs
    are decoded, empty and dot segments folded, schemes of one store are one, and backslashes are slashes. `/` and
    `file:` are one store without a host. Text that is no location has no store.
    """
    scheme, colon, rest = location.partition(":")
    store = "" if not colon else _SAME_STORE.get(scheme.lower(), scheme.lower())
    authority = ""
    if location.startswith("/"):
        store, rest = "file", location
    elif not _SCHEME.match(location):
        store, rest = "", location
    elif rest.startswith("//"):
        authority, _, rest = rest[2:].partition("/")
    return f"{store}://{authority.lower()}", _folded(rest)


def _folded(path: str) -> str:
    for _ in range(_MOST_DECODINGS):
        if "%" not in path or (decoded := unquote(path)) == path:
            break
        path = decoded
    if not path.isascii():
        path = unicodedata.normalize("NFC", path)
    path = path.replace("\\", "/")
    if "//" not in path and "/." not in path and not path.startswith("."):
        return path.strip("/")
    folded: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del folded[-1:]
        elif segment not in {"", "."}:
            folded.append(segment)
    return "/".join(folded)


def folders_of(location: str) -> list[str]:
    """Return the folders that a file lies in, outermost first, each as `folder_name` spells it.

    Raises:
        InvalidLocation: it is not a location.
    """
    return _folders_of(_may_be(_place_of(location)))


def _folders_of(place: _Place) -> list[str]:
    folders = [f"{place.store}://{place.authority}/"]
    for segment in place.segments[:-1]:
        folders.append(f"{folders[-1]}{segment}/")
    return folders


def folder_around(location: str) -> str:
    """Return a folder, as `folder_name` spells it, in which a file lies for every client.

    Where clients may read a segment in different ways, it is the folder before that segment.

    Raises:
        InvalidLocation: it is not a location.
    """
    spelled = _place_of(location)
    place = _may_be(spelled)
    start = f"{place.store}://{place.authority}/"
    return start + "".join(f"{segment}/" for segment in takewhile(_PLAIN.fullmatch, spelled.segments[:-1]))


def folder_of_file(location: str) -> str:
    """Return the folder that a file lies in, as `folder_name` spells it.

    Raises:
        InvalidLocation: it is not a location.
    """
    folder, _, name = location.rpartition("/")
    if not name or not folder or folder.endswith("/") or len(folder) > _LONGEST_KEPT:
        return folders_of(location)[-1]
    return _folder_named(folder)


@lru_cache(maxsize=4096)
def _folder_named(folder: str) -> str:
    """Take apart what thousands of commits to one table share."""
    return folders_of(f"{folder}/_")[-1]


def folder_name(location: str) -> str:
    """Return one name, ending with a slash, for all spellings of what may be one folder.

    In this form claims of tables are kept and compared (`table_places`, `foreign_places`), over all warehouses. It is
    a name and no location: it may leave out what a client needs to find the folder. Names say less than settings, and
    what may be one folder counts as one, so that no table's files are deleted for another's:

    - HDFS has no host and no port. `hdfs:///` is whatever the settings say, a name service is a host as well as its
      name nodes are, and a gateway is called as it likes.
    - In Azure, `abfs` and `wasb` are two protocols of one account, each with a host of its own. An account that is
      not named is the settings': see `table_places.claims_around`.
    - To some object stores, such as SeaweedFS, a backslash is a slash.

    Raises:
        InvalidLocation: it is not a location.
    """
    return folder_of_file(location.rstrip("/") + "/_")


def exact_folder_name(location: str) -> str:
    """Return one location, ending with a slash, for all spellings of what surely is one folder.

    Raises:
        InvalidLocation: it is not a location.
    """
    return _folders_of(_place_of(location.rstrip("/") + "/_"))[-1]


def local_path(location: str) -> str:
    """Return the path of a local file: `/x` for `/x`, `file:/x` and `file:///x`. `%` means itself.

    Raises:
        InvalidLocation: another scheme, a relative path, or a host.
    """
    if location.startswith("/"):
        path = location
    elif location.startswith("file:/") or (scheme_of(location) == "file" and location[5:6] == "/"):
        path = location[5:]
    else:
        raise InvalidLocation(f"Not a local file: {location!r}; expected an absolute path: file:/x")
    if not path.startswith("//"):
        return path
    # Hadoop reads a host after two slashes and refuses it: `file://tmp/x` and `//tmp/x` are not /tmp/x.
    if not path.startswith("///"):
        raise InvalidLocation(f"Not a local file: {location!r}; expected no host: file:/x or file:///x")
    return path[2:]


def checksum_name(name: str) -> str:
    """Return the name of the checksum that Hadoop keeps beside a local file."""
    return f".{name}.crc"


def bucket_and_key(location: str) -> tuple[str, str]:
    """Return bucket (container, host) and key of `s3://bucket/key`; the key is literal.

    Raises:
        InvalidLocation: no `://`, no bucket, or a password in the bucket's place.
    """
    scheme = scheme_of(location)
    rest = location[len(scheme) + 1 :]
    if not rest.startswith("//"):
        raise InvalidLocation(f"Not a location: {location}; expected {scheme}://…")
    bucket, _, key = rest[2:].partition("/")
    if ":" in bucket.partition("@")[0] and "@" in bucket:
        raise InvalidLocation("A location must not carry a user and password")
    return bucket, key


def is_key(path: str) -> bool:
    """Say whether an object can have this name: without `.`, `..` and control characters."""
    return not any(part in {".", ".."} for part in path.split("/")) and _CONTROL.search(path) is None


def _place_of(location: str) -> _Place:
    if len(location) > LONGEST_LOCATION:
        # Its folders, each with all before it, would fill the memory.
        raise InvalidLocation(
            f"Not a location: it has {len(location)} characters, more than {LONGEST_LOCATION}"
        )
    scheme = scheme_of(location)
    store = _SAME_STORE.get(scheme, scheme)
    if store == "file":
        authority, path = "", local_path(location)[1:]
    else:
        authority, path = bucket_and_key(location)
        if not authority and store not in {"hdfs", "memory"}:
            raise InvalidLocation(f"Not a location: {location}; expected {scheme}://bucket/key")
    segments = path.rstrip("/").split("/") if path.strip("/") else []
    if store in _DIRECTORY_STORES:
        segments = [segment for segment in segments if segment]
    return _Place(store, authority, tuple(segments))


def _may_be(place: _Place) -> _Place:
    """Return the same for all places that may be one; see `folder_name`."""
    store = _MAY_BE_SAME_STORE.get(place.store, place.store)
    if store not in _LITERAL_STORES and "\\" in (path := "/".join(place.segments)):
        place = _Place(place.store, place.authority, tuple(path.replace("\\", "/").split("/")))
    if store == "hdfs":
        return _Place(store, "", place.segments)
    if store == "abfs":
        # `container@account.dfs.core.windows.net`, and `.blob.` as well.
        container, _, host = place.authority.lower().partition("@")
        account = host.partition(".")[0]
        return _Place(store, f"{container}@{account}" if account else container, place.segments)
    return place if store == place.store else _Place(store, place.authority, place.segments)


def _climbs(segment: str) -> bool:
    """Say whether a client could read this segment as `.` or `..`."""
    return any(piece in {".", ".."} for piece in re.split(r"[/\\]", unquote(segment)))

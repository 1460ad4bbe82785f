"""Valid commits, damaged at random: refused in words, or taken and leaving a table that every client can load."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError

from tests.bad_input.commit_bodies import FORMAT_VERSIONS, Json, creation, valid_commits
from tests.bad_input.fuzzing_ground import NS, Ground, check_answered, check_readable, fuzzing_ground, path_of
from tests.bad_input.mutations import as_json, mutated
from tests.servers.jvm import iceberg_jvm

pytestmark = pytest.mark.filterwarnings("ignore:Encountered invalid snapshot summary")

MANY = 3 * settings().max_examples
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with fuzzing_ground(tmp_path_factory.mktemp("ground")) as made:
        yield made


@pytest.fixture(scope="module")
def iceberg() -> Iterator[Any]:
    with iceberg_jvm() as package:
        yield package


@pytest.mark.parametrize("version", FORMAT_VERSIONS)
def test_commits_to_start_from_are_taken(ground: Ground, version: int) -> None:
    for body in valid_commits(ground.tables[version]["metadata"]):
        response = ground.commit(version, body)
        ground.restore(version)

        assert response.status_code == 200, response.text
        check_readable(response.json()["metadata"])


@pytest.mark.parametrize("version", FORMAT_VERSIONS)
@settings(max_examples=MANY)
@given(data=st.data())
def test_damaged_commit_is_refused_or_readable(ground: Ground, version: int, data: st.DataObject) -> None:
    body = data.draw(mutated(valid_commits(ground.tables[version]["metadata"])))

    _try(ground, version, body)


@pytest.mark.parametrize("version", FORMAT_VERSIONS)
@settings(max_examples=MANY // 3)
@given(data=st.data())
def test_damaged_creation_is_refused_or_readable(ground: Ground, version: int, data: st.DataObject) -> None:
    body = data.draw(mutated([creation(ground.tables[version]["metadata"])]))
    path = f"{NS}/tables/new{next(_NUMBERS)}"

    response = ground.client.post(path, content=as_json(body))

    check_answered(response)
    if response.status_code == 200:
        check_readable(response.json()["metadata"])
        ground.client.delete(path).raise_for_status()
        ground.forget()


@pytest.mark.parametrize("version", FORMAT_VERSIONS)
@settings(max_examples=MANY // 3)
@given(data=st.data())
def test_damaged_transaction_is_refused_or_readable(
    ground: Ground, version: int, data: st.DataObject
) -> None:
    changes = [
        {"identifier": {"namespace": ["a"], "name": f"v{version}"}, **body}
        for body in valid_commits(ground.tables[version]["metadata"])
    ]
    body = data.draw(
        mutated([{"table-changes": [first, second]} for first, second in itertools.pairwise(changes)])
    )

    response = ground.client.post("/v1/transactions/commit", content=as_json(body))

    check_answered(response)
    if response.status_code == 204:
        check_readable(ground.client.get(path_of(version)).raise_for_status().json()["metadata"])
        for changed in FORMAT_VERSIONS:
            ground.restore(changed)


@pytest.mark.spark
@pytest.mark.parametrize("version", FORMAT_VERSIONS)
@settings(max_examples=MANY // 3)
@given(data=st.data())
def test_the_reference_can_go_on_after_a_damaged_commit(
    ground: Ground, iceberg: Any, version: int, data: st.DataObject
) -> None:
    """What was taken can be read by Iceberg's own parser, and a writer that builds on it can commit."""
    body = data.draw(mutated(valid_commits(ground.tables[version]["metadata"])))

    document = _try(ground, version, body)

    if document is not None:
        try:
            parsed = iceberg.TableMetadataParser.fromJson("file:/m.metadata.json", json.dumps(document))
            iceberg.TableMetadata.buildFrom(parsed).setProperties({"a": "b"}).build()
        except Py4JJavaError as error:
            pytest.fail(str(error.java_exception))


def _try(ground: Ground, version: int, body: Any) -> Json | None:
    """Send a commit, check what comes of it, and undo it; return the metadata if it was taken."""
    response = ground.commit(version, body)

    check_answered(response)
    if response.status_code != 200:
        return None
    document: Json = response.json()["metadata"]
    loaded = ground.client.get(path_of(version), params={"snapshots": "refs"})
    ground.restore(version)
    assert loaded.status_code == 200, loaded.text
    check_readable(document)
    return document

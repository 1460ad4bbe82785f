from __future__ import annotations

import re

from app.engine.model.identifiers import Namespace, TableIdentifier
from app.moving.choices import Choice, PathMap
from app.moving.sources import Entry


def named(*names: str) -> TableIdentifier:
    *levels, name = names
    return TableIdentifier(Namespace(tuple(levels)), name)


def test_everything_is_chosen_unless_something_is_named() -> None:
    orders, paid = Entry(named("eu", "sales", "orders")), Entry(named("eu", "sales", "paid"))

    assert Choice().is_everything
    assert Choice().has(orders)
    assert [Choice(frozenset([orders.identifier])).has(entry) for entry in (orders, paid)] == [True, False]
    # The whole name has to match.
    assert [Choice(pattern=re.compile("eu[.]sales[.]o.*")).has(entry) for entry in (orders, paid)] == [
        True,
        False,
    ]
    assert not Choice(pattern=re.compile("orders")).has(orders)


def test_longest_new_beginning_of_a_name_counts() -> None:
    choice = Choice(renamed={("eu",): ("europe",), ("eu", "sales"): ("s",), ("eu", "sales", "t"): ("x", "y")})

    assert choice.name_of(named("eu", "sales", "orders")) == named("s", "orders")
    assert choice.name_of(named("eu", "sales", "t")) == named("x", "y")
    assert choice.name_of(named("eu", "other", "t")) == named("europe", "other", "t")
    assert choice.name_of(named("us", "t")) == named("us", "t")
    assert choice.namespace_of(Namespace(("eu", "in"))) == Namespace(("europe", "in"))


def test_longest_beginning_of_a_location_counts() -> None:
    paths = PathMap([("s3a://lake", "s3://lake"), ("s3a://lake/old", "s3://archive")])

    assert paths.apply("s3a://lake/a") == "s3://lake/a"
    assert paths.apply("s3a://lake/old/a") == "s3://archive/a"
    assert paths.apply("hdfs://a") == "hdfs://a"


def test_beginning_of_a_location_ends_where_a_folder_ends() -> None:
    paths = PathMap([("s3a://lake", "s3://lake"), ("file:///old/", "file:///new/"), ("gcs:", "gs:")])

    assert paths.apply("s3a://lakehouse/a") == "s3a://lakehouse/a"
    assert paths.apply("s3a://lake") == "s3://lake"
    assert paths.apply("file:///older/a") == "file:///older/a"
    assert paths.apply("file:///old/a") == "file:///new/a"
    assert paths.apply("gcs://a/b") == "gs://a/b"

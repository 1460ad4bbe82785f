"""Expressions in JSON: both forms of the REST specification are read, the older one, which every client reads, is written."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, Final, NoReturn
from uuid import UUID

from app.engine.expressions.expressions import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundExpression,
    BoundPredicate,
    BoundReference,
    BoundTransform,
    Expression,
    IdReference,
    Literal,
    NamedReference,
    Not,
    Operation,
    Or,
    P,
    Predicate,
    Reference,
    Term,
    TransformTerm,
    Tree,
    Value,
    conjunction,
    disjunction,
    negation,
)
from app.engine.model.document import INT
from app.engine.model.ids import FieldId
from app.engine.model.transforms import Transform, parse_transform
from app.engine.model.types import PrimitiveType, parse_primitive
from app.engine.model.values import to_json_value
from app.errors import InvalidFilter

MAX_LEVELS = 100
"""How deep expressions may be nested; chains of `and` or of `or` count as one level, however long."""
_OPERATIONS: Final = {operation.value: operation for operation in Operation}
_FLIPPED: Final = {
    Operation.LT: Operation.GT,
    Operation.LT_EQ: Operation.GT_EQ,
    Operation.GT: Operation.LT,
    Operation.GT_EQ: Operation.LT_EQ,
    Operation.EQ: Operation.EQ,
    Operation.NOT_EQ: Operation.NOT_EQ,
}
_FUNCTIONS: Final = {"years": "year", "months": "month", "days": "day", "hours": "hour"}
"""What engines call the transforms when they are functions."""


def parse_expression(value: object) -> Expression:
    """Return the expression that a JSON value describes.

    Raises:
        InvalidFilter: it describes none; the message names the part.
    """
    return _Parser().expression(value, MAX_LEVELS)

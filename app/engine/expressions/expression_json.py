"""Expressions in JSON: reads both forms of the REST specification, writes the older one."""

from __future__ import annotations

import math
import reprlib
from decimal import Decimal
from typing import Any, Final, TypeAlias, assert_never
from uuid import UUID

from app.engine.expressions import expressions as e
from app.engine.model.data_types.json_values import to_json_value
from app.engine.model.data_types.transforms import parse_transform
from app.engine.model.data_types.types import PrimitiveType, Type, parse_primitive
from app.engine.model.document import MAX_INT
from app.engine.model.ids import FieldId
from app.errors import InvalidFilter

Json: TypeAlias = dict[str, Any]

MAX_LEVELS = 100
"""How deeply expressions may be nested; a chain of `and` or of `or` counts as one level."""
_OPERATIONS: Final = {operation.value: operation for operation in e.Operation}
_FLIPPED: Final = {
    e.Operation.LT: e.Operation.GT,
    e.Operation.LT_EQ: e.Operation.GT_EQ,
    e.Operation.GT: e.Operation.LT,
    e.Operation.GT_EQ: e.Operation.LT_EQ,
    e.Operation.EQ: e.Operation.EQ,
    e.Operation.NOT_EQ: e.Operation.NOT_EQ,
}
_FUNCTIONS: Final = {"years": "year", "months": "month", "days": "day", "hours": "hour"}
"""The names of the transforms in engines that have them as functions."""
_FUNCTION_CATALOG: Final = "iceberg_functions"
"""The catalog that has the transforms; where none is named, it is meant too."""
_FUNCTION_NAMESPACES: Final = ((), ("system",))
"""Where engines have the transforms as functions."""
_MAX_BITS: Final = 1330
"""About 400 digits, more than any column's values have."""
_BRIEF: Final = reprlib.Repr()
_BRIEF.maxlevel = 3
_BRIEF.maxstring = _BRIEF.maxother = 100
"""Shows the beginning of a part, however large it is."""


def parse_expression(value: object, *, levels_left: int = MAX_LEVELS) -> e.Expression:
    """Return the expression that a JSON value describes.

    Raises:
        InvalidFilter: it is not an expression; the message shows the part.
    """
    if isinstance(value, bool):
        return e.ALWAYS_TRUE if value else e.ALWAYS_FALSE
    if not isinstance(value, dict):
        raise _unreadable(value, "expected true, false or an object")
    if levels_left <= 0:
        raise InvalidFilter(f"Invalid filter: it is nested more than {MAX_LEVELS} levels deep")
    kind = _kind(value)
    match kind:
        case "true" | "false":
            return e.ALWAYS_TRUE if kind == "true" else e.ALWAYS_FALSE
        case "literal":
            if not isinstance(value.get("value"), bool):
                raise _unreadable(value, "a literal alone must be true or false")
            return e.ALWAYS_TRUE if value["value"] else e.ALWAYS_FALSE
        case "and" | "or":
            parts = (parse_expression(part, levels_left=levels_left - 1) for part in _chain(value, kind))
            return e.conjunction(parts) if kind == "and" else e.disjunction(parts)
        case "not":
            return e.negation(parse_expression(_required(value, "child"), levels_left=levels_left - 1))
    operation = _OPERATIONS.get(kind)
    if operation is None:
        raise _unreadable(value, f"there is no operation {kind[:50]!r}")
    return _parse_predicate(operation, value)


def _kind(value: Json) -> str:
    kind = value.get("type")
    if not isinstance(kind, str):
        raise _unreadable(value, "its type is missing")
    # The reference also reads the names of its enum: IS_NULL is is-null.
    return kind.lower().replace("_", "-")


def _chain(value: Json, kind: str) -> list[object]:
    """Return the parts of a chain of one operation, in order; clients nest one level per part."""
    parts: list[object] = []
    pending: list[object] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict) and _kind(item) == kind:
            pending += [_required(item, "right"), _required(item, "left")]
        else:
            parts.append(item)
    return parts


def _parse_predicate(operation: e.Operation, value: Json) -> e.Predicate:
    if operation.is_unary:
        if "value" in value or "values" in value:
            raise _unreadable(value, f"{operation} takes no value")
        return e.Predicate(operation, _operand(value))
    if operation.is_set:
        return e.Predicate(operation, _operand(value), _parse_literals(_required(value, "values")))
    if "values" in value:
        raise _unreadable(value, f"{operation} takes one value, not values")
    if "term" in value or value.keys().isdisjoint({"left", "right"}):
        term, literal = _required(value, "term"), _required(value, "value")
        return e.Predicate(operation, _parse_term(term), (_parse_literal(literal),))
    left, right = _required(value, "left"), _required(value, "right")
    if _is_literal(left) and _is_literal(right):
        raise _unreadable(value, "it compares two literals; a column is an object of type reference")
    if not _is_literal(left) and not _is_literal(right):
        raise _unreadable(value, "comparing two columns is not supported")
    if not _is_literal(left):
        return e.Predicate(operation, _parse_value_term(left), (_parse_literal(right),))
    flipped = _FLIPPED.get(operation)
    if flipped is None:
        raise _unreadable(value, f"{operation} needs the column on its left")
    return e.Predicate(flipped, _parse_value_term(right), (_parse_literal(left),))


def _operand(value: Json) -> e.Term:
    if "child" in value and "term" not in value:
        return _parse_value_term(value["child"])
    return _parse_term(_required(value, "term"))


def _parse_term(value: object) -> e.Term:
    return e.NamedReference(_text(value)) if isinstance(value, str) else _parse_value_term(value)


def _parse_value_term(value: object) -> e.Term:
    if not isinstance(value, dict):
        raise _unreadable(value, "expected a reference to a column")
    match _kind(value):
        case "reference":
            return _parse_reference(value)
        case "transform":
            transform, inner = _required(value, "transform"), _required(value, "term")
            if not isinstance(transform, str):
                raise _unreadable(value, "the transform must be a string")
            return _transformed(value, transform, inner)
        case "apply":
            return _parse_apply(value)
    raise _unreadable(value, "expected a reference to a column, or a transform of one")


def _parse_reference(value: Json) -> e.Reference:
    if "id" in value:
        field_id = value["id"]
        if type(field_id) is not int or not 0 <= field_id <= MAX_INT:
            raise _unreadable(value, "the id of a reference must be a field id")
        return e.IdReference(FieldId(field_id))
    name = value.get("name", value.get("term"))
    if not isinstance(name, str):
        raise _unreadable(value, "a reference needs a name or an id")
    return e.NamedReference(_text(name))


def _parse_apply(value: Json) -> e.Term:
    function, arguments = _required(value, "function"), _required(value, "arguments")
    catalog = None
    if isinstance(function, dict):
        catalog, function = function.get("catalog"), function.get("identifier")
    *namespace, name = function if isinstance(function, list) and function else [function]
    if not isinstance(name, str) or not isinstance(arguments, list):
        raise _unreadable(value, "expected the name of a function and a list of arguments")
    if catalog not in (None, _FUNCTION_CATALOG) or tuple(namespace) not in _FUNCTION_NAMESPACES:
        # SQL's own year(ts) is 2018 where the transform's is 48.
        raise _unreadable(value, f"there are only the functions of {_FUNCTION_CATALOG}")
    terms = [argument for argument in arguments if not _is_literal(argument)]
    parameters = [_parse_literal(argument).value for argument in arguments if _is_literal(argument)]
    if len(terms) != 1 or len(parameters) > 1:
        raise _unreadable(value, "a transform takes one column and at most one parameter")
    name = _FUNCTIONS.get(name.lower(), name)
    return _transformed(value, f"{name}[{parameters[0]!r}]" if parameters else name, terms[0])


def _transformed(value: Json, text: str, inner: object) -> e.TransformTerm:
    try:
        transform = parse_transform(text)
    except ValueError as error:
        raise _unreadable(value, str(error)) from error
    if isinstance(inner, str):
        return e.TransformTerm(transform, e.NamedReference(_text(inner)))
    if not isinstance(inner, dict) or _kind(inner) != "reference":
        raise _unreadable(value, f"{transform} applies to a column, an object of type reference")
    return e.TransformTerm(transform, _parse_reference(inner))


def _is_literal(value: object) -> bool:
    return not isinstance(value, dict) or value.get("type") == "literal"


def _parse_literals(value: object) -> tuple[e.Literal, ...]:
    if isinstance(value, dict) and value.get("type") == "literals":
        data_type = _parse_data_type(_required(value, "data-type"))
        items = _required(value, "values")
        if isinstance(items, list):
            return tuple(e.Literal(_parse_literal(item).value, data_type) for item in items)
    elif isinstance(value, list):
        return tuple(_parse_literal(item) for item in value)
    raise _unreadable(value, "expected an array of literals")


def _parse_literal(value: object) -> e.Literal:
    if isinstance(value, dict):
        if value.get("type") != "literal":
            raise _unreadable(value, "expected a literal")
        plain = _parse_plain(_required(value, "value"))
        if value.get("data-type") is None:
            return e.Literal(plain)
        return e.Literal(plain, _parse_data_type(value["data-type"]))
    return e.Literal(_parse_plain(value))


def _parse_plain(value: object) -> bool | int | float | str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        if value.bit_length() > _MAX_BITS:
            raise InvalidFilter("Invalid filter: a literal is a number of more than 400 digits")
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise _unreadable(value, "a literal must be a string, a number, true or false; for null there is is-null")


def _parse_data_type(value: object) -> PrimitiveType:
    if not isinstance(value, str):
        raise _unreadable(value, "a data type must be a string")
    try:
        return parse_primitive(value)
    except ValueError as error:
        raise InvalidFilter(f"Invalid filter: {error}") from error


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise _unreadable(value, "half of a surrogate pair is no text") from error
    return value


def _required(value: Json, name: str) -> Any:
    if name not in value:
        raise _unreadable(value, f"{name!r} is missing")
    return value[name]


def _unreadable(value: object, reason: str) -> InvalidFilter:
    return InvalidFilter(f"Invalid filter: cannot parse {_BRIEF.repr(value)[:200]}: {reason}")


def to_json(expression: e.Expression | e.BoundExpression) -> Any:
    """Return the JSON value of an expression, in the older form of the specification.

    A bound column is written as its name, and its literals as single values of its type.
    """
    match expression:
        case e.AlwaysTrue():
            return True
        case e.AlwaysFalse():
            return False
        case e.Not():
            return {"type": "not", "child": to_json(expression.part)}
        case e.And():
            return _joined("and", [to_json(part) for part in expression.parts])
        case e.Or():
            return _joined("or", [to_json(part) for part in expression.parts])
        case e.Predicate():
            return _predicate_json(
                expression.operation,
                _term_json(expression.term),
                [_literal_json(literal) for literal in expression.literals],
            )
        case e.BoundPredicate():
            kind = expression.term.type
            return _predicate_json(
                expression.operation,
                _term_json(expression.term),
                [value_json(kind, value) for value in expression.values],
            )
        case never:
            assert_never(never)


def _joined(kind: str, parts: list[Any]) -> Any:
    # As a balanced tree: readers limit the depth of JSON, and filters may join thousands of parts.
    if len(parts) == 1:
        return parts[0]
    middle = (len(parts) + 1) // 2
    return {"type": kind, "left": _joined(kind, parts[:middle]), "right": _joined(kind, parts[middle:])}


def _predicate_json(operation: e.Operation, term: Any, values: list[Any]) -> Json:
    question = {"type": operation.value, "term": term}
    if operation.is_unary:
        return question
    return question | ({"values": values} if operation.is_set else {"value": values[0]})


def _term_json(term: e.Term | e.BoundTerm) -> Any:
    match term:
        case e.NamedReference() | e.BoundReference():
            return term.name
        case e.IdReference():
            return {"type": "reference", "id": term.field_id}
        case e.TransformTerm() | e.BoundTransform():
            inner = _term_json(term.reference)
            return {"type": "transform", "transform": str(term.transform), "term": inner}
        case never:
            assert_never(never)


def _literal_json(literal: e.Literal) -> Any:
    value: Any = literal.value
    match value:
        case bytes():
            value = value.hex().upper()
        case Decimal():
            value = format(value, "f")
        case UUID():
            value = str(value)
    if literal.data_type is None:
        return value
    return {"type": "literal", "value": value, "data-type": str(literal.data_type)}


def value_json(kind: Type, value: Any) -> Any:
    """Return the JSON of a literal that was made a value of its column's type."""
    assert isinstance(kind, PrimitiveType)  # nothing else can be compared
    # A decimal literal may have more digits than the column's type.
    return format(value, "f") if isinstance(value, Decimal) else to_json_value(kind, value)

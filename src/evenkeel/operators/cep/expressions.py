"""SQL expressions over whole columns: each part of a tree is one Arrow call, with SQL's nulls."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenkeel.errors import InvalidArgumentError, UnknownNameError, UnsupportedTypeError
from evenkeel.operators.cep.syntax import DIALECT
from evenkeel.operators.ragged import one_chunk

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot.expressions import Expression

__all__ = ["Events", "Scope", "as_floats", "as_mask", "evaluate", "evaluate_column", "function_name", "is_function"]

Value = Any  # an Arrow array, or a scalar that stands for a column of equal values


class Scope(Protocol):
    """What an expression can see."""

    def __len__(self) -> int:
        """How many rows there are."""
        ...

    def find(self, node: Any) -> Value | None:
        """Give the value of a part that means something here, such as a column; ``None`` for all other parts."""
        ...


class Events:
    """The columns of events; windows and the like are looked up by their SQL text."""

    def __init__(self, rows: pa.Table, known: dict[str, pa.Array] | None = None) -> None:
        self.rows, self.known = rows, known or {}

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def find(self, node: Any) -> Value | None:
        """Look up a column, or what is known by its text."""
        if node.key == "column":
            if node.name not in self.rows.column_names:
                raise UnknownNameError("column", node.name, self.rows.column_names)
            column = one_chunk(self.rows[node.name])
            return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        return self.known.get(node.sql(DIALECT)) if self.known else None


def evaluate_column(node: Expression, scope: Scope) -> pa.Array:
    """Evaluate an expression to a whole column."""
    value = evaluate(node, scope)
    return pa.repeat(value, len(scope)) if isinstance(value, pa.Scalar) else one_chunk(value)


def as_mask(node: Expression, scope: Scope) -> pa.Array:
    """Evaluate a condition; unknown (null) does not meet it."""
    found = evaluate_column(node, scope)
    if not (pa.types.is_boolean(found.type) or pa.types.is_null(found.type)):
        raise InvalidArgumentError(f"A condition is true or false; this one is of type {found.type}: {_sql(node)}")
    return pc.fill_null(found.cast(pa.bool_()), False)


def evaluate(node: Expression, scope: Scope) -> Value:
    """Evaluate an expression; a constant stays one value."""
    found = scope.find(node)
    if found is not None:
        return found
    handler = _HANDLERS.get(node.key)
    try:
        if handler is not None:
            return handler(node, scope)
        if node.key in _FUNCTIONS:
            return _FUNCTIONS[node.key](*(evaluate(part, scope) for part in _arguments(node)))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise UnsupportedTypeError(f"{_sql(node)} does not go with the types of its parts: {error}") from error
    if is_function(node):
        raise UnknownNameError("function", function_name(node), [*_FUNCTIONS, "case", "cast", "coalesce", "if"])
    raise InvalidArgumentError(f"{_sql(node)} has no place in this expression, or in rules at all.", part=_sql(node))


def is_function(node: Any) -> bool:
    """Tell whether a part is written as a function's call."""
    from sqlglot.expressions import Func

    return isinstance(node, Func)


def function_name(node: Any) -> str:
    """The name of a function, in small letters."""
    return str(node.name if node.key == "anonymous" else node.sql_name()).lower()


def as_floats(value: Value) -> Value:
    """Numbers as doubles."""
    return _numbers(value).cast(pa.float64())


def _sql(node: Any) -> str:
    return str(node.sql(DIALECT))


def _arguments(node: Any) -> list[Any]:
    """All arguments of a function, in order; options that sqlglot sets by itself are no expressions."""
    given = [part for value in node.args.values() for part in (value if isinstance(value, list) else [value])]
    return [part for part in given if hasattr(part, "key")]


def _numbers(value: Value) -> Value:
    """Numbers in the widths that rules reckon in: 64-bit whole numbers or doubles, as Spark's wider types."""
    kind = value.type
    if pa.types.is_integer(kind):
        return value.cast(pa.int64())
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return value.cast(pa.float64())
    if pa.types.is_null(kind):
        return value.cast(pa.int64())
    raise UnsupportedTypeError(f"A number is needed here; this has type {kind}.")


def _arithmetic(function: Callable[..., Value]) -> Callable[..., Value]:
    return lambda left, right: function(_numbers(left), _numbers(right))


def _divide(left: Value, right: Value) -> Value:
    """Division is of doubles, and by zero gives null: a rule does not stop the stream."""
    divisor = as_floats(right)
    return pc.divide(as_floats(left), pc.if_else(pc.equal(divisor, 0.0), pa.scalar(None, pa.float64()), divisor))


def _remainder(left: Value, right: Value) -> Value:
    """The remainder has the dividend's sign; by zero it is null."""
    a, b = _numbers(left), _numbers(right)
    kind = pa.float64() if pa.float64() in {a.type, b.type} else pa.int64()
    b = pc.if_else(pc.equal(b, 0), pa.scalar(None, b.type), b).cast(kind)
    a = a.cast(kind)
    valid = np.asarray(_column(pc.and_(pc.is_valid(a), pc.is_valid(b))))
    dividends, divisors = (np.asarray(pc.fill_null(_column(part), 1)) for part in (a, b))
    found = pa.array(np.fmod(dividends, divisors), kind, mask=~valid)
    return found[0] if isinstance(a, pa.Scalar) and isinstance(b, pa.Scalar) else found


def _comparable(left: Value, right: Value) -> tuple[Value, Value]:
    if pa.types.is_null(left.type) and pa.types.is_null(right.type):
        return _numbers(left), _numbers(right)
    left, right = (_numbers(value) if pa.types.is_decimal(value.type) else value for value in (left, right))
    return left, right


def _nan(value: Value) -> Value:
    return pc.is_nan(value) if pa.types.is_floating(value.type) else pc.and_(pc.is_null(value), False)


def _has_nan(*values: Value) -> bool:
    return any(pa.types.is_floating(value.type) and pc.any(_column(pc.is_nan(value))).as_py() for value in values)


def _column(value: Value) -> pa.Array:
    return pa.array([value.as_py()], value.type) if isinstance(value, pa.Scalar) else value


def _equal(left: Value, right: Value) -> Value:
    left, right = _comparable(left, right)
    found = pc.equal(left, right)
    return pc.or_kleene(found, pc.and_kleene(_nan(left), _nan(right))) if _has_nan(left, right) else found


def _greater(left: Value, right: Value) -> Value:
    """As in Spark, NaN equals itself and is greater than every other number."""
    left, right = _comparable(left, right)
    found = pc.greater(left, right)
    if not _has_nan(left, right):
        return found
    return pc.or_kleene(found, pc.and_kleene(_nan(left), pc.invert(_nan(right))))


def _at_least(left: Value, right: Value) -> Value:
    return pc.or_kleene(_greater(left, right), _equal(left, right))


def _in(node: Any, scope: Scope) -> Value:
    value = evaluate(node.this, scope)
    if not node.expressions:
        raise InvalidArgumentError(f"IN takes a list of values: {_sql(node)}")
    return reduce(pc.or_kleene, (_equal(value, evaluate(part, scope)) for part in node.expressions))


def _between(node: Any, scope: Scope) -> Value:
    value, low, high = (evaluate(node.args[part], scope) for part in ("this", "low", "high"))
    return pc.and_kleene(_at_least(value, low), _at_least(high, value))


def _is(node: Any, scope: Scope) -> Value:
    value = evaluate(node.this, scope)
    if node.expression.key == "null":
        return pc.is_null(value)
    wanted = evaluate(node.expression, scope)
    return pc.fill_null(pc.equal(value, wanted), False)


def _case(node: Any, scope: Scope) -> Value:
    default = node.args.get("default")
    result = evaluate(default, scope) if default else pa.scalar(None)
    subject = node.args.get("this")
    for branch in reversed(node.args["ifs"]):
        condition = evaluate(branch.this, scope)
        if subject:
            condition = _equal(evaluate(subject, scope), condition)
        result = _choose(condition, evaluate(branch.args["true"], scope), result)
    return result


def _if(node: Any, scope: Scope) -> Value:
    otherwise = node.args.get("false")
    parts = evaluate(node.this, scope), evaluate(node.args["true"], scope)
    return _choose(*parts, evaluate(otherwise, scope) if otherwise else pa.scalar(None))


def _choose(condition: Value, then: Value, otherwise: Value) -> Value:
    then, otherwise = _alike(then, otherwise)
    return pc.if_else(pc.fill_null(condition.cast(pa.bool_()), False), then, otherwise)


def _alike(*values: Value) -> list[Value]:
    """Values of one type, so that a choice among them has it."""
    kinds = {value.type for value in values if not pa.types.is_null(value.type)}
    if len(kinds) > 1:
        values = tuple(value if pa.types.is_null(value.type) else _numbers(value) for value in values)
        kinds = {pa.float64()} if any(value.type == pa.float64() for value in values) else {pa.int64()}
    return [value.cast(next(iter(kinds), pa.null())) for value in values]


def _cast(node: Any, scope: Scope) -> Value:
    kind = node.args["to"].this.name
    if kind not in _TYPES:
        raise UnknownNameError("type", kind, _TYPES)
    value = evaluate(node.this, scope)
    if kind == "TIMESTAMPTZ" and pa.types.is_string(value.type):
        return pc.assume_timezone(value.cast(pa.timestamp("us")), "UTC")
    return value.cast(_TYPES[kind], safe=False)


def _literal(node: Any, scope: Scope) -> Value:  # noqa: ARG001
    if node.is_string:
        return pa.scalar(node.name)
    return pa.scalar(int(node.name), pa.int64()) if node.is_int else pa.scalar(float(node.name))


def _round(value: Value, decimals: Value | None = None) -> Value:
    # Half away from zero, as in SQL.
    ndigits = decimals.as_py() if decimals is not None else 0
    return pc.round(_numbers(value), ndigits=ndigits, round_mode="half_towards_infinity")


def _like(value: Value, pattern: Value) -> Value:
    return pc.match_like(value, pattern.as_py())


_TYPES = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "TEXT": pa.string(),
    "VARCHAR": pa.string(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMPNTZ": pa.timestamp("us"),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
}

_HANDLERS: dict[str, Callable[[Any, Scope], Value]] = {
    "between": _between,
    "boolean": lambda node, _: pa.scalar(bool(node.this)),
    "case": _case,
    "cast": _cast,
    "if": _if,
    "in": _in,
    "is": _is,
    "literal": _literal,
    "null": lambda *_: pa.scalar(None),
    "paren": lambda node, scope: evaluate(node.this, scope),
}

_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "abs": lambda value: pc.abs(_numbers(value)),
    "add": _arithmetic(pc.add),
    "and": pc.and_kleene,
    "ceil": lambda value: pc.ceil(_numbers(value)),
    "coalesce": lambda *values: pc.coalesce(*_alike(*values)),
    "div": _divide,
    "dpipe": lambda left, right: pc.binary_join_element_wise(left, right, ""),
    "eq": _equal,
    "exp": lambda value: pc.exp(as_floats(value)),
    "floor": lambda value: pc.floor(_numbers(value)),
    "greatest": lambda *values: pc.max_element_wise(*_alike(*values)),
    "gt": _greater,
    "gte": _at_least,
    "least": lambda *values: pc.min_element_wise(*_alike(*values)),
    "length": pc.utf8_length,
    "like": _like,
    "ln": lambda value: pc.ln(as_floats(value)),
    "lower": pc.utf8_lower,
    "lt": lambda left, right: _greater(right, left),
    "lte": lambda left, right: _at_least(right, left),
    "mod": _remainder,
    "mul": _arithmetic(pc.multiply),
    "neg": lambda value: pc.negate(_numbers(value)),
    "neq": lambda left, right: pc.invert(_equal(left, right)),
    "not": lambda value: pc.invert(value.cast(pa.bool_()) if pa.types.is_null(value.type) else value),
    "nullif": lambda left, right: _choose(_equal(left, right), pa.scalar(None), left),
    "or": pc.or_kleene,
    "pow": lambda left, right: pc.power(as_floats(left), as_floats(right)),
    "round": _round,
    "sqrt": lambda value: pc.sqrt(as_floats(value)),
    "sub": _arithmetic(pc.subtract),
    "upper": pc.utf8_upper,
}

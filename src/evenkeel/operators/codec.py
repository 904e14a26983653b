"""Rows of an Arrow table as bytes and back, whole columns at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evenkeel.errors import CorruptDataError, InvalidArgumentError, UnsupportedTypeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

__all__ = ["RowCodec"]

_NO_BYTES = np.empty(0, np.uint8)
_LONGEST = 2**32 - 1  # bytes of one value, since its length takes 4 bytes


@dataclass(frozen=True, slots=True, eq=False)
class RowCodec:
    """Encodes each row of a table with a given schema as one binary value.

    A row is: a bitmap of its nulls; every fixed-width value, in the schema's order; the length of every text, binary or
    list value as 4 bytes; and then their bytes. The fields of a struct stand where the struct does, behind a null flag
    of its own. A list is the number of its elements as 4 bytes, then, unless all of them are equally long, the size of
    each as 4 bytes, and then the elements, each encoded as a row. Little-endian throughout: equal rows are equal bytes
    on all machines.

    Parameters
    ----------
    schema
        Booleans, numbers, dates, times, decimals, text and binary, and lists and structs of these, nested as you like.

    Notes
    -----
    Encoding and decoding are a few passes per column, with compiled copies: some 10 million small rows or list elements
    a second. One value may have 4 GiB. Decoding raises for rows whose lengths do not fit together; it does not notice
    a number that is another number.

    Examples
    --------
    >>> codec = RowCodec(pa.schema([("word", pa.string()), ("counts", pa.list_(pa.int64()))]))
    >>> rows = codec.encode(pa.table({"word": ["a", None], "counts": [[1, 2], []]}))
    >>> codec.decode(rows).to_pylist()
    [{'word': 'a', 'counts': [1, 2]}, {'word': None, 'counts': []}]
    """

    schema: pa.Schema

    def __post_init__(self) -> None:
        for field in self.schema:
            _check(field, field.name)

    def encode(self, table: pa.Table) -> pa.LargeBinaryArray:
        """Give one binary value per row; columns are taken by name."""
        columns = [_one(table[field.name].cast(field.type)) for field in self.schema]
        offsets, out = _encode(columns, table.num_rows)
        return pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), table.num_rows, [None, pa.py_buffer(offsets), pa.py_buffer(out)]
        )

    def decode(self, values: pa.Array | pa.ChunkedArray) -> pa.Table:
        """Give the rows again; a null value gives a row of nulls."""
        values = _one(values).cast(pa.large_binary())
        present = values.is_valid().to_numpy(zero_copy_only=False)
        return pa.table(_Decoding(list(self.schema), *_parts(values), present).columns(), schema=self.schema)


def _one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _check(field: pa.Field, column: str) -> None:
    """Raise if a column of the schema has no row encoding."""
    if pa.types.is_struct(field.type):
        for child in field.type:
            _check(child, column)
    elif _is_list(field.type):
        _check(field.type.value_field, column)
    elif not _is_text(field.type) and not _width(field.type):
        raise UnsupportedTypeError(
            f"Column {column!r} has type {field.type}, which has no row encoding. Use numbers, times, decimals, text, "
            "binary, and lists and structs of these.",
            column=column,
        )


def _is_text(kind: pa.DataType) -> bool:
    return (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind)


def _varies(kind: pa.DataType) -> bool:
    return _is_text(kind) or _is_list(kind)


def _width(kind: pa.DataType) -> int:
    """Bytes of a value of fixed width; 0 for other types."""
    if pa.types.is_boolean(kind):
        return 1
    if pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind):
        return int(kind.bit_width) // 8
    return 0


def _nodes(kinds: Iterable[pa.DataType]) -> Iterator[pa.DataType]:
    """Every type, and after a struct those of its fields."""
    for kind in kinds:
        yield kind
        if pa.types.is_struct(kind):
            yield from _nodes(field.type for field in kind)


def _node_columns(columns: Iterable[pa.Array]) -> Iterator[pa.Array]:
    """Every column, and after a struct those of its fields, null where the struct is."""
    for column in columns:
        yield column
        if pa.types.is_struct(column.type):
            yield from _node_columns(column.flatten())


def _encode(columns: list[pa.Array], rows: int) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Where each row starts, one more at the end, and the bytes of all."""
    from evenkeel.operators import _kernels

    nodes = list(_node_columns(columns))
    nulls = np.column_stack([node.is_null().to_numpy(zero_copy_only=False) for node in nodes])
    head = [np.packbits(nulls, axis=1, bitorder="little")]
    head += [_fixed_bytes(node) for node in nodes if _width(node.type)]
    tails = [_list_parts(node) if _is_list(node.type) else _parts(node) for node in nodes if _varies(node.type)]
    head += [_as_uint32(lengths) for _, _, lengths in tails]
    fixed = np.ascontiguousarray(np.hstack(head))
    sizes = fixed.shape[1] + sum((lengths for _, _, lengths in tails), np.zeros(rows, np.int64))
    offsets = _offsets(sizes)
    out = np.empty(offsets[-1], np.uint8)
    _kernels.scatter_fixed(fixed, offsets[:-1], out)
    cursor = offsets[:-1] + fixed.shape[1]
    for data, starts, lengths in tails:
        _kernels.copy_slices(data, starts, lengths, cursor, out)
        cursor = cursor + lengths
    return offsets, out


def _offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)])


def _as_uint32(lengths: NDArray[np.int64]) -> NDArray[np.uint8]:
    if len(lengths) and lengths.max() > _LONGEST:
        raise InvalidArgumentError(f"A value of {lengths.max()} bytes is too long for a row: 4 GiB at most.")
    return lengths.astype("<u4").view(np.uint8).reshape(len(lengths), 4)


def _fixed_bytes(column: pa.Array) -> NDArray[np.uint8]:
    """Values as rows × width, zero where null, so that equal rows are equal bytes."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    width = column.type.bit_width // 8
    buffer = column.buffers()[1]
    everything = np.frombuffer(buffer, np.uint8) if buffer is not None else _NO_BYTES
    values = everything[column.offset * width : (column.offset + len(column)) * width].reshape(len(column), width)
    if column.null_count:
        values = np.where(column.is_null().to_numpy(zero_copy_only=False)[:, None], np.uint8(0), values)
    return values


def _starts(column: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each text or list starts, and how long it is (0 where null)."""
    kind = column.type
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind) or pa.types.is_large_list(kind)
    offsets = column.buffers()[1]
    if offsets is None or len(column) == 0:
        return np.zeros(len(column), np.int64), np.zeros(len(column), np.int64)
    ends = np.frombuffer(offsets, np.int64 if wide else np.int32)[column.offset : column.offset + len(column) + 1]
    ends = ends.astype(np.int64)
    lengths = np.diff(ends)
    if column.null_count:
        lengths[column.is_null().to_numpy(zero_copy_only=False)] = 0
    return ends[:-1], lengths


def _parts(column: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """The bytes of texts, where each starts, and how long it is."""
    data = column.buffers()[2]
    return np.frombuffer(data, np.uint8) if data is not None and data.size else _NO_BYTES, *_starts(column)


def _list_parts(column: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """The bytes of lists, where each starts, and how many they are."""
    from evenkeel.operators import _kernels

    counts = _starts(column)[1]
    first = _offsets(counts)
    element_offsets, elements = _encode([column.flatten()], int(first[-1]))
    lengths = 4 + np.diff(element_offsets[first])
    varies = any(map(_varies, _nodes([column.type.value_type])))
    if varies:
        lengths += 4 * counts
    lengths[column.is_null().to_numpy(zero_copy_only=False)] = 0
    there = lengths > 0
    offsets = _offsets(lengths)
    out = np.empty(offsets[-1], np.uint8)
    cursor = offsets[:-1] + 4
    _kernels.scatter_fixed(_as_uint32(counts)[there], offsets[:-1][there], out)
    if varies:
        sizes = _as_uint32(np.diff(element_offsets)).ravel()
        _kernels.copy_slices(sizes, 4 * first[:-1], 4 * counts, cursor, out)
        cursor += 4 * counts
    _kernels.copy_slices(elements, element_offsets[first[:-1]], np.diff(element_offsets[first]), cursor, out)
    return out, offsets[:-1], lengths


class _Decoding:
    """Rows of given fields on their way back to columns.

    Parameters
    ----------
    fields
        What a row has.
    data, starts, sizes
        The bytes of rows, where each starts and how many they are.
    present
        Which rows are there at all; the others are rows of nulls.
    """

    def __init__(
        self,
        fields: list[pa.Field],
        data: NDArray[np.uint8],
        starts: NDArray[np.int64],
        sizes: NDArray[np.int64],
        present: NDArray[np.bool_],
    ) -> None:
        from evenkeel.operators import _kernels

        self.fields, self.data = fields, data
        kinds = list(_nodes(field.type for field in fields))
        bitmap, fixed_bytes = (len(kinds) + 7) // 8, sum(map(_width, kinds))
        width = bitmap + fixed_bytes + 4 * sum(map(_varies, kinds))
        if (sizes[present] < width).any():
            raise CorruptDataError(
                f"A row of {sizes[present].min()} bytes is too short for its schema: {width} at least."
            )
        known = np.empty((int(present.sum()), width), np.uint8)
        _kernels.gather_fixed(data, starts[present], known)
        fixed = np.zeros((len(starts), width), np.uint8)
        fixed[present] = known
        self.null = np.unpackbits(fixed[:, :bitmap], axis=1, bitorder="little", count=len(kinds)).astype(bool)
        self.null[~present] = True
        self.fixed = fixed[:, bitmap : bitmap + fixed_bytes]
        self.lengths = fixed[:, bitmap + fixed_bytes :].copy().view("<u4").astype(np.int64)
        if (width + self.lengths.sum(axis=1) != np.where(present, sizes, width)).any():
            raise CorruptDataError("A row of state has other bytes than its lengths say.")
        # How far each kind of part has been read.
        self.node, self.at, self.tail, self.cursor = 0, 0, 0, starts + width

    def columns(self) -> list[pa.Array]:
        """The columns of all fields."""
        return [self._column(field.type) for field in self.fields]

    def _column(self, kind: pa.DataType) -> pa.Array:
        null = self.null[:, self.node]
        self.node += 1
        if pa.types.is_struct(kind):
            children = [self._column(field.type) for field in kind]
            return pa.Array.from_buffers(kind, len(null), [_validity(null)], int(null.sum()), children=children)
        if not _varies(kind):
            part = np.ascontiguousarray(self.fixed[:, self.at : self.at + _width(kind)])
            self.at += _width(kind)
            return _fixed_column(kind, part, null)
        starts, lengths = self.cursor, self.lengths[:, self.tail]
        self.cursor, self.tail = starts + lengths, self.tail + 1
        if lengths[null].any():
            raise CorruptDataError("A row of state has bytes where it has a null.")
        make = _list_column if _is_list(kind) else _text_column
        return make(kind, self.data, starts, lengths, null)


def _text_column(
    kind: pa.DataType, data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64], null: Any
) -> pa.Array:
    from evenkeel.operators import _kernels

    offsets = _offsets(lengths)
    out = np.empty(offsets[-1], np.uint8)
    _kernels.copy_slices(data, starts, lengths, offsets[:-1], out)
    wide = pa.large_string() if pa.types.is_string(kind) or pa.types.is_large_string(kind) else pa.large_binary()
    buffers = [_validity(null), pa.py_buffer(offsets), pa.py_buffer(out)]
    return pa.Array.from_buffers(wide, len(lengths), buffers, int(null.sum())).cast(kind)


def _list_column(
    kind: pa.DataType, data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64], null: Any
) -> pa.Array:
    from evenkeel.operators import _kernels

    if (lengths[~null] < 4).any():
        raise CorruptDataError("A list of state is too short for its own length.")
    counts = np.zeros(len(lengths), np.int64)
    heads = np.empty((int((~null).sum()), 4), np.uint8)
    _kernels.gather_fixed(data, starts[~null], heads)
    counts[~null] = heads.view("<u4").ravel()
    kinds = list(_nodes([kind.value_type]))
    body = np.where(null, 0, lengths - 4)
    first = _offsets(counts)
    if any(map(_varies, kinds)):
        if (4 * counts > body).any():
            raise CorruptDataError("A list of state has fewer bytes than its elements take.")
        raw = np.empty(4 * first[-1], np.uint8)
        _kernels.copy_slices(data, starts + 4, 4 * counts, 4 * first[:-1], raw)
        sizes, body = raw.view("<u4").astype(np.int64), body - 4 * counts
        element_starts = starts + 4 + 4 * counts
    else:
        each = (len(kinds) + 7) // 8 + sum(map(_width, kinds))
        if (each * counts != body).any():
            raise CorruptDataError("A list of state has other bytes than its elements take.")
        sizes, element_starts = np.full(first[-1], each), starts + 4
    ends = _offsets(sizes)
    if (np.diff(ends[first]) != body).any():
        raise CorruptDataError("A list of state has other bytes than the sizes of its elements say.")
    places = ends[:-1] + np.repeat(element_starts - ends[first[:-1]], counts)
    elements = _Decoding([kind.value_field], data, places, sizes, np.ones(len(sizes), bool)).columns()[0]
    offset_type = np.int64 if pa.types.is_large_list(kind) else np.int32
    if first[-1] > np.iinfo(offset_type).max:
        raise InvalidArgumentError(f"{first[-1]} elements are too many for one column of {kind}; use a large list.")
    buffers = [_validity(null), pa.py_buffer(first.astype(offset_type))]
    return pa.Array.from_buffers(kind, len(null), buffers, int(null.sum()), children=[elements])


def _fixed_column(kind: pa.DataType, part: NDArray[np.uint8], null: Any) -> pa.Array:
    if pa.types.is_boolean(kind):
        return pa.array(part.ravel().astype(bool), mask=null)
    return pa.Array.from_buffers(kind, len(part), [_validity(null), pa.py_buffer(part)], int(null.sum()))


def _validity(null: NDArray[np.bool_]) -> Any:
    return pa.py_buffer(np.packbits(~null, bitorder="little")) if null.any() else None

"""The columns of a file as Spark holds and hashes them.

Spark compares the first batch that its Python source reads with its own schema, and every Arrow type must be the one
that it makes of its own type. So a column is stored in that type before Spark sees it, and what no type of Spark's
holds is refused while the file is looked at.

Spark's ``hash``, which says where a shuffle puts each key, is Murmur3 of 32 bits (Austin Appleby, x86) with the seed 42
and, as in Spark's ``Murmur3_x86_32``, with each byte after the last whole word mixed in as a word of its own.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from workbench.errors import QueryError

MOST_DIGITS = 38  # digits of Spark's longest decimal

UTC_US = pa.timestamp("us", "UTC")

_TEXTS = (types.is_string, types.is_large_string, types.is_string_view)
_BYTES = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary, types.is_binary_view)
_STORED = (
    (UTC_US, (types.is_timestamp,)),
    (pa.date32(), (types.is_date,)),
    (pa.int64(), (types.is_time, types.is_duration, types.is_unsigned_integer)),
    (pa.float32(), (types.is_float16,)),
    (pa.string(), (*_TEXTS, types.is_null)),
    (pa.binary(), _BYTES),
)
_REMEDY = "Store it in another type, such as double or text, or leave it out."
_AS_THEY_ARE = (types.is_boolean, types.is_signed_integer, types.is_floating)


def plain(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values of `kind`, however they are encoded: by a dictionary, in runs, as an extension."""
    if isinstance(kind, pa.BaseExtensionType):
        return plain(kind.storage_type)
    return plain(kind.value_type) if types.is_dictionary(kind) or types.is_run_end_encoded(kind) else kind


def _is_list(kind: pa.DataType) -> bool:
    lists = (types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_list_view, types.is_large_list_view)
    return any(fits(kind) for fits in lists)


def is_text(kind: pa.DataType) -> bool:
    """Whether the values of `kind` are texts."""
    return any(fits(plain(kind)) for fits in _TEXTS)


def is_event_time(kind: pa.DataType) -> bool:
    """Whether a column of type `kind` may hold event times, as far as its type says."""
    return is_text(kind) or any(fits(plain(kind)) for fits in (types.is_integer, types.is_timestamp, types.is_date))


def spark_type(kind: pa.DataType) -> pa.DataType:
    """Return the Arrow type in which Spark holds the values of `kind`, all of them nullable.

    Timestamps are microseconds in UTC, and without a zone read as UTC. Times of day and durations are integers in
    their own unit, and integers without a sign are `int64`. A column that is empty throughout is text. Lists of any
    kind are lists.
    """
    kind = plain(kind)
    if types.is_struct(kind):
        return pa.struct([pa.field(one.name, spark_type(one.type)) for one in kind])
    if types.is_map(kind):
        return pa.map_(spark_type(kind.key_type), spark_type(kind.item_type))
    if _is_list(kind):
        return pa.list_(pa.field("element", spark_type(kind.value_type)))
    if types.is_decimal(kind):
        if kind.precision > MOST_DIGITS:
            raise TypeError(f"{kind}, because its decimals have at most {MOST_DIGITS} digits")
        return pa.decimal128(kind.precision, kind.scale)
    for stored, those in _STORED:
        if any(fits(kind) for fits in those):
            return stored
    if any(fits(kind) for fits in _AS_THEY_ARE):
        return kind
    raise TypeError(str(kind))


def spark_schema(schema: pa.Schema, path: str) -> pa.Schema:
    """Return the columns of the file `path` as Spark holds them, without metadata.

    A column without a name is called ``_c0`` in the first place, ``_c1`` in the second, and so on, as Spark's reader of
    CSV calls it. An index that pandas stored (``__index_level_0__``) is a column like any other, as it is for Spark.
    """
    names = [name or f"_c{place}" for place, name in enumerate(schema.names)]
    check_names(names, path)
    fields = []
    for name, kind in zip(names, schema.types, strict=True):
        try:
            fields.append(pa.field(name, spark_type(kind)))
        except TypeError as error:
            raise QueryError(
                f"The column {name!r} of {path!r} has type {kind}, and Spark cannot hold {error}. {_REMEDY}"
            ) from error
    return pa.schema(fields)


def check_names(names: Sequence[str], path: str) -> None:
    """Refuse names that are the same for Spark, which ignores case."""
    known: dict[str, str] = {}
    for name in names:
        if (other := known.get(name.lower())) is not None:
            raise QueryError(
                f"Spark ignores the case of names, so it takes the columns {other!r} and {name!r} of {path!r} for the "
                "same. Rename one of them, or leave it out."
            )
        known[name.lower()] = name


def as_spark(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return `column` in the type in which Spark holds it; times are cut to microseconds."""
    stored = spark_type(column.type)
    try:
        return pa.chunked_array([_converted(chunk) for chunk in column.chunks], stored)
    except pa.ArrowException as error:
        raise QueryError(
            f"The column {name!r} has type {column.type}, and Spark holds it as {stored}, "
            f"which not all of its values fit: {error}. {_REMEDY}"
        ) from error


def _decoded(values: pa.Array) -> pa.Array:
    if isinstance(values.type, pa.BaseExtensionType):
        return _decoded(values.storage)
    if types.is_dictionary(values.type):
        return _decoded(values.dictionary_decode())
    return _decoded(pc.run_end_decode(values)) if types.is_run_end_encoded(values.type) else values


def _converted(values: pa.Array) -> pa.Array:
    """Convert `values` and what is inside them, because Arrow's own cast lacks some types, and breaks list views."""
    values = _decoded(values)
    kind, stored, missing = values.type, spark_type(values.type), values.is_null()
    if types.is_struct(kind) and kind.num_fields:
        return pa.StructArray.from_arrays(map(_converted, values.flatten()), fields=list(stored), mask=missing)
    if types.is_map(kind):
        offsets = pa.array(values.offsets.to_numpy())
        return pa.MapArray.from_arrays(offsets, _converted(values.keys), _converted(values.items), stored, mask=missing)
    if _is_list(kind):
        offsets = np.cumsum(np.append(0, pc.list_value_length(values).fill_null(0)))
        inside = _converted(values.flatten())
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), inside, stored, mask=missing)
    if types.is_time32(kind):
        values = values.view(pa.int32())  # it casts them to no more bits
    return values.cast(options=pc.CastOptions(stored, allow_time_truncate=True))


_Words = npt.NDArray[np.uint32]

_SEED = 42
_MOST_DIGITS = 18  # of a decimal that Spark hashes as a whole number


def can_hash(kind: pa.DataType) -> bool:
    """Whether `spark_hash` knows the type, which is one that `spark_type` returns."""
    hashed = (*_AS_THEY_ARE, types.is_date32, types.is_timestamp, types.is_string)
    return any(fits(kind) for fits in hashed) or (types.is_decimal128(kind) and kind.precision <= _MOST_DIGITS)


def spark_hash(keys: pa.Array) -> npt.NDArray[np.int32]:
    """Return Spark's ``hash`` of `keys`, none missing, of a type that `can_hash`."""
    kind = keys.type
    if not len(keys):
        return np.empty(0, np.int32)
    if types.is_string(kind):
        return _of_texts(keys)
    if types.is_decimal128(kind):
        whole = np.frombuffer(keys.buffers()[1], np.int64).reshape(-1, 2)  # the low half of each, as all fit it
        return _of_whole(whole[keys.offset : keys.offset + len(keys), 0])
    if types.is_boolean(kind) or (types.is_signed_integer(kind) and kind.bit_width < 32):
        keys = keys.cast(pa.int32())
    if types.is_floating(kind):
        values = keys.to_numpy(zero_copy_only=False) + 0.0  # -0.0 is 0.0
        values[np.isnan(values)] = np.nan
        return _of_whole(values.view(f"i{values.itemsize}"))
    cast = keys.cast(pa.int64() if types.is_timestamp(kind) else pa.int32() if types.is_date32(kind) else keys.type)
    return _of_whole(cast.to_numpy(zero_copy_only=False))


def _of_whole(values: npt.NDArray[np.signedinteger]) -> npt.NDArray[np.int32]:
    """Hash whole numbers of one word, or of two, the low one first."""
    words = np.ascontiguousarray(values).view("<u4").reshape(len(values), -1)
    state = np.full(len(values), _SEED, np.uint32)
    for place in range(words.shape[1]):
        state = _mixed(state, words[:, place])
    return _finished(state, 4 * words.shape[1])


def _of_texts(keys: pa.StringArray) -> npt.NDArray[np.int32]:
    """Hash the bytes of texts, those of one length at once."""
    _, offsets, data = keys.buffers()
    ends = np.frombuffer(offsets, np.int32)[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)
    content = np.frombuffer(data or b"", np.uint8)
    starts, lengths = ends[:-1], np.diff(ends)
    order = np.argsort(lengths, kind="stable")
    hashed = np.empty(len(keys), np.int32)
    for chosen in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1):
        length = int(lengths[chosen[0]])
        whole = length - length % 4
        letters = content[starts[chosen][:, None] + np.arange(length)]
        state = np.full(len(chosen), _SEED, np.uint32)
        for place in range(0, whole, 4):
            state = _mixed(state, np.ascontiguousarray(letters[:, place : place + 4]).view("<u4")[:, 0])
        for place in range(whole, length):
            state = _mixed(state, letters[:, place].view(np.int8).astype(np.int32).view(np.uint32))
        hashed[chosen] = _finished(state, length)
    return hashed


def _mixed(state: _Words, word: _Words) -> _Words:
    word = word * np.uint32(0xCC9E2D51)
    word = (word << np.uint32(15) | word >> np.uint32(17)) * np.uint32(0x1B873593)
    state = state ^ word
    return (state << np.uint32(13) | state >> np.uint32(19)) * np.uint32(5) + np.uint32(0xE6546B64)


def _finished(state: _Words, length: int) -> npt.NDArray[np.int32]:
    state = state ^ np.uint32(length)
    state = (state ^ state >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    state = (state ^ state >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return (state ^ state >> np.uint32(16)).view(np.int32)

"""Spark's ``hash`` of a column of keys, in NumPy: where a shuffle puts each of them.

It is Murmur3 of 32 bits (Austin Appleby, x86) with the seed 42 and, as in Spark's ``Murmur3_x86_32``, with each byte
after the last whole word mixed in as a word of its own.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

_Words = npt.NDArray[np.uint32]

SEED = 42
_MOST_DIGITS = 18  # of a decimal that Spark hashes as a whole number


def can_hash(kind: pa.DataType) -> bool:
    """Whether `spark_hash` knows the type, which is one that `spark_type` returns."""
    numbers = (types.is_boolean, types.is_signed_integer, types.is_floating)
    hashed = (*numbers, types.is_date32, types.is_timestamp, types.is_string)
    return any(fits(kind) for fits in hashed) or (types.is_decimal128(kind) and kind.precision <= _MOST_DIGITS)


def spark_hash(keys: pa.Array, seed: int | npt.NDArray[np.int32] = SEED) -> npt.NDArray[np.int32]:
    """Return Spark's ``hash`` of each of `keys`, none of which is missing, of a type that `can_hash`.

    The `seed` is that of all, or of each: the hash of the column before it.
    """
    hashed = np.broadcast_to(np.asarray(seed).astype(np.int32).view(np.uint32), len(keys)).copy()
    kind = keys.type
    if not len(keys):
        return hashed.view(np.int32)
    if types.is_string(kind):
        return _of_texts(keys, hashed).view(np.int32)
    if types.is_decimal128(kind):
        whole = np.frombuffer(keys.buffers()[1], np.int64).reshape(-1, 2)  # the low half of each, as all fit it
        return _of_whole(whole[keys.offset : keys.offset + len(keys), 0], hashed).view(np.int32)
    if types.is_boolean(kind) or (types.is_signed_integer(kind) and kind.bit_width < 32):
        keys = keys.cast(pa.int32())
    if types.is_floating(kind):
        values = keys.to_numpy(zero_copy_only=False) + 0.0  # -0.0 is 0.0
        values[np.isnan(values)] = np.nan
        return _of_whole(values.view(f"i{values.itemsize}"), hashed).view(np.int32)
    plain = keys.cast(pa.int64() if types.is_timestamp(kind) else pa.int32() if types.is_date32(kind) else keys.type)
    return _of_whole(plain.to_numpy(zero_copy_only=False), hashed).view(np.int32)


def _of_whole(values: npt.NDArray[np.signedinteger], hashed: _Words) -> _Words:
    """Hash whole numbers of one word, or of two, the low one first."""
    words = np.ascontiguousarray(values).view("<u4").reshape(len(values), -1)
    for place in range(words.shape[1]):
        hashed = _mixed(hashed, words[:, place])
    return _finished(hashed, 4 * words.shape[1])


def _of_texts(keys: pa.StringArray, hashed: _Words) -> _Words:
    """Hash the bytes of texts, those of one length at once."""
    _, offsets, data = keys.buffers()
    ends = np.frombuffer(offsets, np.int32)[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)
    content = np.frombuffer(data or b"", np.uint8)
    starts, lengths = ends[:-1], np.diff(ends)
    order = np.argsort(lengths, kind="stable")
    for chosen in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1):
        if not len(chosen):
            continue
        length = int(lengths[chosen[0]])
        whole = length - length % 4
        letters = content[starts[chosen][:, None] + np.arange(length)]
        state = hashed[chosen]
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


def _finished(state: _Words, length: int) -> _Words:
    state = state ^ np.uint32(length)
    state = (state ^ state >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    state = (state ^ state >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return state ^ state >> np.uint32(16)

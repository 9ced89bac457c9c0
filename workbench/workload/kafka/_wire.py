"""A schema registry's wire format: the byte 0, four bytes with the schema's id, then the value itself."""

_MAGIC, _LENGTH = b"\0", 5


def split(value: bytes) -> tuple[int | None, bytes]:
    """Give the schema's id and the value behind it; None and the whole value where it does not begin like that."""
    if value[:1] != _MAGIC or len(value) < _LENGTH:
        return None, value
    return int.from_bytes(value[1:_LENGTH], "big"), value[_LENGTH:]


def json_in(value: bytes) -> tuple[int | None, bytes]:
    """Give what may be a JSON object, and the id before it: no JSON begins with the byte 0."""
    number, body = split(value)
    return (number, body) if number is not None and body.lstrip().startswith(b"{") else (None, value)

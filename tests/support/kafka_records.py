"""Records sent to a topic of a real broker, and values of Avro as its specification writes them."""

import struct

from workbench.testbed.spark.machine.broker import packed, reached
from workbench.workload.kafka import Topic


def sent_to(broker, name, records, partitions=1):
    """Send records, each the arguments of `packed`, to a topic that is made where it is missing."""
    topic = Topic.parse(broker.url(name))
    with reached(topic, broker.client) as there:
        there.made(partitions)
        with there.sending() as send:
            send(packed(at_ms, *record) for at_ms, *record in records)
    return topic


def long(value):
    """An int or a long: zigzag, seven bits a byte."""
    left, written = (value << 1) ^ (value >> 63), bytearray()
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*written, left])


def text(value):
    """Bytes, or a string."""
    body = value if isinstance(value, bytes) else value.encode()
    return long(len(body)) + body


def double(value):
    return struct.pack("<d", value)


def union(branch, written=b""):
    return long(branch) + written


def blocks(*items):
    """An array, or a map of pairs."""
    return (long(len(items)) + b"".join(items) if items else b"") + long(0)


def framed(number, body):
    """A value in a schema registry's wire format."""
    return b"\0" + number.to_bytes(4, "big") + body

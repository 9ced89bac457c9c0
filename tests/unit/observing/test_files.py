"""Event logs in every form that Spark leaves."""

import gzip
import json
import re
import struct

import pyarrow as pa
import pytest
from refusals import refusals
from written_logs import TRUE, a_day, application, events, written, zstd

from workbench.errors import WorkbenchError
from workbench.observing import read_log
from workbench.observing.events import read_events
from workbench.observing.files import log_files

TEXT = "".join(json.dumps(event) + "\n" for event in events(a_day(0.5 * TRUE, batches=80))).encode()


def lz4(text, block=65536):
    """As lz4-java's LZ4BlockOutputStream writes it; an empty block ends it."""
    codec, out = pa.Codec("lz4_raw"), b""
    for start in range(0, len(text), block):
        plain = text[start : start + block]
        packed = codec.compress(plain, asbytes=True)
        method, data = (0x20, packed) if len(packed) < len(plain) else (0x10, plain)
        out += struct.pack("<8sBiii", b"LZ4Block", method | 6, len(data), len(plain), 0) + data
    return out + struct.pack("<8sBiii", b"LZ4Block", 0x16, 0, 0, 0)


def snappy(text, block=32768):
    """As snappy-java's SnappyOutputStream writes it."""
    codec, out = pa.Codec("snappy"), struct.pack(">8sii", b"\x82SNAPPY\x00", 1, 1)
    for start in range(0, len(text), block):
        packed = codec.compress(text[start : start + block], asbytes=True)
        out += struct.pack(">i", len(packed)) + packed
    return out


PACKED = {"": bytes, ".zstd": zstd, ".lz4": lz4, ".snappy": snappy}


@pytest.mark.parametrize("suffix", PACKED)
def test_every_codec_gives_the_same_events(tmp_path, suffix):
    log = tmp_path / f"app-1{suffix}"
    log.write_bytes(PACKED[suffix](TEXT))
    assert len(read_log(log).batches) == 75


@pytest.mark.parametrize("name", ["driver.log", "events.zst"])
@pytest.mark.parametrize("packed", [gzip.compress, zstd])
def test_what_is_compressed_is_read_whatever_its_name(tmp_path, half, name, packed):
    log = tmp_path / name
    log.write_bytes(packed(half.read_bytes()))
    assert len(read_log(log).batches) == 115


def test_every_frame_of_a_log_is_read(tmp_path):
    """As where Spark flushes after every job and query."""
    log, data = tmp_path / "app-1.zstd", b"".join(map(zstd, TEXT.splitlines(keepends=True)))
    log.write_bytes(data)
    assert len(list(read_events(log))) == sum(b"TaskStart" not in line for line in TEXT.splitlines())
    log.write_bytes(data[:-20])
    assert len(list(read_events(log))) > 0


@pytest.mark.parametrize("suffix", PACKED)
@pytest.mark.parametrize("share", [0.6, 0.9])
def test_a_log_that_is_still_written_is_read_as_far_as_it_is_whole(tmp_path, suffix, share):
    data = PACKED[suffix](TEXT)
    log = tmp_path / f"app-1{suffix}.inprogress"
    log.write_bytes(data[: int(share * len(data))])
    whole = len(list(read_events(log)))
    assert 0 < whole < TEXT.count(b"\n")


def test_a_rolling_log_is_read_in_the_order_of_its_numbers(tmp_path):
    folder = tmp_path / "eventlog_v2_app-1"
    folder.mkdir()
    lines = TEXT.splitlines(keepends=True)
    third = len(lines) // 3
    parts = (lines[:third], lines[third : 2 * third], lines[2 * third :])
    for number, part in zip((9, 10, 11), parts, strict=True):
        (folder / f"events_{number}_app-1.zstd").write_bytes(zstd(b"".join(part)))
    (folder / "appstatus_app-1").touch()
    assert len(read_log(folder).batches) == 75
    assert len(read_log(tmp_path).batches) == 75  # the folder that holds it
    (folder / "events_10_app-1.compact").write_bytes(b"".join([*parts[0], *parts[1]]))
    assert [one.name for one in log_files(folder)] == ["events_10_app-1.compact", "events_11_app-1.zstd"]
    assert len(read_log(folder).batches) == 75


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("log", b"", "is empty. Wait until the application has written to it"),
        ("log", b"time,rate\n1,2\n", "holds no event of Spark, and no progress of a query: it begins with 'time,rate"),
        ("log", b"[1]\n", "holds no event of Spark, and no progress of a query: it begins with '[1]"),
        ("scraped", b'up{job="spark"} 1 1780000000\n' * 3, "holds no event of Spark"),
        ("log", '{"id": 1}\n'.encode("utf-16"), "is in UTF-16. Save it as UTF-8"),
        ("log.lzf", b"x", "is compressed with lzf, which the workbench does not read"),
        ("log.lz4", b"x" * 40, "cannot be read: it is not in lz4's blocks"),
        ("log.snappy", b"x" * 40, "cannot be read: it is not in snappy's blocks"),
    ],
)
def test_what_is_no_log_is_named(tmp_path, name, data, text):
    log = tmp_path / name
    log.write_bytes(data)
    with pytest.raises(WorkbenchError, match=re.escape(text)):
        read_log(log)


def test_a_damaged_file_is_named(tmp_path):
    packed = gzip.compress(TEXT)
    for at in range(len(packed) // 4, len(packed) // 2, len(packed) // 16):
        (tmp_path / "log").write_bytes(packed[:at] + bytes(40) + packed[at + 40 :])
        with pytest.raises(WorkbenchError, match="log cannot be read"):
            read_log(tmp_path / "log")


@pytest.mark.parametrize(
    ("log", "text"), [([], "and none has events"), ([*application(4, "yarn")], "of which app-1 is an event log")]
)
def test_a_folder_of_several_logs_is_refused(tmp_path, log, text):
    for name in ("app-1", "app-2"):
        written(tmp_path / name, log)
    with pytest.raises(WorkbenchError, match=rf"holds 2 entries \(app-1, app-2\), {text}"):
        read_log(tmp_path)


test_a_log_that_is_not_there_or_in_a_store_is_refused = refusals(
    log_files,
    ("/none", r"does not exist\. Give a file, or a folder of files"),
    *(
        (store, r"is in a store that is not read from here\. Copy it first")
        for store in ("hdfs://name/logs/app-1", "s3a://bucket/logs/app-1", "gs://bucket/app-1")
    ),
)

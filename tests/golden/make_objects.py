# SPDX-License-Identifier: Apache-2.0
"""Objects of the stream layer, built from docs/formats.md alone: tests/golden/objects. Run it only when a new version of the format is added."""
import pathlib
import struct

OUT = pathlib.Path(__file__).parent / "objects"
CLUSTER = bytes(range(0x10, 0x20))
CONTENT = bytes(range(0xA0, 0xB0))
WAL, SEAL, SET, STREAM = 1, 2, 3, 4


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def payload(size, seed):
    return bytes((seed + 7 * i) % 256 for i in range(size))


def make(kind, creator, subject, seq, acked_end, wal_committed, blocks):
    """blocks: (stream, offset_first, offset_end, ts_min, ts_max, epoch, batches, payload), sorted."""
    header = struct.pack("<8sHHI16sQQQ16sqQQ28x", b"MINKOBJ1", 1, kind, 128, CLUSTER, creator, subject, seq, CONTENT, 1700000000123, acked_end, wal_committed)
    out = header + struct.pack("<I", crc32c(header))
    index = b""
    for stream, first, end, ts_min, ts_max, epoch, batches, data in blocks:
        position = len(out)
        head = struct.pack("<QQQqqIIIII", stream, first, end, ts_min, ts_max, epoch, batches, len(data), crc32c(data), 0)
        out += head + struct.pack("<I", crc32c(head)) + data + bytes(-len(data) % 8)
        index += struct.pack("<QQQqqQIIII", stream, first, end, ts_min, ts_max, position, epoch, batches, len(data), crc32c(data))
    size = len(out) + len(index) + 64
    footer = struct.pack("<QQII16sQHHI", len(out), len(index), len(blocks), crc32c(index), CONTENT, size, 1, kind, 0)
    out += index + footer + struct.pack("<I4s", crc32c(footer), b"KNIM")
    assert len(out) == size
    return out


TWO_STREAMS = [
    (3, 100, 105, 1700000000000, 1700000000010, 2, 2, payload(192, 1)),
    (3, 105, 106, 1700000000011, 1700000000011, 2, 1, payload(65, 2)),  # padded
    (1 << 40, 0, 1 << 20, -5, 1 << 42, 1, 9, payload(128, 3)),
]
OUT.mkdir(exist_ok=True)
(OUT / "wal_v1.bin").write_bytes(make(WAL, 7, 7, 41, 40, 12, TWO_STREAMS))
(OUT / "seal_v1.bin").write_bytes(make(SEAL, 9, 7, 42, 0, 0, []))
(OUT / "set_v1.bin").write_bytes(make(SET, 7, 5, 0, 0, 0, TWO_STREAMS))
(OUT / "stream_v1.bin").write_bytes(make(STREAM, 7, 6, 0, 0, 0, TWO_STREAMS[:2]))

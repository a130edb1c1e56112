#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/arrow/*.arrows with pyarrow: what other implementations send. Run again only to add a file."""
import datetime, decimal, pathlib, struct
import pyarrow as pa

OUT = pathlib.Path(__file__).parent / "arrow"
UTC = datetime.timezone.utc
D = decimal.Decimal


def all_types():
    """Every type of the table model and those that are accepted and normalised; 5 rows, row 2 null."""
    ts = datetime.datetime(2024, 2, 29, 23, 59, 58, 123456)
    columns = {
        "b": (pa.bool_(), [True, False, None, True, False]),
        "i8": (pa.int8(), [-128, 127, None, 0, 1]),
        "i16": (pa.int16(), [-32768, 32767, None, 0, 1]),
        "i32": (pa.int32(), [-2**31, 2**31 - 1, None, 0, 1]),
        "i64": (pa.int64(), [-2**63, 2**63 - 1, None, 0, 1]),
        "u8": (pa.uint8(), [0, 255, None, 1, 2]),
        "u16": (pa.uint16(), [0, 65535, None, 1, 2]),
        "u32": (pa.uint32(), [0, 2**32 - 1, None, 1, 2]),
        "u64": (pa.uint64(), [0, 2**64 - 1, None, 1, 2]),
        "f32": (pa.float32(), [1.5, -0.25, None, float("inf"), 0.0]),
        "f64": (pa.float64(), [0.1, -1e300, None, 5e-324, 0.0]),
        "dec": (pa.decimal128(12, 2), [D("12.50"), D("-0.01"), None, D("9999999999.99"), D("0.00")]),
        "dec38": (pa.decimal128(38, 10), [D("1234567890123456789012345678.0123456789"), D("-1"), None, D(0), D(1)]),
        "s": (pa.string(), ["", "héllo wörld ✓ 😀", None, "plain", "x" * 100]),
        "bin": (pa.binary(), [b"", b"\x00\xff", None, b"abc", b"\x80" * 3]),
        "fb": (pa.binary(4), [b"abcd", b"\x00\x01\x02\xff", None, b"zzzz", b"    "]),
        "date": (pa.date32(), [datetime.date(1970, 1, 1), datetime.date(1582, 10, 15), None, datetime.date(9999, 12, 31), datetime.date(2024, 2, 29)]),
        "t32s": (pa.time32("s"), [datetime.time(0, 0, 0), datetime.time(23, 59, 59), None, datetime.time(12, 0, 1), datetime.time(1, 2, 3)]),
        "t32ms": (pa.time32("ms"), [datetime.time(0, 0, 0), datetime.time(23, 59, 59, 999000), None, datetime.time(12, 0, 1), datetime.time(1, 2, 3, 4000)]),
        "t64us": (pa.time64("us"), [datetime.time(0, 0, 0), datetime.time(23, 59, 59, 999999), None, datetime.time(12, 0, 1), datetime.time(1, 2, 3, 4)]),
        "t64ns": (pa.time64("ns"), [0, 86399999999999, None, 1, 2]),
        "tss": (pa.timestamp("s"), [0, -1, None, 253402300799, 1709251198]),
        "tsms": (pa.timestamp("ms"), [0, -1, None, 253402300799999, 1709251198123]),
        "tsus": (pa.timestamp("us"), [0, -1, None, ts, ts]),
        "tsns": (pa.timestamp("ns"), [0, -1, None, 1709251198123456789, 1]),
        "ltz": (pa.timestamp("us", tz="UTC"), [0, -1, None, ts.replace(tzinfo=UTC), 1]),
        "dur": (pa.duration("ms"), [0, -1, None, 86400000, 1]),
        "list": (pa.list_(pa.int32()), [[], [1, None, 3], None, [4], [5, 6, 7, 8]]),
        "flist": (pa.list_(pa.int16(), 2), [[1, 2], [None, 4], None, [5, 6], [7, 8]]),
        "map": (pa.map_(pa.string(), pa.int64()), [[], [("a", 1), ("ü", None)], None, [("z", 26)], [("k", 0)]]),
        "struct": (pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))]),
                   [{"x": 1, "y": ["p", "q"]}, {"x": None, "y": None}, None, {"x": 4, "y": []}, {"x": 5, "y": [None, "é"]}]),
        "deep": (pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.float64())))])),
                 [[{"m": [("k", [1.0, None])]}], [], None, [{"m": None}, None], [{"m": [("a", []), ("b", None)]}]]),
        "ls": (pa.large_string(), ["", "größe", None, "b", "c"]),
        "lb": (pa.large_binary(), [b"", b"\xff", None, b"b", b"c"]),
        "ll": (pa.large_list(pa.int32()), [[], [1], None, [2, 3], [None]]),
        "null": (pa.null(), [None] * 5),
        "f16": (pa.float16(), None),
    }
    halves = struct.pack("<5e", 1.5, -2, 0, 65504, 0.1)
    fields, arrays = [], []
    for name, (type_, values) in columns.items():
        fields.append(pa.field(name, type_))
        arrays.append(pa.Array.from_buffers(pa.float16(), 5, [None, pa.py_buffer(halves)]) if values is None else pa.array(values, type_))
    return pa.record_batch(arrays, schema=pa.schema(fields, metadata={"origin": "make_golden", "k": "é"}))


def write(name, schema, batches, **options):
    with pa.OSFile(str(OUT / name), "wb") as f, pa.ipc.new_stream(f, schema, options=pa.ipc.IpcWriteOptions(**options)) as w:
        for b in batches:
            w.write_batch(b)


def strings():
    return pa.record_batch({"s": pa.array([None if i % 7 == 3 else "row %d ✓" % i for i in range(200)]), "n": pa.array(range(200), pa.int64())})


def main():
    OUT.mkdir(exist_ok=True)
    types = all_types()
    write("types.arrows", types.schema, [types])
    write("types_sliced.arrows", types.schema, [types.slice(1, 3), types.slice(3, 2), types.slice(0, 0), types])
    write("types_zstd.arrows", types.schema, [types], compression="zstd")
    write("types_lz4.arrows", types.schema, [types.slice(0, 0), types], compression="lz4")
    write("strings_zstd.arrows", strings().schema, [strings(), strings().slice(13, 101)], compression="zstd")
    write("strings_lz4.arrows", strings().schema, [strings()], compression="lz4")
    write("empty.arrows", types.schema, [])
    write("no_columns.arrows", pa.schema([]), [])
    with pa.OSFile(str(OUT / "types_file.arrow"), "wb") as f, pa.ipc.new_file(f, types.schema) as w:
        w.write_batch(types)

    t = pa.dictionary(pa.int8(), pa.string())
    schema = pa.schema([("d", t), ("n", pa.int32())])

    def batch(values, indices):
        return pa.record_batch([pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), pa.array(values, pa.string())), pa.array(range(len(indices)), pa.int32())], schema=schema)

    write("dictionary.arrows", schema, [batch(["a", "b", None], [0, 1, None, 2, 1])])
    write("dictionary_replaced.arrows", schema, [batch(["a", "b"], [0, 1]), batch(["x", "y", "z"], [2, 0, None])])
    write("dictionary_delta.arrows", schema, [batch(["a", "b"], [0, 1]), batch(["a", "b", "c"], [2, 0, None]), batch(["a", "b", "c", "d"], [3, 2])], emit_dictionary_deltas=True)
    inner = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, None, 0], pa.uint16()), pa.array(["p", "qq"]))
    nested = pa.record_batch({
        "list": pa.ListArray.from_arrays(pa.array([0, 2, 2, 5], pa.int32()), inner),
        "struct": pa.StructArray.from_arrays([inner.slice(0, 3), pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.int64()), pa.array([[1, 2], [3]]))], ["s", "l"]),
    })
    write("dictionary_nested.arrows", nested.schema, [nested], compression="zstd")
    texts = ["", "a", "twelve bytes", None, "thirteen byte", "a long text that lies in a buffer ✓", "ünïcödé"] * 3
    views = pa.record_batch({"s": pa.array(texts, pa.string_view()), "b": pa.array([t and t.encode() for t in texts], pa.binary_view()), "n": pa.array(range(21)),
                             "l": pa.array([[t, "another long text in a list"] for t in texts], pa.list_(pa.string_view()))})
    write("views.arrows", views.schema, [views, views.slice(5, 0), views.slice(2, 4)])
    write("views_zstd.arrows", views.schema, [views], compression="zstd")
    listview = pa.record_batch({"v": pa.array([[1], [2, 3]], pa.list_view(pa.int32()))})
    write("list_view.arrows", listview.schema, [listview])
    union = pa.record_batch({"u": pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])])})
    write("union.arrows", union.schema, [union])


if __name__ == "__main__":
    main()

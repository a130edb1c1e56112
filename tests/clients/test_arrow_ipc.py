#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Mink writes as Arrow IPC, read by pyarrow: every golden stream through `arrow_ipc_test --recode`, equal values after it.

Usage: test_arrow_ipc.py BUILD_DIR"""
import pathlib, subprocess, sys, tempfile, unittest
import pyarrow as pa

GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "arrow"
BUILD = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else "build/release")


def plain(array):
    """Dictionaries and views replaced by their values, as Mink does."""
    t = array.type
    if t in (pa.string_view(), pa.binary_view()):
        return array.cast(pa.string() if t == pa.string_view() else pa.binary())
    if pa.types.is_dictionary(t):
        return plain(array.dictionary_decode())
    if pa.types.is_struct(t):
        children = [plain(array.field(i)) for i in range(t.num_fields)]
        return pa.StructArray.from_arrays(children, fields=[t.field(i).with_type(c.type) for i, c in enumerate(children)], mask=array.is_null())
    if pa.types.is_list(t):
        values = plain(array.values)
        return pa.ListArray.from_arrays(array.offsets, values, type=pa.list_(t.value_field.with_type(values.type)), mask=array.is_null() if array.null_count else None)
    return array


def read(path):
    with pa.OSFile(str(path), "rb") as f:
        reader = pa.ipc.open_file(f) if path.suffix == ".arrow" else pa.ipc.open_stream(f)
        return reader.schema, [reader.get_batch(i) for i in range(reader.num_record_batches)] if path.suffix == ".arrow" else list(reader)


class Recode(unittest.TestCase):
    def check(self, path, codec):
        with tempfile.NamedTemporaryFile(suffix=".arrows") as out:
            subprocess.run([BUILD / "arrow_ipc_test", "--recode", path, out.name] + codec, check=True)
            schema, expected = read(path)
            got_schema, got = read(pathlib.Path(out.name))
        self.assertEqual(len(got), len(expected))
        self.assertEqual(got_schema.metadata or {}, schema.metadata or {})
        self.assertEqual([(f.name, f.nullable) for f in got_schema], [(f.name, f.nullable) for f in schema])
        for a, b in zip(expected, got):
            b.validate(full=True)
            for name, x, y in zip(a.schema.names, a.columns, b.columns):
                x = plain(x)
                self.assertEqual(x.type, y.type, name)
                self.assertTrue(x.equals(y) or x.to_pylist() == y.to_pylist(), name)


for path in sorted(GOLDEN.iterdir()):
    if path.name in ("list_view.arrows", "union.arrows"):
        continue
    for codec in ([], ["zstd"], ["lz4"]):
        setattr(Recode, "_".join(["test", path.stem] + codec), lambda self, p=path, c=codec: self.check(p, c))

if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Dictionaries in, plain arrays out."""
import pyarrow as pa
import pyarrow.flight as fl

from conftest import acks, get, path


def send(client, name, batches, **write_options):
    options = fl.FlightCallOptions(write_options=pa.ipc.IpcWriteOptions(**write_options))
    w, reader = client.do_put(path(name), batches[0].schema, options)
    for b in batches:
        w.write_batch(b)
    w.done_writing()
    out = acks(reader)
    w.close()
    return out


def word_batches(dictionaries, indices):
    return [pa.record_batch({"w": pa.DictionaryArray.from_arrays(pa.array(i, pa.int8()), pa.array(d))}) for d, i in zip(dictionaries, indices)]


def test_replaced_dictionaries(client, table):
    """apache/arrow#45055, #45056: the second dictionary is used from its batch on."""
    name = table("w STRING")
    send(client, name, word_batches([["a", "b"], ["x", "y", "z"], ["q"]], [[0, 1, None], [2, 0], [0]]))
    assert get(client, name).column("w").to_pylist() == ["a", "b", None, "z", "x", "q"]


def test_delta_dictionaries(client, table):
    name = table("w STRING")
    send(client, name, word_batches([["a"], ["a", "b"], ["a", "b", "c"]], [[0], [1, 0], [2, 1]]), emit_dictionary_deltas=True)
    assert get(client, name).column("w").to_pylist() == ["a", "b", "a", "c", "b"]


def test_several_and_nested_dictionaries(client, table):
    """apache/arrow-rs#7058, #9555, #6644."""
    name = table("a STRING, b BIGINT, l ARRAY<STRING>, s ROW<x STRING>")
    enc = lambda values: pa.array(values).dictionary_encode()
    batch = pa.record_batch({
        "a": enc(["p", "q", "p"]),
        "b": pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.uint8()), pa.array([100, 200], pa.int64())),
        "l": pa.ListArray.from_arrays(pa.array([0, 2, 2, 3], pa.int32()), enc(["m", "n", "m"])),
        "s": pa.StructArray.from_arrays([enc(["u", "v", None])], ["x"]),
    })
    send(client, name, [batch])
    assert get(client, name).to_pydict() == {
        "a": ["p", "q", "p"], "b": [200, 100, 200], "l": [["m", "n"], [], ["m"]], "s": [{"x": "u"}, {"x": "v"}, {"x": None}]}


def test_announced_schema_is_plain(client, table):
    name = table("w STRING")
    send(client, name, word_batches([["a"]], [[0]]))
    assert client.do_get(fl.Ticket(b'{"table":"%s"}' % name.encode())).schema.field("w").type == pa.string()

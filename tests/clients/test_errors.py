# SPDX-License-Identifier: Apache-2.0
"""Bad input is an error with a text that says what would be right, and the connection goes on."""
import json
import threading
import time

import grpc
import pyarrow as pa
import pyarrow.flight as fl
import pytest

import wire
from conftest import action, command, fails, get, numbers, path, put, ticket


@pytest.fixture
def raw(server):
    r = wire.Raw(server.address)
    yield r
    r.close()


def put_fails(client, name, batch, kind, *parts, **fields):
    before = get(client, name).num_rows
    with fails(kind, *parts):
        put(client, name, batch, **fields)
    assert get(client, name).num_rows == before


def test_wrong_type_names_column_expected_and_given(client, table):
    name = table("id BIGINT, amount DOUBLE")
    put_fails(client, name, pa.record_batch({"id": pa.array(["x"]), "amount": [1.0]}), pa.ArrowInvalid, "[TYPE_MISMATCH]", "id", "int64", "string")


def test_missing_column_that_may_not_be_null(client, table):
    name = table("id BIGINT NOT NULL, s STRING")
    put_fails(client, name, pa.record_batch({"s": ["x"]}), pa.ArrowInvalid, "[COLUMN_MISSING]", "id")


def test_extra_column_names_the_near_one(client, table):
    name = table("id BIGINT, amount DOUBLE")
    put_fails(client, name, pa.record_batch({"id": pa.array([1], pa.int64()), "amonut": [1.0]}), pa.ArrowInvalid, "[COLUMN_NOT_FOUND]", "amonut", "did you mean amount")


def test_null_in_a_not_null_column_names_the_row(client, table):
    name = table("id BIGINT NOT NULL")
    put_fails(client, name, pa.record_batch({"id": pa.array([1, None], pa.int64())}), pa.ArrowInvalid, "[NOT_NULL]", "id", "1")


def test_bad_utf8_is_refused(client, table):
    name = table("s STRING")
    bad = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xc3\x28"))
    put_fails(client, name, pa.record_batch([bad], ["s"]), pa.ArrowInvalid, "UTF-8", "s")


def test_values_too_long(client, table):
    name = table("c CHAR(3)")
    put_fails(client, name, pa.record_batch({"c": ["abcd"]}), pa.ArrowInvalid, "[VALUE_TOO_LONG]", "c")


def test_unknown_table_names_the_near_one(client, table):
    action(client, "create-table", ddl="CREATE TABLE IF NOT EXISTS near.orders (x INT)")
    want = "did you mean near.orders?"
    with fails(KeyError, "[TABLE_NOT_FOUND]", "near.order", want):
        get(client, "near.order")
    with fails(KeyError, "[TABLE_NOT_FOUND]", want):
        client.get_flight_info(path("near.order"))
    with fails(KeyError, "[TABLE_NOT_FOUND]", want):
        put(client, "near.order", numbers(0, 1))


def test_offset_out_of_range_names_start_and_end(client, table):
    name = table("id BIGINT, s STRING")
    put(client, name, numbers(0, 10))
    with fails(pa.ArrowInvalid, "[OFFSET_OUT_OF_RANGE]", "10", "99"):
        get(client, name, bucket=0, **{"from": 99})


@pytest.mark.parametrize("fields, parts", [
    ({"colums": ["id"]}, ["UNKNOWN_KEY", "columns"]),
    ({"columns": "id"}, ["BAD_VALUE", "columns"]),
    ({"columns": ["ID"]}, ["COLUMN_NOT_FOUND", "did you mean id"]),
    ({"filter": "id >"}, ["BAD_FILTER"]),
    ({"filter": "idd > 1"}, ["COLUMN_NOT_FOUND", "id"]),
    ({"limit": -1}, ["limit"]),
    ({"from": "noon"}, ["BAD_VALUE", "earliest"]),
    ({"until": "then"}, ["BAD_VALUE", "never"]),
    ({"compression": "zst"}, ["BAD_VALUE", "zstd"]),
    ({"meta": ["_log_offsett"]}, ["UNKNOWN_META", "_log_offset"]),
    ({"batch_bytes": 1}, ["batch_bytes"]),
    ({"bucket": "x"}, ["bucket"]),
    ({"exp": 1}, ["TICKET_EXPIRED"]),
])
def test_bad_tickets(client, table, fields, parts):
    name = table("id BIGINT, s STRING")
    with fails(pa.ArrowInvalid, *parts):
        get(client, name, **fields)


def test_what_a_log_table_does_not_have(client, table):
    name = table("id BIGINT, s STRING")
    for bad in ("changelog", "binlog"):
        with fails(pa.ArrowNotImplementedError, "NO_CHANGELOG", "_change_type"):
            get(client, f"{name}${bad}")
    with fails(pa.ArrowNotImplementedError, "NO_SNAPSHOT"):
        get(client, name, snapshot=True, bucket=0)
    with fails(pa.ArrowNotImplementedError, "NO_LAKE"):
        get(client, name, lake="only")
    for mode in ("upsert", "delete", "partial"):
        put_fails(client, name, numbers(0, 1), pa.ArrowInvalid, "APPEND_ONLY", mode, mode=mode)
    with fails(pa.ArrowInvalid, "BUCKET_OUT_OF_RANGE", "0 to 0"):
        get(client, name, bucket=7)
    with fails(pa.ArrowInvalid, "BUCKET_OUT_OF_RANGE"):
        put(client, name, numbers(0, 1), bucket=7)
    with fails(pa.ArrowInvalid, "BAD_DESCRIPTOR"):
        client.get_flight_info(fl.FlightDescriptor.for_path("only-one"))
    with fails(pa.ArrowNotImplementedError, "NO_FLIGHT_SQL"):
        client.get_flight_info(fl.FlightDescriptor.for_command(b"\x0a\x40type.googleapis.com/arrow.flight.protocol.sql.CommandStatementQuery"))


def test_unknown_option_names_the_near_one(client):
    with fails(pa.ArrowInvalid, "bucket.nun", "bucket.num"):
        action(client, "create-table", ddl="CREATE TABLE bad.t (x INT) WITH ('bucket.nun'='4')")


def test_a_lake_that_is_not_there_is_not_promised(client, table):
    with fails(pa.ArrowNotImplementedError, "NO_LAKE", "table.datalake.enabled"):
        action(client, "create-table", ddl="CREATE TABLE bad.t (x INT) WITH ('table.datalake.enabled'='true')")
    name = table("id BIGINT, s STRING")
    with fails(pa.ArrowNotImplementedError, "NO_LAKE", "table.datalake.enabled"):
        action(client, "alter-table", ddl=f"ALTER TABLE {name} SET ('table.datalake.enabled'='true')")


def test_bad_ddl_points_at_the_place(client):
    with fails(pa.ArrowInvalid, "[BAD_DDL]", "line 1"):
        action(client, "create-table", ddl="CREATE TABLE bad.t (x INTEGERR)")


def test_the_error_object_in_the_trailers(raw, table):
    name = table("id BIGINT")
    schema = pa.schema([("id", pa.string())])
    header, _ = wire.split_ipc(schema.serialize().to_pybytes())
    with pytest.raises(grpc.RpcError) as raised:
        raw.call("DoPut", [wire.flight_data(wire.path_descriptor(name), header)])
    e = raised.value
    assert e.code() == grpc.StatusCode.INVALID_ARGUMENT and e.details().startswith("[TYPE_MISMATCH] ")
    trailers = dict(e.trailing_metadata())
    told = json.loads(trailers["mink-error"])
    assert told["code"] == "TYPE_MISMATCH" and told["column"] == "id" and told["retry"] is False and told["expected"] and told["actual"]
    assert b"mink" in trailers["grpc-status-details-bin"]


def messages_of(table_name, batch):
    schema, _ = wire.split_ipc(batch.schema.serialize().to_pybytes())
    header, body = wire.split_ipc(batch.serialize().to_pybytes())
    return wire.flight_data(wire.path_descriptor(table_name), schema), header, body


def refused(raw, messages, *parts):
    with pytest.raises(grpc.RpcError) as raised:
        raw.call("DoPut", messages)
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT, raised.value
    for part in parts:
        assert part in raised.value.details()
    return json.loads(dict(raised.value.trailing_metadata())["mink-error"])


def test_corrupt_flatbuffers_of_every_kind(raw, client, table):
    name = table("id BIGINT, s STRING")
    first, header, body = messages_of(name, numbers(0, 10))
    for i in range(0, len(header), 3):
        broken = header[:i] + bytes([header[i] ^ 0xFF]) + header[i + 1:]
        try:
            raw.call("DoPut", [first, wire.flight_data(header=broken, body=body)])
        except grpc.RpcError as e:
            assert e.code() == grpc.StatusCode.INVALID_ARGUMENT, (i, e)
    told = refused(raw, [first, wire.flight_data(header=b"\x10\0\0\0nonsense", body=body)], "batch 0")
    assert told["batch"] == 0 and told["acked"] == -1
    refused(raw, [wire.flight_data(wire.path_descriptor(name), b"garbage!")])
    put(client, name, numbers(0, 1))  # the server goes on


def test_truncated_bodies(raw, table):
    name = table("id BIGINT, s STRING")
    first, header, body = messages_of(name, numbers(0, 10))
    told = refused(raw, [first, wire.flight_data(header=header, body=body), wire.flight_data(header=header, body=body[:-8])], "[TRUNCATED_BODY]")
    assert told["batch"] == 1 and told["acked"] in (-1, 0)  # the first batch may still be on its way to the disk
    refused(raw, [first, wire.flight_data(header=header)], "[TRUNCATED_BODY]")
    whole = wire.flight_data(header=header, body=body)
    refused(raw, [first, whole[:-1]], "data_body is truncated")


def test_odd_orders(raw, client, table):
    name = table("id BIGINT, s STRING")
    first, header, body = messages_of(name, numbers(0, 10))
    batch = wire.flight_data(header=header, body=body)
    descriptor = wire.flight_data(wire.path_descriptor(name))
    schema = wire.flight_data(header=wire.split_ipc(numbers(0, 1).schema.serialize().to_pybytes())[0])
    refused(raw, [], "[NO_DESCRIPTOR]")
    refused(raw, [batch], "[NO_DESCRIPTOR]")
    refused(raw, [descriptor, batch], "[NO_SCHEMA]")
    refused(raw, [first, schema], "[SECOND_SCHEMA]")
    refused(raw, [wire.flight_data(b"\x08\x02" + wire.field(2, b'{"table":"%s","moed":"append"}' % name.encode()))], "did you mean")
    # A descriptor alone first, metadata anywhere, unknown fields, a later descriptor: all fine.
    answers = raw.call("DoPut", [descriptor, schema, wire.flight_data(metadata=b""), batch + wire.field(77, b"future"), wire.flight_data(b"\x08\x01", header, None, body)])
    assert b'"batch":1' in answers[-1]
    assert get(client, name).num_rows == 20


def test_a_null_only_and_a_zero_column_batch(client, table):
    """A message is told by its header, not by its body (spiceai/spiceai#14212)."""
    name = table("id BIGINT, s STRING")
    put(client, name, pa.record_batch({"s": pa.nulls(5)}))
    assert get(client, name).to_pydict() == {"id": [None] * 5, "s": [None] * 5}


def test_an_error_reaches_a_client_that_is_writing(client, table):
    """apache/arrow#34402: not only at close."""
    name = table("id BIGINT NOT NULL, s STRING")
    good, bad = numbers(0, 10), pa.record_batch({"id": pa.array([None], pa.int64()), "s": ["x"]})
    w, _ = client.do_put(path(name), good.schema)
    w.write_batch(bad.cast(good.schema) if hasattr(bad, "cast") else bad)
    begun = time.monotonic()
    with fails(pa.ArrowInvalid, "[NOT_NULL]"):
        while time.monotonic() - begun < 20:
            w.write_batch(good)
    assert time.monotonic() - begun < 2
    try:
        w.close()
    except pa.ArrowException:
        pass


def test_an_error_reaches_a_writer_that_never_read_its_acks(client, table):
    name = table("id BIGINT, s STRING")
    w, _ = client.do_put(path(name), numbers(0, 1).schema)
    for _ in range(3000):
        w.write_batch(numbers(0, 1))
    bad = pa.record_batch([pa.array([1], pa.int64()), pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff"))], ["id", "s"])
    w.write_batch(bad)
    with fails(pa.ArrowInvalid, "UTF-8"):
        for _ in range(1000000):
            w.write_batch(numbers(0, 1))
    try:
        w.close()
    except pa.ArrowException:
        pass


def test_odd_protobuf_and_methods(raw):
    for method in ("DoGet", "GetFlightInfo", "DoAction", "ListFlights", "GetSchema", "PollFlightInfo"):
        with pytest.raises(grpc.RpcError) as raised:
            raw.call(method, [b"\x0a\xff\xff\xff\xff\x0f"])
        assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT, method
    with pytest.raises(grpc.RpcError) as raised:
        raw.call("DoNothing", [b""])
    assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED and "DoNothing" in raised.value.details()
    with pytest.raises(grpc.RpcError) as raised:
        raw.call("DoGet", [])
    assert raised.value.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.INTERNAL)


def test_port_in_use(server, tmp_path):
    import subprocess
    from conftest import BINARY
    port = server.address.rsplit(":", 1)[1]
    done = subprocess.run([BINARY, "dev", "--dir", str(tmp_path / "d"), "--flight-port", port, "--http-port", "0"], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "Address already in use" in done.stderr and port in done.stderr

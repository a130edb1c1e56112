# SPDX-License-Identifier: Apache-2.0
import datetime
import decimal
import json

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from conftest import Server, acks, action, chunks, command, fails, get, numbers, path, put, ticket


def test_lines_of_the_readme(client):
    list(client.do_action(("create-table", b'{"ddl":"CREATE TABLE readme.orders (id BIGINT, amount DOUBLE)"}')))
    batch = pa.record_batch({"id": pa.array([1, 2, 3], pa.int64()), "amount": pa.array([9.5, 20.0, None], pa.float64())})
    w, reader = client.do_put(fl.FlightDescriptor.for_path("readme", "orders"), batch.schema)
    w.write_batch(batch)
    assert json.loads(reader.read().to_pybytes()) == {
        "batch": 0, "rows": 3, "written": [{"partition": None, "bucket": 0, "first": 0, "last": 2}], "duplicate": False}
    w.close()
    got = client.do_get(fl.Ticket(b'{"table":"readme.orders","filter":"amount > 10"}')).read_all()
    assert got.to_pydict() == {"id": [2], "amount": [20.0]}


ALL_TYPES = [
    ("BOOLEAN", pa.bool_(), [True, False, None]),
    ("TINYINT", pa.int8(), [-128, 127, None]),
    ("SMALLINT", pa.int16(), [-32768, 32767, None]),
    ("INT", pa.int32(), [-2**31, 2**31 - 1, None]),
    ("BIGINT", pa.int64(), [-2**63, 2**63 - 1, None]),
    ("FLOAT", pa.float32(), [1.5, float("inf"), None]),
    ("DOUBLE", pa.float64(), [1e308, -0.0, None]),
    ("DECIMAL(12,2)", pa.decimal128(12, 2), [decimal.Decimal("1234567890.12"), decimal.Decimal("-0.01"), None]),
    ("CHAR(3)", pa.string(), ["abc", "äöü", None]),
    ("STRING", pa.string(), ["", "naïve €", None]),
    ("BINARY(4)", pa.binary(4), [b"\0\1\2\3", b"abcd", None]),
    ("BYTES", pa.binary(), [b"", b"\xff\xfe", None]),
    ("DATE", pa.date32(), [datetime.date(1969, 12, 31), datetime.date(2026, 1, 2), None]),
    ("TIME(0)", pa.time32("s"), [datetime.time(23, 59, 59), datetime.time(0), None]),
    ("TIME(6)", pa.time64("us"), [datetime.time(1, 2, 3, 456789), datetime.time(0), None]),
    ("TIMESTAMP", pa.timestamp("us"), [datetime.datetime(2026, 1, 2, 3, 4, 5, 6), datetime.datetime(1960, 1, 1), None]),
    ("TIMESTAMP(3)", pa.timestamp("ms"), [datetime.datetime(2026, 1, 2, 3, 4, 5), None, None]),
    ("TIMESTAMP_LTZ", pa.timestamp("us", "UTC"), [datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc), None, None]),
    ("ARRAY<INT>", pa.list_(pa.int32()), [[1, None, 3], [], None]),
    ("MAP<STRING, BIGINT>", pa.map_(pa.string(), pa.int64()), [[("a", 1), ("b", None)], [], None]),
    ("ROW<a INT, b ARRAY<STRING>>", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))]), [{"a": 1, "b": ["x", None]}, {"a": None, "b": None}, None]),
]


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
def test_every_type_comes_back_equal(client, table, compression):
    name = table(", ".join(f"c{i} {t}" for i, (t, _, _) in enumerate(ALL_TYPES)))
    columns = {f"c{i}": pa.array(values, t) for i, (_, t, values) in enumerate(ALL_TYPES)}
    batch = pa.record_batch(columns)
    put(client, name, batch)
    got = get(client, name, compression=compression)
    assert got.to_pydict() == batch.to_pydict()
    assert [f.type for f in got.schema] == [f.type for f in batch.schema]


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_compressed_batches_are_taken_as_sent(client, table, codec):
    name = table("id BIGINT, s STRING")
    batch = numbers(0, 5000)
    options = fl.FlightCallOptions(write_options=pa.ipc.IpcWriteOptions(compression=codec))
    w, reader = client.do_put(path(name), batch.schema, options)
    w.write_batch(batch)
    w.done_writing()
    assert acks(reader)[-1]["rows"] == 5000
    w.close()
    assert get(client, name).to_pydict() == batch.to_pydict()
    assert get(client, name, columns=["s"], compression=codec).column("s").to_pylist() == batch.column("s").to_pylist()


def test_columns_by_name_casts_and_missing_ones(client, table):
    name = table("id BIGINT, amount DECIMAL(10,2), note STRING, ts TIMESTAMP(6)")
    batch = pa.record_batch({
        "ts": pa.array([datetime.datetime(2026, 1, 1)], pa.timestamp("ms")),
        "id": pa.array([7], pa.int32()),
        "note": pa.array(["x"], pa.large_string()),
    })
    put(client, name, batch)
    assert get(client, name).to_pydict() == {"id": [7], "amount": [None], "note": ["x"], "ts": [datetime.datetime(2026, 1, 1)]}


def test_views_and_dictionaries_are_normalised(client, table):
    name = table("a STRING, b STRING")
    batch = pa.record_batch({"a": pa.array(["x", None, "y"]).dictionary_encode(), "b": pa.array(["p", "q", "r"], pa.large_string())})
    put(client, name, batch)
    assert get(client, name).to_pydict() == {"a": ["x", None, "y"], "b": ["p", "q", "r"]}


def test_acknowledgements_are_cumulative_and_in_order(client, table):
    name = table("id BIGINT, s STRING")
    got = put(client, name, *[numbers(i * 10, 10) for i in range(500)])
    next_batch = rows = 0
    for a in got:
        assert a.get("from", a["batch"]) == next_batch
        next_batch = a["batch"] + 1
        rows += a["rows"]
        assert a["written"][0]["last"] - a["written"][0]["first"] + 1 == a["rows"]
    assert next_batch == 500 and rows == 5000
    assert get(client, name).column("id").to_pylist() == list(range(5000))


def test_one_batch_one_ack_a_thousand_times(tmp_path):
    """Reading acknowledgements while writing never hangs (apache/arrow#34415)."""
    server = Server(tmp_path, environment={"MINK_WAL_PUT_RATE": "-1"}).start()
    with server.client() as c:
        action(c, "create-table", ddl="CREATE TABLE shop.t (id BIGINT, s STRING)")
        w, reader = c.do_put(path("shop.t"), numbers(0, 1).schema)
        for i in range(1000):
            w.write_batch(numbers(i, 1))
            assert json.loads(reader.read().to_pybytes())["batch"] == i
        w.close()
        assert get(c, "shop.t").num_rows == 1000
    assert server.stop() == 0


def test_stopping_the_server_acknowledges_what_it_took(own_server):
    with own_server.client() as c:
        action(c, "create-table", ddl="CREATE TABLE shop.t (id BIGINT, s STRING)")
        w, reader = c.do_put(path("shop.t"), numbers(0, 1).schema)
        w.write_batch(numbers(0, 5))
        assert json.loads(reader.read().to_pybytes())["rows"] == 5
        assert own_server.stop() == 0
        with fails(fl.FlightUnavailableError, "NODE_DRAINING"):
            while True:
                w.write_batch(numbers(5, 1))
        try:
            w.close()
        except pa.ArrowException:
            pass


def test_twenty_thousand_batches_whose_acks_nobody_reads(client, table):
    name = table("id BIGINT, s STRING")
    batch = numbers(0, 1)
    w, reader = client.do_put(path(name), batch.schema)
    for _ in range(20000):
        w.write_batch(batch)
    w.done_writing()
    assert sum(a["rows"] for a in acks(reader)) == 20000
    w.close()
    assert sum(len(d) for d, _ in chunks(client, name)) == 20000


def test_a_batch_without_rows_is_acknowledged(client, table):
    name = table("id BIGINT, s STRING")
    got = put(client, name, numbers(0, 0), numbers(0, 3))
    assert sum(a["rows"] for a in got) == 3 and got[-1]["batch"] == 1
    assert get(client, name).num_rows == 3


def test_reads_announce_their_schema_also_without_rows(client, table):
    name = table("id BIGINT, s STRING NOT NULL")
    got = get(client, name)
    assert got.num_rows == 0 and got.schema.names == ["id", "s"] and not got.schema.field("s").nullable


def test_projection_filter_limit_and_meta(client, table):
    name = table("id BIGINT, s STRING, v DOUBLE")
    batch = pa.record_batch({"id": pa.array(range(1000), pa.int64()), "s": pa.array([f"k{i % 7}" for i in range(1000)]), "v": pa.array([i / 2 for i in range(1000)])})
    put(client, name, batch)
    t = pa.table(batch)
    got = get(client, name, columns=["v", "id"], filter="s = 'k3' AND id >= 500")
    want = [i for i in range(500, 1000) if i % 7 == 3]
    assert got.schema.names == ["v", "id"] and got.column("id").to_pylist() == want and got.column("v").to_pylist() == [i / 2 for i in want]
    assert get(client, name, limit=17).to_pydict() == t.slice(0, 17).to_pydict()
    assert get(client, name, limit=3, filter="id > 10").column("id").to_pylist() == [11, 12, 13]
    got = get(client, name, columns=["id"], filter="id IN (5, 900)", meta=["_log_offset", "_bucket", "_commit_timestamp", "_change_type"])
    assert got.schema.names == ["id", "_log_offset", "_bucket", "_commit_timestamp", "_change_type"]
    assert got.schema.field("_log_offset").type == pa.int64() and got.schema.field("_bucket").type == pa.int32()
    assert got.schema.field("_commit_timestamp").type == pa.timestamp("ms", "UTC")
    assert got.column("_log_offset").to_pylist() == [5, 900] and got.column("_bucket").to_pylist() == [0, 0]


def test_offsets_bound_a_read_and_metadata_resumes_it(client, table):
    name = table("id BIGINT, s STRING")
    put(client, name, numbers(0, 100), numbers(100, 100))
    assert get(client, name, bucket=0, **{"from": 50, "until": 150}).column("id").to_pylist() == list(range(50, 150))
    got = chunks(client, name, batch_bytes=1024, **{"from": 30})
    assert got[-1][1] == {"done": True, "next": {"0": 200}} and len(got[-1][0]) == 0
    at = 30
    for data, meta in got[:-1]:
        at += len(data)
        assert meta == {"bucket": 0, "next": at}
    assert at == 200
    assert get(client, name, **{"from": "latest"}).num_rows == 0


def test_reading_from_a_time(client, table):
    name = table("id BIGINT, s STRING")
    put(client, name, numbers(0, 10))
    first = get(client, name, meta=["_commit_timestamp"]).column("_commit_timestamp")[0].as_py()
    ms = int(first.timestamp() * 1000)
    assert get(client, name, **{"from": f"ts:{ms}"}).num_rows == 10
    assert get(client, name, **{"from": f"ts:{ms + 3600000}"}).num_rows == 0


def test_messages_stay_below_what_clients_take(server, client, table):
    name = table("id BIGINT, s STRING")
    batch = pa.record_batch({"id": pa.array(range(200000), pa.int64()), "s": pa.array(["x" * 60] * 200000)})
    put(client, name, batch)
    with server.client(generic_options=[("grpc.max_receive_message_length", 4 << 20)]) as small:
        got = small.do_get(ticket(name)).read_all()
    assert got.equals(pa.table(batch))
    sizes = [d.nbytes for d, _ in chunks(client, name, batch_bytes=100000)]
    assert max(sizes) < 110000 and sum(sizes) > 200000 * 60


def test_several_buckets_and_their_info(client, table):
    name = table("id BIGINT, s STRING", "'bucket.num'='4', 'bucket.key'='id'")
    got = put(client, name, numbers(0, 1000))
    assert sum(w["last"] - w["first"] + 1 for w in got[-1]["written"]) == 1000
    assert {w["bucket"] for w in got[-1]["written"]} == {0, 1, 2, 3}
    info = client.get_flight_info(path(name))
    assert len(info.endpoints) == 4 and info.total_records == 1000 and info.schema.names == ["id", "s"]
    put(client, name, numbers(1000, 10))  # after the cut
    ids = sorted(i for e in info.endpoints for i in client.do_get(e.ticket).read_all().column("id").to_pylist())
    assert ids == list(range(1000))
    one = get(client, name, bucket=2, meta=["_bucket"])
    assert set(one.column("_bucket").to_pylist()) == {2}
    assert get(client, name).num_rows == 1010
    put(client, name, numbers(5000, 5), bucket=1)
    assert 5004 in get(client, name, bucket=1).column("id").to_pylist()


def test_partitions_appear_with_their_rows(client, table):
    name = table("id BIGINT, region STRING", partition_by="region")
    batch = pa.record_batch({"id": pa.array([1, 2, 3], pa.int64()), "region": pa.array(["EU", "US", "EU"])})
    got = put(client, name, batch)
    assert {(w["partition"], w["last"] - w["first"] + 1) for w in got[-1]["written"]} == {("EU", 2), ("US", 1)}
    assert get(client, name, partition="EU").column("id").to_pylist() == [1, 3]
    assert sorted(get(client, name, meta=["_partition"]).column("_partition").to_pylist()) == ["EU", "EU", "US"]
    assert [p["partition"] for p in action(client, "list-partitions", table=name)] == ["EU", "US"]
    done = chunks(client, name)[-1][1]
    assert done == {"done": True, "next": {"EU": {"0": 2}, "US": {"0": 1}}}


def test_schema_info_and_stream_agree(client, table):
    name = table("id BIGINT NOT NULL, s STRING, d DECIMAL(5,1), l ARRAY<INT>")
    stream = client.do_get(ticket(name)).schema
    assert client.get_schema(path(name)).schema == stream == client.get_flight_info(path(name)).schema
    shaped = command(table=name, columns=["d"], meta=["_log_offset"])
    assert client.get_schema(shaped).schema.names == ["d", "_log_offset"]
    assert client.get_flight_info(shaped).schema.names == ["d", "_log_offset"]


def test_flights_are_listed_by_database_and_prefix(client, table):
    action(client, "create-table", ddl="CREATE TABLE listing.a1 (x INT)")
    action(client, "create-table", ddl="CREATE TABLE listing.a2 (x INT)")
    action(client, "create-table", ddl="CREATE TABLE listing.b1 (x INT)")
    names = lambda criteria: [f.descriptor.path for f in client.list_flights(criteria)]
    assert names(b"listing") == [[b"listing", b"a1"], [b"listing", b"a2"], [b"listing", b"b1"]]
    assert names(b"listing.a*") == [[b"listing", b"a1"], [b"listing", b"a2"]]
    assert len(names(b"")) >= 3 and names(b"nothing") == []


def test_idempotent_writer(client, table):
    name = table("id BIGINT, s STRING")
    writer = action(client, "init-writer")[0]["writer"]

    def send(*sequences):
        w, reader = client.do_put(command(table=name, writer=writer, bucket=0), numbers(0, 1).schema)
        for n in sequences:
            w.write_with_metadata(numbers(n * 10, 10), json.dumps({"seq": n}).encode())
        w.done_writing()
        try:
            return acks(reader)
        finally:
            w.close()

    first = send(0, 1)
    assert first[-1]["written"][-1]["last"] == 19
    again = send(1)
    assert again == [{"batch": 0, "rows": 10, "written": [{"partition": None, "bucket": 0, "first": 10, "last": 19}], "duplicate": True}]
    with fails(pa.ArrowInvalid, "OUT_OF_ORDER_SEQUENCE", "2"):
        send(5)
    assert get(client, name).column("id").to_pylist() == list(range(20))


def test_everything_is_there_after_a_restart_and_after_a_kill(own_server):
    c = own_server.client()
    action(c, "create-table", ddl="CREATE TABLE shop.t (id BIGINT, s STRING)")
    put(c, "shop.t", numbers(0, 1000))
    c.close()
    own_server.kill()
    own_server.start()
    c = own_server.client()
    assert get(c, "shop.t").column("id").to_pylist() == list(range(1000))
    put(c, "shop.t", numbers(1000, 1))
    c.close()
    assert own_server.stop() == 0
    own_server.start()
    c = own_server.client()
    assert get(c, "shop.t").column("id").to_pylist() == list(range(1001))
    c.close()

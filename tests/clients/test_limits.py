# SPDX-License-Identifier: Apache-2.0
import json

import grpc
import pyarrow as pa
import pyarrow.flight as fl
import pytest

import wire
from conftest import action, chunks, fails, get, numbers, path, put, ticket


def test_an_oversize_batch_is_refused_and_the_connection_goes_on(client, table):
    name = table("s STRING")
    big = pa.record_batch({"s": ["x" * (66 << 20)]})
    with fails(pa.ArrowException):
        put(client, name, big)
    small = pa.record_batch({"s": ["x"]})
    put(client, name, small)
    assert get(client, name).num_rows == 1


def test_a_batch_just_over_the_limit_says_the_limit(server, client, table):
    name = table("s STRING")
    body = (64 << 20) + 8
    big = pa.record_batch({"s": ["x" * (body - 64)]})
    with fails(pa.ArrowInvalid, "[BATCH_TOO_LARGE]", "67108864"):
        put(client, name, big)


def test_a_row_larger_than_the_message_size_still_goes_out(client, table):
    name = table("id BIGINT, s STRING")
    batch = pa.record_batch({"id": pa.array([1, 2, 3], pa.int64()), "s": ["a", "y" * (5 << 20), "b"]})
    put(client, name, batch)
    assert get(client, name).to_pydict() == batch.to_pydict()


def test_many_streams_on_one_connection(client, table):
    name = table("id BIGINT, s STRING")
    put(client, name, numbers(0, 10))
    readers = [client.do_get(ticket(name, until="never")) for _ in range(300)]
    for r in readers:
        assert len(r.read_chunk().data) == 10
    for r in readers:
        r.cancel()


def test_large_headers_are_taken(server, client, table):
    name = table("id BIGINT, s STRING")
    options = fl.FlightCallOptions(headers=[(b"x-parameter-%d" % i, b"v" * 4000) for i in range(10)])
    assert client.do_get(ticket(name), options).read_all().num_rows == 0


def test_json_that_is_too_large_is_refused(client):
    with fails(pa.ArrowInvalid, "TOO_LARGE"):
        client.do_get(fl.Ticket(b'{"table":"' + b"x" * (1 << 20) + b'"}')).read_all()


def test_pings_of_an_idle_client_are_answered(server, client, table):
    """A client that pings while its follow is silent is not sent away (sgl-project/sglang#19986)."""
    name = table("id BIGINT, s STRING")
    options = [("grpc.keepalive_time_ms", 10000), ("grpc.keepalive_timeout_ms", 5000), ("grpc.keepalive_permit_without_calls", 1), ("grpc.http2.max_pings_without_data", 0)]
    with server.client(generic_options=options) as pinging:
        reader = pinging.do_get(ticket(name, until="never", heartbeat_ms=25000))
        chunk = reader.read_chunk()  # the first heartbeat: two pings later
        assert json.loads(chunk.app_metadata.to_pybytes())["heartbeat"] is True
        reader.cancel()

# SPDX-License-Identifier: Apache-2.0
"""Live reads: DoGet with until never, and DoExchange subscriptions."""
import json
import queue
import threading
import time
import urllib.request

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from conftest import action, chunks, command, fails, numbers, path, put, ticket


class Follower:
    """Reads a stream on a thread into a queue of (batch, metadata)."""

    def __init__(self, reader):
        self.reader = reader
        self.queue = queue.Queue()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        try:
            for chunk in self.reader:
                self.queue.put((chunk.data, json.loads(chunk.app_metadata.to_pybytes()) if chunk.app_metadata else None))
            self.queue.put(None)
        except Exception as e:
            self.queue.put(e)

    def next(self, timeout=20):
        item = self.queue.get(timeout=timeout)
        if isinstance(item, Exception):
            raise item
        return item

    def rows(self, count, timeout=20):
        """The ids of the next rows, and the last metadata; messages without rows are passed over."""
        ids, meta = [], None
        while len(ids) < count:
            data, meta = self.next(timeout)
            ids += data.column("id").to_pylist() if len(data) else []
        return ids, meta


def test_rows_arrive_as_they_are_appended(client, server, table):
    name = table("id BIGINT, s STRING")
    put(client, name, numbers(0, 5))
    with server.client() as second:
        reader = second.do_get(ticket(name, until="never"))
        f = Follower(reader)
        assert f.rows(5)[0] == list(range(5))
        for i in range(5, 50):
            put(client, name, numbers(i, 1))
            ids, meta = f.rows(1)
            assert ids == [i] and meta == {"bucket": 0, "next": i + 1}
        reader.cancel()


def test_a_hundred_followers_see_the_same(client, server, table):
    name = table("id BIGINT, s STRING")
    with server.client() as second:
        readers = [second.do_get(ticket(name, until="never")) for _ in range(100)]
        followers = [Follower(r) for r in readers]
        put(client, name, *[numbers(i * 10, 10) for i in range(20)])
        for f in followers:
            assert f.rows(200)[0] == list(range(200))
        for r in readers:
            r.cancel()


def test_following_with_a_filter_resumes_behind_what_it_skipped(client, server, table):
    name = table("id BIGINT, s STRING")
    with server.client() as second:
        reader = second.do_get(ticket(name, until="never", filter="id >= 100", heartbeat_ms=100))
        f = Follower(reader)
        put(client, name, numbers(0, 50))
        put(client, name, numbers(100, 1))
        ids, meta = f.rows(1)
        assert ids == [100] and meta["next"] == 51
        put(client, name, numbers(0, 9))
        while True:
            _, meta = f.next()
            if meta["next"] == {"0": 60}:
                assert meta["heartbeat"] is True
                break
        reader.cancel()


def test_a_silent_stream_has_a_heartbeat(client, server, table):
    name = table("id BIGINT, s STRING")
    put(client, name, numbers(0, 3))
    with server.client() as second:
        reader = second.do_get(ticket(name, until="never", heartbeat_ms=50, **{"from": "latest"}))
        f = Follower(reader)
        for _ in range(3):
            data, meta = f.next()
            assert len(data) == 0 and meta == {"heartbeat": True, "next": {"0": 3}}
        reader.cancel()


def test_cancelling_ends_the_stream_at_once(client, server, table):
    name = table("id BIGINT, s STRING")
    with server.client() as second:
        reader = second.do_get(ticket(name, until="never"))
        f = Follower(reader)
        put(client, name, numbers(0, 1))
        f.rows(1)
        begun = time.monotonic()
        reader.cancel()
        with fails(fl.FlightCancelledError):
            f.next()
        assert time.monotonic() - begun < 5


def open_scans(server):
    with urllib.request.urlopen(f"http://{server.ready['http']}/metrics") as page:
        return int(float(next(line.split()[1] for line in page.read().decode().splitlines() if line.startswith("mink_scans_open "))))


def test_cancelled_scans_are_given_back(own_server):
    with own_server.client() as c:
        action(c, "create-table", ddl="CREATE TABLE shop.t (id BIGINT, s STRING)")
        put(c, "shop.t", numbers(0, 1))
        readers = [c.do_get(ticket("shop.t", until="never")) for _ in range(20)]
        for r in readers:
            r.read_chunk()
        assert open_scans(own_server) == 20
        for r in readers:
            r.cancel()
        until = time.monotonic() + 10
        while open_scans(own_server) and time.monotonic() < until:
            pass
        assert open_scans(own_server) == 0


def test_a_deadline_ends_a_follow(client, table):
    name = table("id BIGINT, s STRING")
    with fails(fl.FlightTimedOutError):
        chunks(client, name, fl.FlightCallOptions(timeout=0.3), until="never")


def test_stopping_the_server_ends_follows_with_where_to_go_on(own_server):
    c = own_server.client()
    action(c, "create-table", ddl="CREATE TABLE shop.t (id BIGINT, s STRING)")
    put(c, "shop.t", numbers(0, 4))
    f = Follower(c.do_get(ticket("shop.t", until="never")))
    f.rows(4)
    assert own_server.stop() == 0
    data, meta = f.next()
    assert len(data) == 0 and meta == {"draining": True, "next": {"0": 4}}
    with fails(fl.FlightUnavailableError, "NODE_DRAINING"):
        f.next()
    c.close()


# ---- subscriptions


class Subscription:
    def __init__(self, client, subscriptions, **shape):
        self.writer, reader = client.do_exchange(command(subscribe=subscriptions, **shape))
        self.follower = Follower(reader)

    def control(self, **message):
        """Sends it; returns the rows that came before its answer, and the answer."""
        self.writer.write_metadata(json.dumps(message).encode())
        before = []
        while True:
            data, meta = self.follower.next()
            if "ok" in meta:
                assert len(data) == 0
                return before, meta
            before += [(meta["bucket"], i) for i in data.column("id").to_pylist()] if len(data) else []

    def rows(self, count):
        out = []
        while len(out) < count:
            data, meta = self.follower.next()
            out += [(meta["bucket"], i) for i in data.column("id").to_pylist()] if len(data) else []
        return out


@pytest.fixture
def four(client, table):
    name = table("id BIGINT, s STRING", "'bucket.num'='4'")
    for bucket in range(4):
        put(client, name, numbers(bucket * 100, 10), bucket=bucket)
    return name


def test_subscribing_to_buckets(client, server, four):
    with server.client() as second:
        s = Subscription(second, [{"table": four, "bucket": 0}, {"table": four, "bucket": 2, "from": 5}])
        assert sorted(s.rows(15)) == [(0, i) for i in range(10)] + [(2, i) for i in range(205, 210)]
        put(client, four, numbers(300, 1), bucket=3)
        put(client, four, numbers(250, 1), bucket=2)
        assert s.rows(1) == [(2, 250)]
        _, reply = s.control(add={"bucket": 3, "from": 9}, id=17)
        assert reply == {"ok": "add", "id": 17}
        assert s.rows(2) == [(3, 309), (3, 300)]
        _, reply = s.control(seek=[{"bucket": 0, "offset": 8}], id="s")
        assert reply == {"ok": "seek", "id": "s"}
        assert s.rows(2) == [(0, 8), (0, 9)]
        assert s.control(pause=[0])[1] == {"ok": "pause"}
        put(client, four, numbers(50, 1), bucket=0)
        put(client, four, numbers(260, 1), bucket=2)
        assert s.rows(1) == [(2, 260)]
        before, _ = s.control(resume=[0])
        assert (before or s.rows(1)) == [(0, 50)]
        assert s.control(remove=[2])[1] == {"ok": "remove"}
        put(client, four, numbers(270, 1), bucket=2)
        put(client, four, numbers(60, 1), bucket=0)
        assert s.rows(1) == [(0, 60)]
        s.follower.reader.cancel()


def test_credit_bounds_what_is_sent(client, server, four):
    with server.client() as second:
        s = Subscription(second, [{"table": four, "bucket": 0}], heartbeat_ms=0)
        s.rows(10)
        s.control(credit=0)
        put(client, four, numbers(500, 1000), bucket=0)
        # Without credit nothing comes: the answers to further messages do.
        assert s.control(pause=[0])[0] == [] and s.control(resume=[0])[0] == []
        before, _ = s.control(credit=1)
        assert len(before or s.rows(1)) > 0
        s.follower.reader.cancel()


def test_subscription_survives_the_clients_half_close(client, server, four):
    with server.client() as second:
        s = Subscription(second, [{"table": four, "bucket": 1, "from": "latest"}])
        s.control(resume=[1])
        s.writer.done_writing()
        put(client, four, numbers(7, 1), bucket=1)
        assert s.rows(1) == [(1, 7)]
        s.follower.reader.cancel()


@pytest.mark.parametrize("subscriptions, code", [
    ([], "BAD_VALUE"),
    ([{"table": "shop.nothing", "bucket": 0}], "TABLE_NOT_FOUND"),
    ([{"table": "a.b", "bucket": 0}, {"table": "a.c", "bucket": 0}], "SEVERAL_TABLES"),
    ([{"table": "a.b", "buckets": 0}], "did you mean"),
    ([{"table": "a.b", "bucket": 0}] * 65, "TOO_MANY_SUBSCRIPTIONS"),
])
def test_bad_subscriptions(client, subscriptions, code):
    writer, reader = client.do_exchange(command(subscribe=subscriptions))
    with fails(Exception, code):
        reader.read_chunk()


def test_lookups_are_refused_by_name(client, four):
    writer, reader = client.do_exchange(command(lookup=four))
    with fails(pa.ArrowNotImplementedError, "NO_LOOKUP"):
        reader.read_chunk()


def test_bad_control_messages_end_the_stream(client, four):
    for message, text in [({"seek": [{"bucket": 0, "offset": 0}], "pause": [0]}, "at once"), ({"sek": [0]}, "did you mean"), ({"pause": [9]}, "9")]:
        s = Subscription(client, [{"table": four, "bucket": 0, "from": "latest"}])
        s.writer.write_metadata(json.dumps(message).encode())
        with fails(Exception, text):
            while s.follower.next():
                pass

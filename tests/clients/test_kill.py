# SPDX-License-Identifier: Apache-2.0
"""kill -9 at random moments under load: nothing acknowledged is lost, nothing of an idempotent writer is doubled, order is kept."""
import json
import os
import random
import threading
import time

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from conftest import Server

KILLS = int(os.environ.get("MINK_KILLS", "200"))
ROWS = 20


def call(client, action, **body):
    return [json.loads(r.body.to_pybytes()) for r in client.do_action((action, json.dumps(body).encode()))]


class Plain(threading.Thread):
    """Appends batches of its own; counts what was acknowledged. A batch whose fate is unknown is never sent again."""

    def __init__(self, uri, table, first):
        super().__init__(daemon=True)
        self.uri, self.table, self.next, self.acked, self.unknown = uri, table, first, [], []
        self.stop = False

    def run(self):
        sent = []
        try:
            client = fl.FlightClient(self.uri)
            schema = pa.schema([("w", pa.string()), ("n", pa.int64())])
            writer, acks = client.do_put(fl.FlightDescriptor.for_path("k", self.table), schema)
            while not self.stop:
                n = self.next
                batch = pa.record_batch([pa.array(["plain"] * ROWS), pa.array(range(n, n + ROWS), pa.int64())], schema=schema)
                sent.append(n)
                self.next += ROWS
                writer.write_batch(batch)
                answer = json.loads(acks.read().to_pybytes())
                assert answer["batch"] == len(self.acked) or answer["batch"] > len(self.acked)
                self.acked.append(n)
        except (fl.FlightError, pa.ArrowException, AttributeError):
            pass
        self.unknown = [n for n in sent if n not in set(self.acked)]


class Idempotent(threading.Thread):
    """One writer id for the whole test; goes on after each kill with the sequence number that was not acknowledged."""

    def __init__(self, uri, table, state):
        super().__init__(daemon=True)
        self.uri, self.table, self.state = uri, table, state
        self.stop = False

    def run(self):
        try:
            client = fl.FlightClient(self.uri)
            if self.state["writer"] is None:
                self.state["writer"] = call(client, "init-writer")[0]["writer"]
            command = {"table": "k." + self.table, "bucket": 0, "writer": self.state["writer"]}
            schema = pa.schema([("w", pa.string()), ("n", pa.int64())])
            writer, acks = client.do_put(fl.FlightDescriptor.for_command(json.dumps(command).encode()), schema)
            while not self.stop:
                seq = self.state["acked"]
                batch = pa.record_batch([pa.array(["once"] * ROWS), pa.array(range(seq * ROWS, seq * ROWS + ROWS), pa.int64())], schema=schema)
                writer.write_with_metadata(batch, pa.py_buffer(json.dumps({"seq": seq}).encode()))
                answer = json.loads(acks.read().to_pybytes())
                self.state["duplicates"] += bool(answer.get("duplicate"))
                self.state["acked"] += 1
        except (fl.FlightError, pa.ArrowException, AttributeError):
            pass


@pytest.mark.timeout(1200)
def test_kill_9_loses_and_doubles_nothing(tmp_path):
    seed = int(os.environ.get("MINK_SEED", time.time()))
    print("seed", seed)
    r = random.Random(seed)
    folder = str(tmp_path)
    acked, unknown, next_plain = [], set(), 0
    state = {"writer": None, "acked": 0, "duplicates": 0}
    for kill in range(KILLS):
        server = Server(folder).start()
        uri = "grpc://" + server.address
        if kill == 0:
            client = server.client()
            call(client, "create-database", database="k")
            for table in ("plain", "once"):
                call(client, "create-table", ddl="CREATE TABLE k.%s (w STRING, n BIGINT)" % table)
        plain, once = Plain(uri, "plain", next_plain), Idempotent(uri, "once", state)
        plain.start()
        once.start()
        time.sleep(r.random() * 0.25)  # the moment of the kill is the test's input
        if kill % 10 == 3:
            call(server.client(), "flush")
        server.kill()
        plain.stop = once.stop = True
        plain.join(30)
        once.join(30)
        assert not plain.is_alive() and not once.is_alive()
        acked += plain.acked
        unknown |= set(plain.unknown)
        next_plain = plain.next
    server = Server(folder).start()
    try:
        client = server.client()
        # The idempotent writer finishes what was in flight.
        once = Idempotent("grpc://" + server.address, "once", state)
        target = state["acked"] + 3
        once.start()
        while state["acked"] < target and once.is_alive():
            once.join(0.01)
        once.stop = True
        once.join(30)
        rows = client.do_get(fl.Ticket(b'{"table":"k.once"}')).read_all()["n"].to_pylist()
        assert rows == list(range(len(rows)))  # each once, in order, without a gap
        assert len(rows) >= state["acked"] * ROWS
        rows = client.do_get(fl.Ticket(b'{"table":"k.plain"}')).read_all()["n"].to_pylist()
        assert rows == sorted(rows)  # the writer's order
        assert len(set(rows)) == len(rows)  # no batch twice
        have = {n for n in rows if n % ROWS == 0}
        assert set(acked) <= have  # nothing acknowledged is lost
        assert have <= set(acked) | unknown  # and nothing came from nowhere
        assert len(rows) == len(have) * ROWS  # batches are whole
        print("kills %d, acknowledged %d + %d batches, duplicates answered %d" % (KILLS, len(acked), state["acked"], state["duplicates"]))
        assert len(acked) > KILLS
    finally:
        server.stop()

# SPDX-License-Identifier: Apache-2.0
"""Starts the built server (MINK_BIN, or build/release/mink) for the tests of foreign clients."""
import itertools
import json
import os
import pathlib
import signal
import subprocess
import tempfile

import pyarrow as pa
import pyarrow.flight as fl
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("MINK_BIN", str(ROOT / "build/release/mink"))


class Server:
    """One `mink dev` on free ports in a folder of its own."""

    def __init__(self, folder, environment=None, arguments=()):
        self.folder = str(folder)
        self.environment = {**os.environ, **(environment or {})}
        self.arguments = list(arguments)
        self.process = None

    def start(self):
        self.log = open(os.path.join(self.folder, "server.log"), "ab")
        self.process = subprocess.Popen(
            [BINARY, "dev", "--dir", os.path.join(self.folder, "data"), "--flight-port", "0", "--http-port", "0", *self.arguments],
            stdout=subprocess.PIPE, stderr=self.log, env=self.environment)
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            raise RuntimeError("the server did not start: " + open(self.log.name).read()[-2000:])
        self.ready = json.loads(line)
        self.address = self.ready["flight"]
        return self

    def stop(self):
        """An orderly end; returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self._ended(30)

    def kill(self):
        self.process.kill()
        return self._ended(30)

    def _ended(self, timeout):
        status = self.process.wait(timeout)
        self.process.stdout.close()
        self.log.close()
        return status

    def client(self, **options):
        return fl.FlightClient("grpc://" + self.address, **options)

    def rss(self):
        """Resident bytes of the server."""
        with open(f"/proc/{self.process.pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def log_text(self):
        with open(os.path.join(self.folder, "server.log")) as f:
            return f.read()


@pytest.fixture(scope="session")
def server():
    with tempfile.TemporaryDirectory() as folder:
        s = Server(folder).start()
        yield s
        alive = s.process.poll() is None
        status = s.stop() if alive else s.process.returncode
        assert alive and status == 0, f"the server ended with {status}:\n{s.log_text()[-4000:]}"


@pytest.fixture
def own_server(tmp_path):
    s = Server(tmp_path).start()
    yield s
    if s.process.poll() is None:
        s.stop()


@pytest.fixture
def client(server):
    with server.client() as c:
        yield c


_names = itertools.count()


@pytest.fixture
def table(client):
    """Makes a table of a name of its own: table("id BIGINT, s STRING", "'bucket.num'='4'") → "shop.t7"."""

    def make(columns, options="", partition_by=""):
        name = f"shop.t{next(_names)}"
        ddl = f"CREATE TABLE {name} ({columns})"
        if partition_by:
            ddl += f" PARTITIONED BY ({partition_by})"
        if options:
            ddl += f" WITH ({options})"
        action(client, "create-table", ddl=ddl)
        return name

    return make


def action(client, kind, **body):
    return [json.loads(r.body.to_pybytes()) for r in client.do_action(fl.Action(kind, json.dumps(body).encode()))]


def path(table):
    return fl.FlightDescriptor.for_path(*table.split("."))


def command(**fields):
    return fl.FlightDescriptor.for_command(json.dumps(fields).encode())


def ticket(table, **fields):
    return fl.Ticket(json.dumps({"table": table, **fields}).encode())


def put(client, table, *batches, schema=None, **fields):
    """Puts the batches, reads every acknowledgement; returns them."""
    writer, reader = client.do_put(command(table=table, **fields) if fields else path(table), schema or batches[0].schema)
    with writer:
        for b in batches:
            writer.write_batch(b)
        writer.done_writing()
        return acks(reader)


def acks(reader):
    out = []
    while (message := reader.read()) is not None:
        out.append(json.loads(message.to_pybytes()))
    return out


def get(client, table, **fields):
    return client.do_get(ticket(table, **fields)).read_all()


def chunks(client, table, options=None, **fields):
    """[(batch, metadata)] of a read."""
    out = []
    reader = client.do_get(ticket(table, **fields), options) if options else client.do_get(ticket(table, **fields))
    for chunk in reader:
        out.append((chunk.data, json.loads(chunk.app_metadata.to_pybytes()) if chunk.app_metadata else None))
    return out


def fails(kind, *parts):
    """with fails(pa.ArrowInvalid, "TEXT", …): the error has that class and every part in its text."""

    class Check:
        def __enter__(self):
            return self

        def __exit__(self, exc_type, exc, tb):
            assert exc_type is not None, f"no error; expected {kind.__name__} with {parts}"
            if not issubclass(exc_type, kind):
                return False
            for part in parts:
                assert part in str(exc), f"{part!r} is not in {exc!s}"
            self.error = exc
            return True

    return Check()


def numbers(begin, count):
    return pa.record_batch({"id": pa.array(range(begin, begin + count), pa.int64()), "s": pa.array([f"row {i}" for i in range(begin, begin + count)], pa.string())})

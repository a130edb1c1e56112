# SPDX-License-Identifier: Apache-2.0
"""make bench: figures, and ratios to a peer measured in the same run, alternating. bench.py [CASE …] [--quick] [--json FILE]

Every line names its durability class (D0 page cache or memory, D1 fsynced file, D2 simulated object store) and store profile. A ratio is the
median of pair ratios; its range follows. S = CPU seconds of the server alone. MB = 10^6 bytes of Arrow bodies."""
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl

from rows import E_DDL, event_batch, wide_batch, wide_ddl
from server import Mink, Peer

QUICK = "--quick" in sys.argv
PAIRS = 3 if QUICK else 5
results = []


def row(case, what, value, unit, ratio=None, target=None, **more):
    entry = dict(case=case, what=what, value=value, unit=unit, ratio=ratio, target=target, **more)
    results.append(entry)
    extra = "  ".join("%s %s" % (k.replace("_", " "), ("%.3g" % v if isinstance(v, float) else v)) for k, v in more.items())
    print("%-5s %-52s %10s %-9s %s%s%s" % (case, what, "%.4g" % value if isinstance(value, float) else value, unit,
                                         "ratio %.2f [%.2f–%.2f]  " % ratio if ratio else "", "target %s  " % target if target else "", extra), flush=True)


def ratio(pairs):
    r = [a / b for a, b in pairs]
    return statistics.median(r), min(r), max(r)


def put(client, descriptor, batches, compression=None, window=64):
    """Puts with acknowledgements read as they come; returns the seconds until the last one."""
    options = fl.FlightCallOptions(write_options=pa.ipc.IpcWriteOptions(compression=compression)) if compression else None
    began = time.monotonic()
    writer, acks = client.do_put(descriptor, batches[0].schema, options) if options else client.do_put(descriptor, batches[0].schema)

    def read():
        last = -1
        while last < len(batches) - 1:
            m = acks.read()
            if m is None:
                break
            last = json.loads(m.to_pybytes())["batch"]
    reader = threading.Thread(target=read)
    reader.start()
    for batch in batches:
        writer.write_batch(batch)
    writer.done_writing()
    reader.join()
    seconds = time.monotonic() - began
    writer.close()
    return seconds


def cost(puts_per_s, gets_per_s=0.0):
    return puts_per_s * 13.14 + gets_per_s * 1.05


# ---- case 1: log append through Flight

def case_1():
    rows = 2_000_000 if QUICK else 5_000_000
    batches = [event_batch(10_000, i * 10_000) for i in range(50)] * (rows // 500_000)
    size = sum(b.nbytes for b in batches)
    zstd = pa.Codec("zstd", 1)
    sample = sum(len(zstd.compress(buf, asbytes=True)) for c in batches[0].columns for buf in c.buffers() if buf)
    print("      %d E rows, %.0f MB, zstd-1 ratio %.2f" % (rows, size / 1e6, batches[0].nbytes / sample))
    for label, store, profile, compression in (("D0 page cache", "file-nosync", None, None), ("D1 fsync", "file", None, None), ("D2 store s3", "memory", "s3", None),
                                               ("D1 fsync, zstd-1 as sent", "file", None, "zstd")):
        pairs, rates, cpus, puts = [], [], [], 0
        for i in range(PAIRS):
            with Peer() as peer:
                peer_rate = size / put(peer.client(), fl.FlightDescriptor.for_path("drop"), batches, compression)
            with Mink(store, profile, cache__tail="512MiB") as mink:
                mink.create("b.e", E_DDL, bucket__num=4)
                before, cpu = mink.metrics(), mink.cpu()
                seconds = put(mink.client(), fl.FlightDescriptor.for_path("b", "e"), batches, compression)
                after = mink.metrics()
                rates.append(size / seconds / 1e6)
                cpus.append((mink.cpu() - cpu) / (size / 1e9))
                puts = after["mink_object_puts_total"] - before["mink_object_puts_total"]
                rss = mink.rss_mb()
                pairs.append((size / seconds, peer_rate))
        row("1", "append, %s" % label, statistics.median(rates), "MB/s", ratio(pairs), "≥ 0.6 × drop-sink" if label.startswith("D0") else None,
            S_per_GB=statistics.median(cpus), PUTs=int(puts), RSS_MB=rss)


# ---- DoGet of a cached log

def case_get():
    batches = [event_batch(10_000, i * 10_000) for i in range(100)]
    size = sum(b.nbytes for b in batches)
    pairs, rates, cpus = [], [], []
    with Peer() as peer, Mink("file") as mink:
        put(peer.client(), fl.FlightDescriptor.for_path("keep"), batches)
        mink.create("b.e", E_DDL)
        put(mink.client(), fl.FlightDescriptor.for_path("b", "e"), batches)

        def read(client, ticket):
            began, n = time.monotonic(), 0
            for chunk in client.do_get(fl.Ticket(ticket)):
                n += chunk.data.num_rows
            assert n == 1_000_000, n
            return time.monotonic() - began
        for i in range(PAIRS + 1):
            a = read(peer.client(), b"keep")
            cpu = mink.cpu()
            b = read(mink.client(), b'{"table":"b.e"}')
            if i:
                pairs.append((a, b))
                rates.append(size / b / 1e6)
                cpus.append((mink.cpu() - cpu) / (size / 1e9))
    row("get", "DoGet of a cached log", statistics.median(rates), "MB/s", ratio(pairs), "≥ 0.7 × memory server", S_per_GB=statistics.median(cpus))


# ---- case 4: latency of acknowledgements, open loop

def open_loop(mink, rate, seconds, clients=1, rows=1):
    """Latency from the intended send to the acknowledgement, ms, sorted."""
    batch = event_batch(rows)
    out, lock = [], threading.Lock()

    def one(k):
        writer, acks = mink.client().do_put(fl.FlightDescriptor.for_path("b", "e"), batch.schema)
        count = int(rate / clients * seconds)
        due = [0.0] * count
        mine = []

        def read():
            last = -1
            while last < count - 1:
                m = acks.read()
                if m is None:
                    return
                now = time.monotonic()
                upto = json.loads(m.to_pybytes())["batch"]
                mine.extend((now - due[i]) * 1000 for i in range(last + 1, upto + 1))
                last = upto
        reader = threading.Thread(target=read)
        start = time.monotonic() + 0.1 + k / rate
        reader.start()
        for i in range(count):
            due[i] = start + i * clients / rate
            wait = due[i] - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            writer.write_batch(batch)
        writer.done_writing()
        reader.join()
        writer.close()
        with lock:
            out.extend(mine)
    threads = [threading.Thread(target=one, args=(k,)) for k in range(clients)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return sorted(out)


def at(sorted_list, q):
    return sorted_list[min(len(sorted_list) - 1, int(q * len(sorted_list)))]


def case_4():
    seconds = 15 if QUICK else 60
    for profile, rate, clients, settings, target in (("flat20", 100, 1, {}, "p50 ≤ 1.2 × (PUT + linger)"), ("s3", 100, 1, {}, "≤ 45/95 ms"), ("s3", 100, 1, {"wal__put_rate": -1}, "≤ 40/85 ms"),
                                                     ("express", 100, 1, {"wal__put_rate": -1}, "≤ 12/25 ms"), ("s3", 1280, 64, {}, None)):
        with Mink("memory", profile, **settings) as mink:
            mink.create("b.e", E_DDL)
            before = mink.metrics()
            lat = open_loop(mink, rate, seconds, clients)
            after = mink.metrics()
            puts = (after["mink_object_puts_total"] - before["mink_object_puts_total"]) / seconds
            row("4", "ack, store %s, %d writers, %d batches/s%s" % (profile, clients, rate, ", budget lifted" if settings else ""), at(lat, 0.5), "ms p50", None, target,
                p99=at(lat, 0.99), p999=at(lat, 0.999), max=lat[-1], PUT_per_s=puts, dollars_month=cost(puts), hedges=after.get("mink_wal_hedges_total", 0.0))


# ---- case 5: objects and money

def case_5():
    seconds = 8 if QUICK else 20
    with Mink("memory", "s3") as mink:
        mink.create("b.e", E_DDL)
        time.sleep(0.5)
        a, cpu = mink.metrics(), mink.cpu()
        time.sleep(seconds)
        b = mink.metrics()
        row("5", "idle, %d s" % seconds, b["mink_object_puts_total"] - a["mink_object_puts_total"], "PUTs", None, "0", LISTs=b["mink_object_lists_total"] - a["mink_object_lists_total"],
            GETs=b["mink_object_gets_total"] - a["mink_object_gets_total"], cpu_percent=100 * (mink.cpu() - cpu) / seconds)
    for mb, buckets in ((1, 1), (10, 1), (100, 1), (10, 1000), (10, 10000)):
        rows = 1000 if mb == 1 else 10_000
        batch = event_batch(rows)
        with Mink("memory", "s3") as mink:
            mink.create("b.e", E_DDL, bucket__num=buckets)
            before, cpu = mink.metrics(), mink.cpu()
            began = time.monotonic()
            lat = open_loop(mink, mb * 1e6 / batch.nbytes, seconds, 1, rows)
            elapsed = time.monotonic() - began
            after = mink.metrics()
            puts = (after["mink_object_puts_total"] - before["mink_object_puts_total"]) / elapsed
            row("5", "%d MB/s into %d buckets, store s3" % (mb, buckets), puts, "PUT/s", None, "≤ 30 PUT/s, p50 ≤ 150 ms" if mb == 100 else None,
                KB_per_PUT=mb * 1e3 / max(puts, 1e-9), p50_ms=at(lat, 0.5), p99_ms=at(lat, 0.99), dollars_month=cost(puts), S_per_GB=(mink.cpu() - cpu) / (mb * seconds / 1e3))


# ---- case 6: how fast followers see it

def case_6():
    for followers in (1, 100) if not QUICK else (1, 20):
        with Mink("file") as mink:
            mink.create("b.e", E_DDL, bucket__num=4)
            batch = event_batch(1000)
            seconds, rate = 10, 1e6 / batch.nbytes
            acked, seen, lock, stop = {}, [], threading.Lock(), threading.Event()
            ready = threading.Barrier(followers + 1)

            def follow():
                got = []
                reader = mink.client().do_get(fl.Ticket(b'{"table":"b.e","until":"never","columns":["id"],"heartbeat_ms":200}'))
                ready.wait()
                for chunk in reader:
                    now = time.monotonic()
                    if chunk.data.num_rows:
                        got.append((chunk.data["id"][0].as_py(), now))
                    if stop.is_set():
                        break
                with lock:
                    seen.extend(got)
            threads = [threading.Thread(target=follow) for _ in range(followers)]
            for t in threads:
                t.start()
            ready.wait()
            cpu = mink.cpu()
            writer, acks = mink.client().do_put(fl.FlightDescriptor.for_path("b", "e"), batch.schema)
            start, sent = time.monotonic(), {}
            for i in range(int(rate * seconds)):
                due = start + i / rate
                time.sleep(max(0, due - time.monotonic()))
                one = batch.set_column(0, "id", pa.array(np.full(1000, i)))
                sent[i] = time.monotonic()
                writer.write_batch(one)
                acks.read()
                acked[i] = time.monotonic()
            stop.set()
            for t in threads:
                t.join()
            writer.close()
            after_ack = sorted((t - acked[i]) * 1000 for i, t in seen)
            whole = sorted((t - sent[i]) * 1000 for i, t in seen)
            delivered = len(seen) * batch.nbytes / 10 / 1e9
            row("6", "follow, %d followers, 1 MB/s: ack → received" % followers, at(after_ack, 0.99), "ms p99", None, "< 3 ms (1), < 10 ms (100)", p50=at(after_ack, 0.5),
                append_to_received_p50=at(whole, 0.5), p99=at(whole, 0.99), ack_p50=at(sorted((acked[i] - sent[i]) * 1000 for i in acked), 0.5), cpu_s=mink.cpu() - cpu)


# ---- case 7: pruned scans

def case_7():
    columns, rows = 50, 400_000 if QUICK else 2_000_000
    batches = [wide_batch(10_000, columns, i * 10_000) for i in range(rows // 10_000)]
    with Mink("file", cache__tail="4GiB", commit__bytes="4GiB") as mink:
        mink.create("b.w", wide_ddl(columns), table__statistics__columns="c0")
        put(mink.client(), fl.FlightDescriptor.for_path("b", "w"), batches)
        base = None

        def scan(extra):
            best, cpu = None, None
            for _ in range(3):
                c, began, n = mink.cpu(), time.monotonic(), 0
                for chunk in mink.client().do_get(fl.Ticket(json.dumps(dict({"table": "b.w"}, **extra)).encode())):
                    n += chunk.data.num_rows
                s = time.monotonic() - began
                if best is None or s < best:
                    best, cpu, got = s, mink.cpu() - c, n
            return best, cpu, got
        for k in (50, 25, 10, 5, 1):
            s, cpu, n = scan({"columns": ["c%d" % i for i in range(0, 50, 50 // k)][:k]})
            base = base or s
            row("7", "scan of %d of 50 columns" % k, rows / s / 1e6, "M rows/s", None, {5: "≥ 9 × full", 1: "≥ 25 × full"}.get(k), times_full=base / s, ns_cpu_per_row=cpu / rows * 1e9)
        s, cpu, n = scan({"filter": "c0 >= %d AND c0 < %d" % (rows // 2, rows // 2 + rows // 100)})
        row("7", "filter keeps 1 % of a sorted column, all columns", rows / s / 1e6, "M rows/s", None, "≥ 20 × full", times_full=base / s, rows=n)


# ---- case 15: start-up, idle, restart; 10,000 buckets

def case_15():
    starts = []
    for _ in range(5):
        with Mink("file") as mink:
            starts.append(mink.ready_seconds * 1000)
            rss = mink.rss_mb(False)
    row("15", "exec → ready", statistics.median(starts), "ms", None, "< 150 ms", RSS_MB=rss, RSS_target="< 40 MB")
    with Mink("file") as mink:
        time.sleep(1)
        cpu = mink.cpu()
        time.sleep(10 if QUICK else 30)
        row("15", "idle CPU", 100 * (mink.cpu() - cpu) / (10 if QUICK else 30), "% core", None, "< 0.5 %")
        began = time.monotonic()
        mink.create("b.t", "a BIGINT", bucket__num=10000)
        created = time.monotonic() - began
        client = mink.client()
        writer, acks = client.do_put(fl.FlightDescriptor.for_path("b", "t"), pa.schema([("a", pa.int64())]))
        began = time.monotonic()
        one = pa.record_batch([pa.array([1])], names=["a"])

        def read():
            last = -1
            while last < 9999:
                last = json.loads(acks.read().to_pybytes())["batch"]
        reader = threading.Thread(target=read)
        reader.start()
        for _ in range(10000):
            writer.write_batch(one)
        writer.done_writing()
        reader.join()
        opened = time.monotonic() - began
        writer.close()
        time.sleep(2)
        row("15", "10,000 buckets: create", created, "s", None, "< 10 s", first_append_to_each_s=opened, RSS_MB=mink.rss_mb(False), RSS_target="< 300 MB")
    folder = tempfile.mkdtemp(prefix="mink-bench-", dir=os.environ.get("MINK_BENCH_DIR"))
    mink = Mink("file-nosync", folder=folder, commit__bytes="8GiB", commit__windows=20000, cache__tail="4GiB")
    mink.create("b.e", E_DDL)
    batches = [event_batch(10_000, i * 10_000) for i in range(50)] * (10 if QUICK else 20)
    put(mink.client(), fl.FlightDescriptor.for_path("b", "e"), batches)
    tail = mink.metrics()["mink_wal_bytes_total"]
    mink.stop(kill=True, keep=True)
    mink = Mink("file-nosync", folder=folder)
    row("15", "restart after kill -9, %.2f GB WAL tail" % (tail / 1e9), mink.ready_seconds, "s", None, "< 1 s")
    n = sum(c.data.num_rows for c in mink.client().do_get(fl.Ticket(b'{"table":"b.e","columns":["id"]}')))
    assert n == len(batches) * 10_000
    mink.own_folder = True
    mink.stop()


# ---- scaling curves

def curves():
    batch = event_batch(10_000)
    many = [batch] * (30 if QUICK else 100)
    size = sum(b.nbytes for b in many)
    base = None
    for buckets in (1, 10, 100, 1000, 10000):
        with Mink("file") as mink:
            mink.create("b.e", E_DDL, bucket__num=buckets)
            rate = size / put(mink.client(), fl.FlightDescriptor.for_path("b", "e"), many) / 1e6
            base = base or rate
            row("curve", "buckets %d" % buckets, rate, "MB/s", None, "within 15 %", relative=rate / base, RSS_MB=mink.rss_mb(False))
    for clients in (1, 10, 100):
        with Mink("file") as mink:
            mink.create("b.e", E_DDL, bucket__num=4)
            small = [event_batch(1000)] * max(1, 2000 // clients)
            times, threads = [], []

            def one():
                times.append(put(mink.client(), fl.FlightDescriptor.for_path("b", "e"), small))
            began = time.monotonic()
            threads = [threading.Thread(target=one) for _ in range(clients)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            row("curve", "clients %d" % clients, clients * len(small) * 1000 / (time.monotonic() - began) / 1e6, "M rows/s", None, "monotone, max/min < 3", max_min=max(times) / min(times), RSS_MB=mink.rss_mb())
    for followers in (1, 10, 100):
        with Mink("file") as mink:
            mink.create("b.e", E_DDL)
            total = 20 * 10_000

            def follow():
                n = 0
                for chunk in mink.client().do_get(fl.Ticket(b'{"table":"b.e","until":"never"}')):
                    n += chunk.data.num_rows
                    if n >= total:
                        return
            threads = [threading.Thread(target=follow) for _ in range(followers)]
            for t in threads:
                t.start()
            cpu = mink.cpu()
            put(mink.client(), fl.FlightDescriptor.for_path("b", "e"), [batch] * 20)
            for t in threads:
                t.join()
            row("curve", "followers %d" % followers, (mink.cpu() - cpu) / (followers * 20 * batch.nbytes / 1e9), "S/GB", None, "falling or flat")
    for columns in (1, 10, 100, 1000):
        wide = wide_batch(max(100, 100_000 // columns), columns)
        with Mink("file") as mink:
            mink.create("b.w", wide_ddl(columns))
            repeat = [wide] * 30
            seconds = put(mink.client(), fl.FlightDescriptor.for_path("b", "w"), repeat)
            began = time.monotonic()
            n = sum(c.data.num_rows for c in mink.client().do_get(fl.Ticket(b'{"table":"b.w","columns":["c0"]}')))
            row("curve", "columns %d" % columns, sum(b.nbytes for b in repeat) / seconds / 1e6, "MB/s", None, "linear in bytes", pruned_rows_per_s=n / (time.monotonic() - began))
    for width in (10, 100, 1000, 100_000, 10_000_000):
        rows = max(1, min(10_000, 8_000_000 // width))
        b = pa.record_batch([pa.array(["x" * width] * rows)], names=["a"])
        with Mink("file") as mink:
            mink.create("b.s", "a STRING")
            repeat = [b] * max(5, int(100e6 / b.nbytes / (4 if QUICK else 1)))
            row("curve", "row size %d B" % width, sum(x.nbytes for x in repeat) / put(mink.client(), fl.FlightDescriptor.for_path("b", "s"), repeat) / 1e6, "MB/s")
    for rows in (1, 10, 100, 1000, 10_000):
        b = event_batch(rows)
        with Mink("file") as mink:
            mink.create("b.e", E_DDL)
            repeat = [b] * max(20, min(20_000, 500_000 // rows))
            row("curve", "batch size %d rows" % rows, rows * len(repeat) / put(mink.client(), fl.FlightDescriptor.for_path("b", "e"), repeat) / 1e3, "k rows/s", None, "≥ 50 k/s at 1" if rows == 1 else None)
    base = None
    for ms in (0, 5, 20, 50, 200):
        with Mink("memory", "fast" if ms == 0 else "flat%d" % ms) as mink:
            mink.create("b.e", E_DDL)
            rate = size / put(mink.client(), fl.FlightDescriptor.for_path("b", "e"), many) / 1e6
            base = base or rate
            row("curve", "store latency %d ms" % ms, rate, "MB/s", None, "flat", relative=rate / base)
    for gb in (0.25, 1):
        with Mink("file-nosync", cache__tail="64MiB", commit__bytes="64MiB") as mink:
            mink.create("b.e", E_DDL)
            repeat = [batch] * int(gb * 1e9 / batch.nbytes / (4 if QUICK else 1))
            put(mink.client(), fl.FlightDescriptor.for_path("b", "e"), repeat)
            mink.action("flush")
            times = []
            for i in range(20):
                began = time.monotonic()
                mink.action("list-offsets", table="b.e", bucket=0, at="ts:%d" % (time.time() * 1000 - i * 50))
                times.append((time.monotonic() - began) * 1000)
            began = time.monotonic()
            next(iter(mink.client().do_get(fl.Ticket(json.dumps({"table": "b.e", "bucket": 0, "from": str(len(repeat) * 5000), "columns": ["id"]}).encode()))))
            row("curve", "log of %.2f GB: seek by time" % (gb / (4 if QUICK else 1)), at(sorted(times), 0.5), "ms", None, "flat", seek_by_offset_ms=(time.monotonic() - began) * 1000)


CASES = {"1": case_1, "get": case_get, "4": case_4, "5": case_5, "6": case_6, "7": case_7, "15": case_15, "curves": curves}


def main():
    wanted = [a for a in sys.argv[1:] if a in CASES] or list(CASES)
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=os.path.dirname(os.path.abspath(__file__))).stdout.strip()
    print("machine: %s, %d cores, Linux %s; commit %s; pyarrow %s" % (cpu, os.cpu_count(), platform.release(), commit, pa.__version__))
    for name in wanted:
        CASES[name]()
    if "--json" in sys.argv:
        with open(sys.argv[sys.argv.index("--json") + 1], "w") as f:
            json.dump({"machine": cpu, "commit": commit, "results": results}, f, indent=1)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Starts servers and reads what they used from the operating system and from /metrics."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

import pyarrow.flight as fl

HERE = os.path.dirname(os.path.abspath(__file__))
MINK = os.environ.get("MINK_BIN", os.path.join(HERE, "..", "build", "release", "mink"))
TICK = os.sysconf("SC_CLK_TCK")


class Process:
    pid = None

    def cpu(self):
        """User and system seconds of the server process so far."""
        with open("/proc/%d/stat" % self.pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def rss_mb(self, peak=True):
        with open("/proc/%d/status" % self.pid) as f:
            return int(re.search(r"%s:\s+(\d+) kB" % ("VmHWM" if peak else "VmRSS"), f.read()).group(1)) / 1024

    def client(self):
        return fl.FlightClient(self.uri)


class Mink(Process):
    """store: file (fsync), file-nosync (page cache), memory, or sink; profile: the name of a simulated store."""

    def __init__(self, store="file", profile=None, folder=None, pin=None, **settings):
        self.own_folder = folder is None
        self.folder = folder or tempfile.mkdtemp(prefix="mink-bench-", dir=os.environ.get("MINK_BENCH_DIR"))
        query = ["profile=" + profile, "seed=1"] if profile else []
        if store == "file-nosync":
            query.append("fsync=off")
        base = store + ":" if store in ("memory", "sink") else "file://" + os.path.join(self.folder, "objects")
        args = [MINK, "serve", "--metadata", "sqlite://" + os.path.join(self.folder, "meta.db"),
                "--store", base + ("?" + "&".join(query) if query else ""),
                "--flight.listen", "127.0.0.1:0", "--http.listen", "127.0.0.1:0", "--log.level", "error"]
        for key, value in settings.items():
            args += ["--" + key.replace("__", "."), str(value)]
        if pin is not None:
            args = ["taskset", "-c", str(pin)] + args
        started = time.monotonic()
        self.process = subprocess.Popen(args, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("mink did not start: " + " ".join(args))
        self.ready_seconds = time.monotonic() - started
        self.ready = json.loads(line)
        self.pid = self.process.pid
        self.uri = "grpc://" + self.ready["flight"]
        self.http = "http://" + self.ready["http"]

    def metrics(self):
        text = urllib.request.urlopen(self.http + "/metrics").read().decode()
        return {m.group(1): float(m.group(2)) for m in re.finditer(r"^(\w+) ([-+0-9.eE]+)$", text, re.M)}

    def action(self, name, **body):
        return [json.loads(r.body.to_pybytes()) for r in self.client().do_action((name, json.dumps(body).encode()))]

    def create(self, table, columns, **options):
        self.action("create-database", database=table.split(".")[0], if_not_exists=True)
        with_ = ", ".join("'%s'='%s'" % (k.replace("__", "."), v) for k, v in options.items())
        self.action("create-table", ddl="CREATE TABLE %s (%s)%s" % (table, columns, " WITH (%s)" % with_ if with_ else ""))

    def stop(self, kill=False, keep=False):
        self.process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        self.process.wait(30)
        if self.own_folder and not keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Peer(Process):
    def __init__(self, pin=None):
        args = [sys.executable, os.path.join(HERE, "peer_flight.py")]
        if pin is not None:
            args = ["taskset", "-c", str(pin)] + args
        self.process = subprocess.Popen(args, stdout=subprocess.PIPE, text=True)
        self.uri = "grpc://127.0.0.1:%d" % int(self.process.stdout.readline())
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

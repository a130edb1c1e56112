# SPDX-License-Identifier: Apache-2.0
"""The HTTP port: metrics as Prometheus reads them, health, readiness."""
import json
import socket
import subprocess
import urllib.error
import urllib.request

import prometheus_client.parser
from conftest import BINARY, Server, action, get, numbers, put


def fetch(server, path, method="GET"):
    """(status, headers, text)"""
    try:
        with urllib.request.urlopen(urllib.request.Request(f"http://{server.ready['http']}{path}", method=method), timeout=30) as r:
            return r.status, r.headers, r.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.headers, e.read().decode()


def samples(server):
    """{series: value}; a name that comes twice, or a line that is none, fails."""
    status, headers, text = fetch(server, "/metrics")
    assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4")
    out, names = {}, set()
    for family in prometheus_client.parser.text_string_to_metric_families(text):
        assert family.name not in names, f"{family.name} comes twice"
        names.add(family.name)
        assert family.documentation and family.type in ("counter", "gauge", "histogram")
        for s in family.samples:
            key = s.name + json.dumps(s.labels, sort_keys=True)
            assert key not in out
            out[key] = s.value
    return out


def test_metrics_count_what_is_done(server, client, table):
    name = table("id BIGINT, s STRING")
    put(client, name, numbers(0, 10))
    before = samples(server)
    put(client, name, numbers(10, 10), numbers(20, 10))
    assert get(client, name).num_rows == 30
    after = samples(server)
    assert after["mink_append_batches_total{}"] == before["mink_append_batches_total{}"] + 2
    assert after["mink_object_puts_total{}"] > before["mink_object_puts_total{}"]
    assert after["mink_append_ack_seconds_count{}"] > before["mink_append_ack_seconds_count{}"]
    assert after["mink_append_unacknowledged_bytes{}"] == 0
    assert after["process_resident_memory_bytes{}"] > 1e6
    assert after['mink_build_info{"version": "0.1.0"}'] == 1


def test_histograms_are_cumulative(server, client, table):
    put(client, table("id BIGINT, s STRING"), numbers(0, 10))
    _, _, text = fetch(server, "/metrics")
    histograms = [f for f in prometheus_client.parser.text_string_to_metric_families(text) if f.type == "histogram"]
    assert histograms
    for f in histograms:
        buckets = [s for s in f.samples if s.name.endswith("_bucket")]
        bounds = [float(s.labels["le"]) for s in buckets]
        assert bounds == sorted(set(bounds)) and bounds[-1] == float("inf")
        values = [s.value for s in buckets]
        assert values == sorted(values)
        count = next(s.value for s in f.samples if s.name.endswith("_count"))
        assert count == values[-1]


def test_the_number_of_series_does_not_grow_with_tables(server, client, table):
    put(client, table("id BIGINT, s STRING", "'bucket.num'='4'"), numbers(0, 10))
    before = set(samples(server))
    put(client, table("id BIGINT, s STRING", "'bucket.num'='64'"), numbers(0, 1000))
    after = set(samples(server))
    assert after == before
    assert len(after) < 500


def test_health_and_readiness(server):
    status, headers, text = fetch(server, "/healthz")
    assert status == 200 and headers["Content-Type"] == "application/json"
    assert json.loads(text) == {"status": "ok", "version": "0.1.0"}
    status, _, text = fetch(server, "/readyz")
    assert status == 200 and json.loads(text) == {"ready": True}
    status, headers, text = fetch(server, "/metrics", "HEAD")
    assert status == 200 and int(headers["Content-Length"]) > 1000 and text == ""


def test_the_index_names_every_page(server):
    status, headers, text = fetch(server, "/")
    assert status == 200 and headers["Content-Type"] == "text/plain; charset=utf-8" and text.startswith("Mink 0.1.0\n")
    paths = [line.split()[0] for line in text.splitlines() if line.startswith("/")]
    assert paths == ["/metrics", "/healthz", "/readyz"]
    assert all(fetch(server, path)[0] == 200 for path in paths)
    # The port's own list, in the hint of a 404, has nothing that the index leaves out.
    _, _, text = fetch(server, "/metric")
    assert json.loads(text)["error"]["hint"] == "known: " + ", ".join(["/", *paths])


def test_what_is_not_there_is_named(server):
    status, _, text = fetch(server, "/metric")
    assert status == 404 and json.loads(text)["error"]["message"] == "there is nothing at /metric"
    status, headers, text = fetch(server, "/metrics", "PUT")
    assert status == 405 and headers["Allow"] == "GET, HEAD" and json.loads(text)["error"]["code"] == "METHOD_NOT_ALLOWED"


def test_a_port_in_use_ends_the_start_with_its_name(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for option, what in (("--http-port", "HTTP port: "), ("--flight-port", "")):
            other = "--flight-port" if option == "--http-port" else "--http-port"
            out = subprocess.run([BINARY, "dev", "--dir", str(tmp_path / "data"), option, str(port), other, "0"], capture_output=True, text=True, timeout=60)
            assert out.returncode == 1 and out.stdout == ""
            assert f"{what}listen on 127.0.0.1:{port}: Address already in use" in out.stderr
            assert "another server has this port: stop it or choose another port" in out.stderr


def test_a_table_is_still_there_after_a_restart_tells_ready(tmp_path):
    s = Server(tmp_path).start()
    with s.client() as c:
        action(c, "create-database", database="shop")
        action(c, "create-table", ddl="CREATE TABLE shop.t (id BIGINT, s STRING)")
        put(c, "shop.t", numbers(0, 5))
    s.kill()
    s = Server(tmp_path).start()
    assert fetch(s, "/readyz")[0] == 200
    with s.client() as c:
        assert get(c, "shop.t").num_rows == 5
    assert s.stop() == 0

# SPDX-License-Identifier: Apache-2.0
"""The command line against a running server, as a shell uses it."""
import csv
import io
import json
import os
import pathlib
import subprocess

import pyarrow as pa
import pytest
from conftest import BINARY, Server, action, get, numbers, put

VERSION = "0.1.0"


@pytest.fixture
def mink(server):
    """mink("get", "shop.t") → (status, stdout, stderr)."""

    def run(*arguments, stdin=None, server_address=None, environment=None):
        out = subprocess.run([BINARY, *arguments], input=stdin if stdin is not None else "", capture_output=True, text=True, timeout=120,
                             env={**os.environ, "MINK_SERVER": server_address or server.address, **(environment or {})})
        return out.returncode, out.stdout, out.stderr

    return run


@pytest.fixture
def events(mink, table):
    return table("id BIGINT, city STRING, amount DECIMAL(12,2), ts TIMESTAMP(6)")


def test_databases_and_tables(mink):
    assert mink("db", "create", "cli") == (0, "created cli\n", "")
    assert mink("db", "create", "cli") == (1, "", "mink: [DATABASE_EXISTS] database cli exists already\n")
    assert mink("db", "create", "cli", "--if-not-exists", "--json") == (0, "{}\n", "")
    assert "cli" in mink("db", "list")[1].splitlines()
    assert {"database": "cli"} in json.loads(mink("db", "list", "--json")[1])
    assert mink("table", "create", "cli.t", "id BIGINT, day STRING", "--partition-by", "day", "--buckets", "3", "-o", "table.log.ttl=3d")[0] == 0
    shown = mink("table", "show", "cli.t")[1]
    for part in ("CREATE TABLE cli.t (", "id BIGINT", "PARTITIONED BY (day)", "'bucket.num' = '3'", "'table.log.ttl' = '3d'"):
        assert part in shown
    assert mink("table", "alter", "cli.t", "--set", "table.log.ttl=5d")[0] == 0
    assert "'table.log.ttl' = '5d'" in mink("table", "show", "cli.t")[1]
    assert mink("partition", "create", "cli.t", "monday")[0] == 0
    assert "monday" in mink("partition", "list", "cli.t")[1]
    assert mink("partition", "drop", "cli.t", "monday")[0] == 0
    assert [t["table"] for t in json.loads(mink("table", "list", "cli", "--json")[1])] == ["cli.t"]
    assert mink("table", "create", "-f", "-", stdin="CREATE TABLE cli.u (a STRING, b STRING, x INT) PARTITIONED BY (a, b)")[0] == 0
    assert mink("partition", "create", "cli.u", "eu", "2026")[0] == 0
    assert mink("partition", "list", "cli.u")[1] == "eu$2026\n"
    status, _, err = mink("db", "drop", "cli")
    assert status == 1 and "[DATABASE_NOT_EMPTY]" in err
    assert mink("db", "drop", "cli", "--cascade")[0] == 0
    assert mink("db", "drop", "cli", "--if-exists")[0] == 0


def test_what_is_shown_creates_the_same_table(mink, table):
    name = table("id BIGINT NOT NULL, tags ARRAY<STRING>, at TIMESTAMP_LTZ(3), price DECIMAL(38, 18)", "'bucket.num'='2', 'bucket.key'='id'")
    ddl = mink("table", "show", name)[1]
    assert mink("table", "drop", name)[0] == 0
    assert mink("table", "create", "-f", "-", stdin=ddl)[0] == 0
    assert mink("table", "show", name)[1] == ddl


def test_csv_in_and_out(mink, events, client):
    source = 'id,city,amount,ts\n1,"Oslo, N",9.50,2026-12-01 08:00:00\n2,"say ""hi""",12.00,2026-12-01 08:00:01.5\n3,,,\n'
    status, out, err = mink("put", events, "--format", "csv", stdin=source)
    assert status == 0 and "3 rows" in out + err
    t = get(client, events)
    assert t.column("city").to_pylist() == ["Oslo, N", 'say "hi"', None]
    assert [str(v) for v in t.column("amount").to_pylist()] == ["9.50", "12.00", "None"]
    status, out, _ = mink("get", events, "--format", "csv")
    rows = list(csv.reader(io.StringIO(out)))
    assert rows[0] == ["id", "city", "amount", "ts"] and rows[1][:3] == ["1", "Oslo, N", "9.50"] and rows[3] == ["3", "", "", ""]
    # What get wrote, put takes.
    assert mink("put", events, "--format", "csv", stdin=out)[0] == 0
    again = get(client, events)
    assert again.slice(3).equals(t)


def test_csv_in_other_shapes(mink, events, client, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("1;Oslo;NA\n2;NA;1.5\n")
    assert mink("put", events, str(path), "--delimiter", ";", "--null", "NA", "--header", "id,city,amount", "--batch-rows", "1")[0] == 0
    assert get(client, events).select(["id", "city"]).to_pylist() == [{"id": 1, "city": "Oslo"}, {"id": 2, "city": None}]


def test_json_lines_in_and_out(mink, events, client):
    source = '{"id":4,"city":"Bonn","amount":1.25}\n\n{"id":5,"city":null}\n'
    status, out, _ = mink("put", events, "--format", "json", "--json", stdin=source)
    answer = json.loads(out)
    assert status == 0 and answer["rows"] == 2 and answer["table"] == events
    status, out, _ = mink("get", events, "--format", "json", "--columns", "id,city,amount")
    assert out.splitlines() == ['{"id":4,"city":"Bonn","amount":"1.25"}', '{"id":5,"city":null,"amount":null}']


def test_arrow_in_and_out(mink, table, client, tmp_path):
    name = table("id BIGINT, s STRING")
    rows = pa.Table.from_batches([numbers(0, 5000), numbers(5000, 100)])
    path = tmp_path / "rows.arrow"
    with pa.OSFile(str(path), "wb") as f, pa.ipc.new_file(f, rows.schema) as w:
        w.write_table(rows)
    assert mink("put", name, str(path))[0] == 0
    assert get(client, name).equals(rows)
    out = tmp_path / "out.arrow"
    assert mink("get", name, "--format", "arrow", "-o", str(out), "--where", "id >= 4990")[0] == 0
    with pa.OSFile(str(out), "rb") as f:
        assert pa.ipc.open_stream(f).read_all().column("id").to_pylist() == list(range(4990, 5100))


def test_reading_has_columns_filters_limits_and_places(mink, table, client):
    name = table("id BIGINT, s STRING")
    put(client, name, numbers(0, 100))
    assert mink("get", name, "--where", "id > 10 AND s LIKE 'row 9%'", "--format", "csv", "--columns", "id", "--limit", "3")[1] == "id\n90\n91\n92\n"
    assert mink("get", name, "--from", "97", "--until", "99", "--format", "csv", "--meta", "_log_offset")[1] == "id,s,_log_offset\n97,row 97,97\n98,row 98,98\n"
    shown = mink("tail", name, "--rows", "2")[1]
    assert [line.split()[0] for line in shown.splitlines()] == ["id", "98", "99"]
    assert json.loads(mink("offsets", name, "--json")[1]) == [{"bucket": 0, "offset": 100}]
    assert json.loads(mink("stats", name, "--json")[1])["rows"] == 100
    assert [t["rows"] for t in json.loads(mink("stats", "--json")[1]) if t["table"] == name] == [100]
    assert [line.split()[1] for line in mink("stats")[1].splitlines() if line.split()[0] == name] == ["100"]
    assert json.loads(mink("cluster", "--json")[1])["incarnations"]


def test_following_shows_rows_as_they_come(server, table, client):
    name = table("id BIGINT, s STRING")
    put(client, name, numbers(0, 3))
    process = subprocess.Popen([BINARY, "tail", "-f", name, "--from", "earliest", "--format", "json"], stdout=subprocess.PIPE, text=True, env={**os.environ, "MINK_SERVER": server.address})
    try:
        assert [json.loads(process.stdout.readline())["id"] for _ in range(3)] == [0, 1, 2]
        put(client, name, numbers(3, 2))
        assert [json.loads(process.stdout.readline())["id"] for _ in range(2)] == [3, 4]
    finally:
        process.terminate()
        process.stdout.close()
        process.wait(30)


def test_a_load_with_a_writer_id_goes_on_where_it_stopped(mink, table, client):
    name = table("id BIGINT, s STRING")
    writer = action(client, "init-writer")[0]["writer"]
    source = "id,s\n" + "".join(f"{i},row {i}\n" for i in range(100))
    first_half = "".join(source.splitlines(True)[:51])
    assert mink("put", name, "--format", "csv", "--batch-rows", "10", "--writer", str(writer), stdin=first_half)[0] == 0
    assert get(client, name).num_rows == 50
    assert mink("put", name, "--format", "csv", "--batch-rows", "10", "--writer", str(writer), stdin=source)[0] == 0
    assert get(client, name).column("id").to_pylist() == list(range(100))
    assert mink("put", name, "--format", "csv", "--batch-rows", "10", "--writer", str(writer), stdin=source)[0] == 0
    assert get(client, name).num_rows == 100


BAD_ROWS = [
    ("csv", "id,city\nx,Oslo\n", '[BAD_VALUE] stdin: row 1: column id: "x" is not an int64'),
    ("csv", "id,city\n1,Oslo\n2\n", "[BAD_CSV] stdin: row 2 has 1 fields, the header has 2"),
    ("csv", "id,id\n1,2\n", "[BAD_CSV] stdin: the header names column id twice"),
    ("csv", "id,cty\n1,2\n", "[COLUMN_NOT_FOUND] stdin: the table has no column cty; did you mean city?"),
    ("csv", "", "[BAD_CSV] stdin: empty: there is no header line"),
    ("json", '{"id":1}\n{"id":2,"cty":"x"}\n', "[COLUMN_NOT_FOUND] stdin: line 2: the table has no column cty; did you mean city?"),
    ("json", '{"id":1}\n{"id":\n', "[BAD_JSON] stdin: line 2: JSON, line 1, column 6: "),
    ("json", "[1]\n", "[BAD_JSON] stdin: line 1: a line must hold one JSON object"),
    ("arrow", "no arrow at all", "stdin"),
]


@pytest.mark.parametrize("kind,text,message", BAD_ROWS)
def test_bad_rows_are_named(mink, events, kind, text, message):
    status, out, err = mink("put", events, "--format", kind, stdin=text)
    assert status == 1 and out == ""
    assert message in err
    status, out, _ = mink("put", events, "--format", kind, "--json", stdin=text)
    assert status == 1 and json.loads(out)["error"]["code"]


BAD_CALLS = [
    (("puts",), "unknown command: puts; did you mean: put?\nTry: mink --help"),
    (("put",), "missing argument: TABLE"),
    (("get", "a.b", "--limt", "3"), "unknown option: --limt; did you mean: --limit?\nTry: mink get --help"),
    (("get", "a.b", "--limit", "x"), '--limit: "x" is not a whole number'),
    (("get", "a.b", "--limit"), "--limit"),
    (("get", "a.b", "c.d"), "c.d"),
    (("completion", "csh"), "unknown shell: csh (known: bash, zsh, fish)"),
    (("dev", "--flight-port", "70000"), '--flight-port: "70000" is not a whole number from 0 to 65535'),
]


@pytest.mark.parametrize("arguments,message", BAD_CALLS)
def test_wrong_usage_is_status_2_and_says_what_is_right(mink, arguments, message):
    status, out, err = mink(*arguments)
    assert status == 2 and out == ""
    assert message in err


def test_errors_of_the_server_come_through(mink, events):
    near = events[:-1] + ("x" if events[-1] != "x" else "y")
    status, _, err = mink("get", near)
    assert status == 1 and "[TABLE_NOT_FOUND]" in err and "did you mean" in err
    status, _, err = mink("get", events, "--where", "amont > 10")
    assert status == 1 and '[COLUMN_NOT_FOUND] line 1, column 1: table ' + events + ' has no column "amont"; did you mean amount?' in err
    status, _, err = mink("table", "create", "shop.bad", "id BIGNT")
    assert status == 1 and "[BAD_DDL] line 1, column 27: there is no type BIGNT; did you mean BIGINT?" in err
    # The caret stands below the word.
    text, caret = err.splitlines()[-2:]
    assert text.startswith("hint: ") and text[caret.index("^"):].startswith("BIGNT")
    status, out, _ = mink("table", "create", "shop.bad", "id BIGNT", "--json")
    assert json.loads(out)["error"]["hint"].splitlines()[1].strip() == "^"
    status, _, err = mink("get", events, "--server", "127.0.0.1:1", "--timeout", "2000")
    assert status == 1 and "[UNAVAILABLE]" in err
    status, _, err = mink("get", events, server_address="nowhere")
    assert status in (1, 2) and err


def test_help_and_version(mink):
    assert mink("version") == (0, f"mink {VERSION}\n", "")
    assert json.loads(mink("version", "--json")[1]) == {"version": VERSION}
    status, out, _ = mink("--help")
    assert status == 0
    commands = [line.split()[0] for line in out.split("Commands:\n")[1].split("\n\n")[0].splitlines()]
    assert {"dev", "serve", "db", "table", "partition", "put", "get", "tail"} <= set(commands)
    for command in ("dev", "serve", "db create", "table create", "put", "get", "tail", "cluster", "completion"):
        status, out, _ = mink(*command.split(), "--help")
        assert status == 0 and f"Usage: mink {command}" in out and "Examples:" in out


def test_completion_offers_commands_options_and_live_tables(mink, events):
    assert "put" in mink("__complete", "pu")[1].splitlines()
    assert set(mink("__complete", "table", "")[1].splitlines()) == {"create", "alter", "drop", "list", "show"}
    assert "--limit" in mink("__complete", "get", "--li")[1].splitlines()
    assert events in mink("__complete", "get", events[:6])[1].splitlines()
    for shell in ("bash", "zsh"):
        script = mink("completion", shell)[1]
        assert "mink __complete" in script
    assert subprocess.run(["bash", "-n"], input=mink("completion", "bash")[1], text=True, timeout=30).returncode == 0


def test_print_config_tells_where_each_value_came_from(mink, tmp_path):
    config = tmp_path / "mink.toml"
    config.write_text('metadata = "sqlite:///m.db"\nstore = "s3://bucket/p?access_key=AKIA&secret_key=hush&region=eu"\n[wal]\nlinger_us = 7\nsize_max = "2MiB"\n')
    status, out, _ = mink("serve", "--config", str(config), "--print-config", "--wal.size_max", "1MiB", environment={"MINK_WAL_IN_FLIGHT": "9"})
    assert status == 0
    assert f"linger_us = 7   # {config}, line 4\n" in out
    assert 'size_max = "1MiB"   # --wal.size_max\n' in out
    assert "in_flight = 9   # MINK_WAL_IN_FLIGHT\n" in out
    assert "put_rate = 30   # default\n" in out
    assert "hush" not in out and "AKIA" not in out and "region=eu" in out


BAD_CONFIGS = [
    ("[wal]\nlingr_us = 5\n", ", line 2: unknown setting wal.lingr_us; did you mean wal.linger_us?"),
    ("[wal]\nlinger_us = soon\n", ', line 2: wal.linger_us = "soon" is not a whole number'),
    ("[wal]\nin_flight = 0\n", ", line 2: wal.in_flight = 0 is outside 1 to 1024"),
    ("metadata\n", ", line 1, column 9: expected key = value"),
]


@pytest.mark.parametrize("text,message", BAD_CONFIGS)
def test_a_bad_configuration_is_named(mink, tmp_path, text, message):
    config = tmp_path / "mink.toml"
    config.write_text(text)
    status, out, err = mink("serve", "--config", str(config))
    assert status == 2 and out == "" and f"{config}{message}" in err


BAD_STARTS = [
    (("--store", "memory:"), "[MISSING_SETTING] metadata is not set"),
    (("--metadata", "sqlite:///tmp/x.db"), "[MISSING_SETTING] store is not set"),
    (("--metadata", "mysql://h/d", "--store", "memory:"), "[BAD_METADATA] metadata mysql://h/d: unknown kind"),
    (("--metadata", "sqlite://{tmp}/m.db", "--store", "ftp://x"), "[BAD_STORE] store ftp://x: unknown kind"),
    (("--metadata", "sqlite://{tmp}/m.db", "--store", "memory:?profile=warp"), "unknown profile warp"),
    (("--metadata", "sqlite://{tmp}/none/m.db", "--store", "memory:"), "{tmp}/none/m.db"),
    (("--metadata", "sqlite://{tmp}/m.db", "--store", "memory:", "--log.level", "loud"), 'log.level = "loud": debug, info, warn or error'),
    (("--metadata", "sqlite://{tmp}/m.db", "--store", "memory:", "--flight.listen", "nowhere"), "nowhere"),
]


@pytest.mark.parametrize("arguments,message", BAD_STARTS)
def test_a_start_that_cannot_be_is_refused_by_name(mink, tmp_path, arguments, message):
    status, out, err = mink("serve", *[a.format(tmp=tmp_path) for a in arguments])
    assert status == 1 and out == ""
    assert message.format(tmp=tmp_path) in err


def test_two_servers_on_one_folder(mink, server):
    status, out, err = mink("dev", "--dir", server.ready["dir"], "--flight-port", "0", "--http-port", "0")
    assert status == 1 and out == ""
    assert f"is in use by process {server.process.pid}" in err and "hint: stop that process, or give this one another folder" in err


def test_a_folder_of_somebody_else_is_left_alone_by_fresh(mink, tmp_path):
    (tmp_path / "precious.txt").write_text("keep me")
    s = Server(tmp_path, arguments=["--fresh"])
    (pathlib.Path(s.folder) / "data").mkdir()
    (pathlib.Path(s.folder) / "data" / "mine.txt").write_text("keep me, too")
    s.start()
    with s.client() as c:
        action(c, "create-database", database="shop")
    assert s.stop() == 0
    s = Server(tmp_path, arguments=["--fresh"]).start()
    with s.client() as c:
        assert action(c, "list-databases") == []
    assert s.stop() == 0
    assert (pathlib.Path(s.folder) / "data" / "mine.txt").read_text() == "keep me, too"

# SPDX-License-Identifier: Apache-2.0
import base64
import json

import pyarrow as pa
import pyarrow.flight as fl

import wire
from conftest import action, fails, get, numbers, path, put


def test_every_action_is_described(client):
    listed = {a.type: a.description for a in client.list_actions()}
    assert {"create-database", "create-table", "alter-table", "drop-table", "list-tables", "get-table", "create-partition", "drop-partition", "list-partitions",
            "list-offsets", "init-writer", "cluster", "stats", "flush", "CancelFlightInfo", "RenewFlightEndpoint"} <= set(listed)
    assert all(listed.values())


def test_databases(client):
    assert action(client, "create-database", database="d1") == [{}]
    with fails(pa.ArrowException, "DATABASE_EXISTS", "d1"):
        action(client, "create-database", database="d1")
    assert action(client, "create-database", database="d1", if_not_exists=True) == [{}]
    assert {"database": "d1"} in action(client, "list-databases")
    action(client, "create-table", ddl="CREATE TABLE d1.t (x INT)")
    with fails(pa.ArrowInvalid, "d1"):
        action(client, "drop-database", database="d1")
    assert action(client, "drop-database", database="d1", cascade=True) == [{}]
    assert {"database": "d1"} not in action(client, "list-databases")
    assert action(client, "drop-database", database="d1", if_exists=True) == [{}]
    with fails(Exception, "DATABASE_NOT_FOUND"):
        action(client, "drop-database", database="d1")


def test_tables_in_three_forms(client):
    action(client, "create-table", ddl="CREATE TABLE forms.a (id BIGINT NOT NULL, s STRING COMMENT 'text') WITH ('bucket.num'='2')")
    action(client, "create-table", table="forms.b", columns=[{"name": "id", "type": "BIGINT NOT NULL"}, {"name": "s", "type": "STRING"}], options={"bucket.num": "2"})
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("s", pa.string())])
    action(client, "create-table", table="forms.c", arrow_schema=base64.b64encode(schema.serialize()).decode(), options={"bucket.num": "2"})
    for name in "abc":
        assert client.get_schema(path(f"forms.{name}")).schema == schema
        definition = action(client, "get-table", table=f"forms.{name}")[0]
        assert definition["definition"]["options"] == {"bucket.num": "2"}
        # What it prints makes an equal table.
        action(client, "create-table", ddl=definition["ddl"].replace(f"forms.{name}", f"forms.{name}2", 1))
        assert client.get_schema(path(f"forms.{name}2")).schema == schema
    assert [t["table"] for t in action(client, "list-tables", database="forms")] == [f"forms.{n}" for n in ("a", "a2", "b", "b2", "c", "c2")]
    with fails(pa.ArrowException, "TABLE_EXISTS", "forms.a"):
        action(client, "create-table", ddl="CREATE TABLE forms.a (x INT)")
    assert action(client, "create-table", ddl="CREATE TABLE IF NOT EXISTS forms.a (x INT)")[0]["existed"] is True
    action(client, "drop-table", table="forms.a")
    action(client, "drop-table", ddl="DROP TABLE forms.b")
    with fails(Exception, "TABLE_NOT_FOUND"):
        action(client, "drop-table", table="forms.a")
    assert action(client, "drop-table", table="forms.a", if_exists=True) == [{}]


def test_options_change(client, table):
    name = table("id BIGINT")
    action(client, "alter-table", table=name, set={"table.log.ttl": "1 d"})
    assert action(client, "get-table", table=name)[0]["definition"]["options"]["table.log.ttl"] == "1 d"
    action(client, "alter-table", ddl=f"ALTER TABLE {name} RESET ('table.log.ttl')")
    assert "table.log.ttl" not in action(client, "get-table", table=name)[0]["definition"]["options"]
    with fails(pa.ArrowInvalid, "bucket.num"):
        action(client, "alter-table", table=name, set={"bucket.num": "9"})


def test_partitions(client, table):
    name = table("id BIGINT, region STRING", partition_by="region")
    action(client, "create-partition", table=name, partition="EU")
    action(client, "create-partition", table=name, partition={"region": "US"})
    with fails(Exception, "PARTITION_EXISTS"):
        action(client, "create-partition", table=name, partition="EU")
    assert action(client, "create-partition", table=name, partition="EU", if_not_exists=True) == [{}]
    assert [p["partition"] for p in action(client, "list-partitions", table=name)] == ["EU", "US"]
    action(client, "alter-table", ddl=f"ALTER TABLE {name} DROP PARTITION (region='EU')")
    assert [p["partition"] for p in action(client, "list-partitions", table=name)] == ["US"]
    with fails(Exception, "PARTITION_NOT_FOUND"):
        action(client, "drop-partition", table=name, partition="EU")


def test_offsets(client, table):
    name = table("id BIGINT, s STRING", "'bucket.num'='2'")
    put(client, name, numbers(0, 7), bucket=1)
    assert action(client, "list-offsets", table=name) == [{"bucket": 0, "offset": 0}, {"bucket": 1, "offset": 7}]
    assert action(client, "list-offsets", table=name, bucket=1, at="earliest") == [{"bucket": 1, "offset": 0}]
    assert action(client, "list-offsets", table=name, bucket=1, at="ts:0") == [{"bucket": 1, "offset": 0}]
    with fails(pa.ArrowInvalid, "BAD_VALUE", "latest"):
        action(client, "list-offsets", table=name, at="noon")


def test_stats_cluster_and_flush(client, table):
    name = table("id BIGINT, s STRING")
    put(client, name, numbers(0, 7))
    assert "7" in json.dumps(action(client, "stats", table=name))
    assert len(action(client, "cluster")) == 1
    assert action(client, "flush") == [{}]
    assert get(client, name).num_rows == 7


def test_a_request_id_gives_the_first_answer_again(client):
    first = action(client, "init-writer", request_id="r-1")
    assert action(client, "init-writer", request_id="r-1") == first
    assert action(client, "init-writer", request_id="r-2") != first
    made = action(client, "create-table", ddl="CREATE TABLE dedupe.t (x INT)", request_id="make t")
    assert action(client, "create-table", ddl="CREATE TABLE dedupe.t (x INT)", request_id="make t") == made
    for _ in range(2):  # errors, too
        with fails(pa.ArrowException, "TABLE_EXISTS"):
            action(client, "create-table", ddl="CREATE TABLE dedupe.t (x INT)", request_id="again")


def test_64_bit_numbers_as_text(client):
    writer = action(client, "init-writer", int64="string")[0]["writer"]
    assert isinstance(writer, str) and int(writer) > 0
    assert isinstance(action(client, "init-writer")[0]["writer"], int)


def test_an_empty_body_means_an_empty_object(client):
    assert len(list(client.do_action(fl.Action("cluster", b"")))) == 1


def test_flight_infos_are_cancelled_and_renewed(client, table):
    name = table("id BIGINT, s STRING")
    put(client, name, numbers(0, 3))
    info = client.get_flight_info(path(name))
    # CancelFlightInfoRequest {1: info} → CancelFlightInfoResult {1: CANCELLED = 1}
    result = list(client.do_action(fl.Action("CancelFlightInfo", wire.field(1, info.serialize()))))
    assert [r.body.to_pybytes() for r in result] == [b"\x08\x01"]
    # RenewFlightEndpointRequest {1: endpoint} → FlightEndpoint
    result = list(client.do_action(fl.Action("RenewFlightEndpoint", wire.field(1, info.endpoints[0].serialize()))))
    renewed = fl.FlightEndpoint.deserialize(result[0].body.to_pybytes())
    assert renewed.expiration_time.as_py() >= info.endpoints[0].expiration_time.as_py()
    assert client.do_get(renewed.ticket).read_all().num_rows == 3
    with fails(pa.ArrowInvalid, "BAD_MESSAGE"):
        list(client.do_action(fl.Action("RenewFlightEndpoint", b"nonsense")))


def test_handshake_gives_a_token_to_everybody(client, server):
    key, value = client.authenticate_basic_token("user", "pass:word")
    assert key == b"authorization" and value.startswith(b"Bearer ") and len(value) > 20
    options = fl.FlightCallOptions(headers=[(key, value)])
    assert list(client.do_action(fl.Action("list-databases", b""), options)) is not None

    class Auth(fl.ClientAuthHandler):
        def authenticate(self, outgoing, incoming):
            outgoing.write(fl.BasicAuth(b"user", b"password").serialize())
            self.token = incoming.read()

        def get_token(self):
            return self.token

    auth = Auth()
    with server.client() as c:
        c.authenticate(auth)
        assert len(auth.token) > 10
        list(c.do_action(fl.Action("list-databases", b"")))


def test_unknown_actions_and_keys_name_the_near_one(client):
    with fails(pa.ArrowNotImplementedError, "UNKNOWN_ACTION", "did you mean list-tables?"):
        action(client, "list-table")
    with fails(pa.ArrowInvalid, "UNKNOWN_KEY", "database"):
        action(client, "list-tables", databse="x")
    with fails(pa.ArrowInvalid, "BAD_JSON"):
        list(client.do_action(fl.Action("list-tables", b"{nonsense")))
    with fails(pa.ArrowInvalid, "BAD_JSON", "object"):
        list(client.do_action(fl.Action("list-tables", b"[]")))
    with fails(pa.ArrowNotImplementedError, "NO_LOOKUP"):
        action(client, "lookup", table="a.b", keys=[{}])
    with fails(pa.ArrowNotImplementedError, "ONE_NODE"):
        action(client, "move-bucket", table="a.b", bucket=0)
    with fails(pa.ArrowNotImplementedError, "NO_SESSIONS"):
        list(client.do_action(fl.Action("GetSessionOptions", b"")))

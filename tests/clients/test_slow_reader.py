# SPDX-License-Identifier: Apache-2.0
"""A reader that stops costs its window and two batches, not the table (StarRocks/starrocks#78749, OpenSearch#21899)."""
import threading

import pyarrow as pa
import pyarrow.flight as fl

from conftest import action, numbers, path, put, ticket

MIB = 1 << 20


def wait_until_still(server, samples=5, step=0.2, timeout=30):
    """The server's memory once it has stopped changing."""
    event = threading.Event()
    last, same = server.rss(), 0
    for _ in range(int(timeout / step)):
        event.wait(step)
        now = server.rss()
        same = same + 1 if abs(now - last) < MIB else 0
        last = now
        if same >= samples:
            break
    return last


def test_stopped_readers_hold_little_and_go_on(own_server):
    c = own_server.client()
    action(c, "create-table", ddl="CREATE TABLE shop.big (id BIGINT, s STRING) WITH ('table.log.arrow.compression.type'='NONE')")
    batch = pa.record_batch({"id": pa.array(range(20000), pa.int64()), "s": pa.array(["x" * 92] * 20000)})
    put(c, "shop.big", *[batch] * 100)  # 200 MB
    c.do_get(ticket("shop.big")).read_all()  # caches are full now
    before = wait_until_still(own_server)
    clients = [own_server.client() for _ in range(20)]
    readers = [x.do_get(ticket("shop.big")) for x in clients]
    for r in readers:
        r.read_chunk()
    after = wait_until_still(own_server)
    assert after - before < 20 * 12 * MIB, f"{(after - before) / MIB:.0f} MiB for 20 readers that stopped"
    for r in readers[:3]:
        rows = 0
        for chunk in r:
            rows += len(chunk.data) if chunk.data else 0
        assert rows > 100 * 20000 - 200000  # the first chunk was read before
    for r in readers[3:]:
        r.cancel()
    for x in clients:
        x.close()
    c.close()


def test_a_writer_is_held_back_by_what_is_not_durable_only(own_server):
    """Memory stays bounded while a client writes faster than the store takes."""
    c = own_server.client()
    action(c, "create-table", ddl="CREATE TABLE shop.big (id BIGINT, s STRING) WITH ('table.log.arrow.compression.type'='NONE')")
    batch = pa.record_batch({"id": pa.array(range(20000), pa.int64()), "s": pa.array(["x" * 92] * 20000)})
    w, reader = c.do_put(path("shop.big"), batch.schema)
    high = 0
    for i in range(300):  # 600 MB
        w.write_batch(batch)
        high = max(high, own_server.rss())
    w.done_writing()
    while reader.read() is not None:
        pass
    w.close()
    assert high < 1500 * MIB, f"{high / MIB:.0f} MiB"
    c.close()

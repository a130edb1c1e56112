# SPDX-License-Identifier: Apache-2.0
"""One generator with a seed for all load: row E ("event", about 100 bytes) and wide rows."""
import numpy as np
import pyarrow as pa

KINDS = np.array(["view", "click", "cart", "buy", "refund", "login", "logout", "search"])
CITIES = np.array(["Oslo", "Bergen", "Stockholm", "Copenhagen", "Helsinki", "Tallinn", "Riga", "Vilnius", "Warsaw", "Prague", "Vienna", "Zurich"])

E_DDL = ("id BIGINT, ts TIMESTAMP(6), user INT, kind STRING, amount DECIMAL(12,2), price DOUBLE, city STRING, flag BOOLEAN, "
         "note STRING, seq BIGINT")


def decimals(cents):
    """decimal128(12, 2) from whole cents, without a float in between."""
    words = np.zeros((len(cents), 2), dtype=np.int64)
    words[:, 0] = cents
    return pa.Array.from_buffers(pa.decimal128(12, 2), len(cents), [None, pa.py_buffer(words.tobytes())])


def event_batch(rows, first=0, seed=1):
    r = np.random.default_rng(seed + first)
    ids = np.arange(first, first + rows, dtype=np.int64)
    cents = r.integers(100, 100_000, rows)
    words = r.integers(0, 4096, (rows, 2))
    return pa.record_batch({
        "id": ids,
        "ts": pa.array(1_700_000_000_000_000 + ids * 1000, pa.timestamp("us")),
        "user": pa.array(r.integers(0, 100_000, rows).astype(np.int32)),
        "kind": pa.array(KINDS[r.integers(0, len(KINDS), rows)]),
        "amount": decimals(cents),
        "price": pa.array(np.round(cents * 0.0119, 2)),
        "city": pa.array(CITIES[r.integers(0, len(CITIES), rows)]),
        "flag": pa.array(r.integers(0, 2, rows).astype(bool)),
        "note": pa.array(["note-%06d-%012x" % (a, b * 1_000_003) for a, b in words]),
        "seq": ids,
    })


def wide_batch(rows, columns, first=0, seed=1):
    """int64, double and string columns in turn; c0 is sorted."""
    r = np.random.default_rng(seed + first)
    arrays = []
    for i in range(columns):
        if i == 0:
            arrays.append(pa.array(np.arange(first, first + rows, dtype=np.int64)))
        elif i % 3 == 0:
            arrays.append(pa.array(r.integers(0, 1_000_000, rows)))
        elif i % 3 == 1:
            arrays.append(pa.array(np.round(r.random(rows) * 1000, 2)))
        else:
            arrays.append(pa.array(CITIES[r.integers(0, len(CITIES), rows)]))
    return pa.record_batch(arrays, names=["c%d" % i for i in range(columns)])


def wide_ddl(columns):
    kinds = ["BIGINT", "DOUBLE", "STRING"]
    return ", ".join("c%d %s" % (i, kinds[i % 3]) for i in range(columns))

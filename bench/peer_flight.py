# SPDX-License-Identifier: Apache-2.0
"""The peer: a plain pyarrow Flight server that drops what is put, or keeps it and serves it from memory."""
import pyarrow as pa
import pyarrow.flight as fl


class Peer(fl.FlightServerBase):
    def __init__(self, location):
        super().__init__(location)
        self.kept = {}

    def do_put(self, context, descriptor, reader, writer):
        name = descriptor.path[0].decode()
        keep = self.kept.setdefault(name, (reader.schema, []))[1] if name.startswith("keep") else None
        for n, chunk in enumerate(reader):
            if keep is not None:
                keep.append(chunk.data)
            writer.write(pa.py_buffer(b'{"batch":%d}' % n))

    def do_get(self, context, ticket):
        schema, batches = self.kept[ticket.ticket.decode()]
        return fl.GeneratorStream(schema, iter(batches))


if __name__ == "__main__":
    server = Peer("grpc://127.0.0.1:0")
    print(server.port, flush=True)
    server.serve()

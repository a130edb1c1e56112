# SPDX-License-Identifier: Apache-2.0
"""Flight messages made by hand and sent through plain gRPC: what no Flight client would send."""
import grpc

SERVICE = "/arrow.flight.protocol.FlightService/"


def varint(n):
    out = b""
    while n >= 0x80:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def flight_data(descriptor=None, header=None, metadata=None, body=None):
    out = b""
    if descriptor is not None:
        out += field(1, descriptor)
    if header is not None:
        out += field(2, header)
    if metadata is not None:
        out += field(3, metadata)
    if body is not None:
        out += field(1000, body)
    return out


def path_descriptor(table):
    return b"\x08\x01" + b"".join(field(3, p.encode()) for p in table.split("."))


def split_ipc(encapsulated):
    """(bare flatbuffer, body) of an encapsulated IPC message."""
    assert encapsulated[:4] == b"\xff\xff\xff\xff"
    size = int.from_bytes(encapsulated[4:8], "little")
    return encapsulated[8:8 + size], encapsulated[8 + size:]


class Raw:
    def __init__(self, address, **options):
        self.channel = grpc.insecure_channel(address, options=list(options.items()) + [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)])

    def call(self, method, messages, timeout=20, metadata=None):
        """All answers; raises grpc.RpcError."""
        stream = self.channel.stream_stream(SERVICE + method)
        return list(stream(iter(messages), timeout=timeout, metadata=metadata))

    def stream(self, method, messages, timeout=20):
        return self.channel.stream_stream(SERVICE + method)(iter(messages), timeout=timeout)

    def close(self):
        self.channel.close()

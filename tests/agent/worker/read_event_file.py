"""Reads a TensorBoard event file without TensorBoard: checks the framing and both CRCs of every record and prints a
line a value: STEP TAG VALUE, or STEP TAG text BYTES. The tests' independent reader.

usage: read_event_file.py FILE
"""
import struct
import sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    at = 0
    while at < len(data):
        length, length_crc = struct.unpack_from("<QI", data, at)
        assert masked(data[at:at + 8]) == length_crc, f"CRC of the length at {at}"
        body = data[at + 12:at + 12 + length]
        (body_crc,) = struct.unpack_from("<I", data, at + 12 + length)
        assert masked(body) == body_crc, f"CRC of the event at {at}"
        yield body
        at += 16 + length


def fields(data):
    """(field, value) of a protobuf message: integers, floats or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        wire = key & 7
        if wire == 0:
            yield key >> 3, varint()
        elif wire == 2:
            length = varint()
            yield key >> 3, data[at:at + length]
            at += length
        else:
            kind, size = {1: ("<d", 8), 5: ("<f", 4)}[wire]
            yield key >> 3, struct.unpack_from(kind, data, at)[0]
            at += size


def main():
    with open(sys.argv[1], "rb") as file:
        events = [dict(fields(body)) for body in records(file.read())]
    assert events[0][3] == b"brain.Event:2", events[0]
    for event in events[1:]:
        for _, value in fields(event[5]):
            value = dict(fields(value))
            tag = value[1].decode()
            if 2 in value:
                print(event.get(2, 0), tag, f"{value[2]:.6g}")
                continue
            assert dict(fields(dict(fields(value[9]))[1]))[1] == b"text"
            tensor = dict(fields(value[8]))
            assert tensor[1] == 7  # DT_STRING
            print(event.get(2, 0), tag, "text", len(tensor[8]))


main()

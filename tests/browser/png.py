"""Making a screenshot small: text on a plain ground needs no more colours than a palette has."""

import struct
import zlib
from collections import Counter

COLOURS = 80
SIGNATURE = b"\x89PNG\r\n\x1a\n"


def smaller(data: bytes) -> bytes:
    """The same picture (8 bits, RGB or RGBA, not interlaced) in the colours that most of it has, and near ones."""
    width, height, channels, packed = _parts(data)
    pixels = _unfiltered(zlib.decompress(packed), width * channels, height, channels)
    colours = [pixels[at : at + 3] for at in range(0, len(pixels), channels)]
    counted = Counter(colours)
    palette = [colour for colour, _ in counted.most_common(COLOURS)]
    near = {colour: min(range(len(palette)), key=lambda at: _apart(palette[at], colour)) for colour in counted}
    indexes = bytes(map(near.__getitem__, colours))
    rows = b"".join(b"\0" + indexes[at : at + width] for at in range(0, len(indexes), width))
    return b"".join(
        (
            SIGNATURE,
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            _chunk(b"PLTE", b"".join(palette)),
            _chunk(b"IDAT", zlib.compress(rows, 9)),
            _chunk(b"IEND", b""),
        )
    )


def _parts(data: bytes) -> tuple[int, int, int, bytes]:
    assert data.startswith(SIGNATURE)
    at, packed, width, height, channels = len(SIGNATURE), b"", 0, 0, 0
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert (depth, interlaced) == (8, 0) and colour in (2, 6)
            channels = 3 if colour == 2 else 4
        elif kind == b"IDAT":
            packed += body
        at += length + 12
    return width, height, channels, packed


def _unfiltered(data: bytes, length: int, height: int, channels: int) -> bytes:
    rows, above = [], bytearray(length)
    for number in range(height):
        begin = number * (length + 1)
        kind, row = data[begin], bytearray(data[begin + 1 : begin + 1 + length])
        for at in range(length if kind else 0):
            left = row[at - channels] if at >= channels else 0
            if kind == 1:
                more = left
            elif kind == 2:
                more = above[at]
            elif kind == 3:
                more = (left + above[at]) // 2
            else:
                more = _paeth(left, above[at], above[at - channels] if at >= channels else 0)
            row[at] = (row[at] + more) & 255
        rows.append(bytes(row))
        above = row
    return b"".join(rows)


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min((left, up, corner), key=lambda one: abs(guess - one))


def _apart(one: bytes, other: bytes) -> int:
    return sum((first - second) ** 2 for first, second in zip(one, other))


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

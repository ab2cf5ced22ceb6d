"""Gzip of large answers in several threads at once: bytes that any client unpacks as usual."""

from __future__ import annotations

import struct
import zlib

from tb_pastnet.serve.threads import in_threads

_LEVEL = 1
_PIECE = 1 << 20
# Deflate, no name, no time, so that equal bytes are packed to equal ones; level 1, unknown system.
_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
_TAIL = struct.Struct("<II")


def gzipped(body: bytes) -> bytes:
    """Packs bytes as gzip does.

    Pieces are deflated on their own and end at a byte each, so that they make one stream. They
    don't see one another, which costs 32 KB of matches a MB: nothing that shows.

    Args:
        body: any bytes.

    Example:
        >>> import gzip
        >>> gzip.decompress(gzipped(b"abc"))
        b'abc'
    """
    ends = range(_PIECE, len(body) + _PIECE, _PIECE) if body else (0,)

    def deflated(end: int) -> bytes:
        stream = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        last = end >= len(body)
        packed = stream.compress(body[max(end - _PIECE, 0) : end])
        return packed + stream.flush(zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH)

    pieces = in_threads(deflated, ends)
    # Summed up here, while the threads deflate.
    tail = _TAIL.pack(zlib.crc32(body), len(body) & 0xFFFFFFFF)
    return b"".join([_HEAD, *pieces, tail])

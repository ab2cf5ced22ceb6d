"""Packed answers: what gzip itself unpacks, however many pieces they have."""

from __future__ import annotations

import gzip
import zlib

import numpy as np
import pytest

from tb_pastnet.serve.http import answers as packing
from tb_pastnet.serve.http.answers import gzipped


@pytest.mark.parametrize("size", [0, 1, 999, 1000, 1001, 2000, 12_345])
def test_any_number_of_pieces_is_one_stream(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "_PIECE", 1000)
    body = np.random.default_rng(size).integers(0, 7, size, np.uint8).tobytes()
    packed = gzipped(body)
    assert gzip.decompress(packed) == body
    stream = zlib.decompressobj(31)
    assert stream.decompress(packed) == body
    assert stream.eof
    assert not stream.unused_data


def test_what_hardly_shrinks_is_taken_along_as_it_is() -> None:
    noise = np.random.default_rng(0).integers(0, 256, 3 << 20, np.uint8).tobytes()
    rough = np.random.default_rng(0).integers(0, 64, 3 << 20, np.uint8).tobytes()
    calm = bytes(3 << 20)
    packed = gzipped(noise + calm + rough)
    assert gzip.decompress(packed) == noise + calm + rough
    # six bits of eight: less than a third is saved
    assert len(noise) + len(rough) < len(packed) < 1.02 * (len(noise) + len(rough))


def test_equal_bytes_are_packed_to_equal_ones() -> None:
    body = bytes(range(256)) * 10_000
    assert gzipped(body) == gzipped(bytes(body))
    assert len(gzipped(body)) < len(body) / 50

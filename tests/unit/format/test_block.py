"""Blocks come back exactly, decode alone, and are refused when they don't hold together."""

import zlib

import numpy as np
import pytest

from tb_pastnet.core.quantize import NAN
from tb_pastnet.core.statistics import STATISTICS, dequantize_statistic
from tb_pastnet.errors import DamagedRecord, InvalidArgument
from tb_pastnet.format import limits, varint
from tb_pastnet.format.block import (
    Block,
    decode_block,
    encode_block,
    encode_blocks,
    open_block,
    restore,
)
from tb_pastnet.format.layout import ROWS
from tests.sealed import EIGHT, NUMBERED, as_counts, counted, heads, sealed
from tests.sealed import block as block_message

TAG = "channels/w"


def random_block(records=5, channels=7, seed=0) -> Block:
    rng = np.random.default_rng(seed)
    codes = rng.integers(-32768, 32768, (len(ROWS), records, channels), dtype=np.int16)
    steps = np.cumsum(rng.integers(1, 1000, records))
    return Block(np.cumsum(rng.integers(1, 4, records)), steps, steps - 1, codes)


def roundtrip(block: Block) -> Block:
    message = encode_block(block, tag=TAG, lineage=3)
    return decode_block(message, tag=TAG, step=int(block.steps[-1]), lineage=3)


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (16, 1), (5, 7)])
def test_any_block_comes_back_exactly(shape):
    block = random_block(*shape)
    back = roundtrip(block)
    assert (back.codes == block.codes).all()
    assert (back.steps == block.steps).all()
    assert (back.past_steps == block.past_steps).all()
    assert (back.sequence == block.sequence).all()
    assert back.channels == shape[1]


def test_variables_that_are_packed_together_are_as_if_each_were_alone():
    block = random_block(5, 9)
    block.codes[:, :, 4:] = 7
    ranges = [("a", 0, 4), ("b", 4, 5), ("c", 5, 9)]
    for (tag, start, stop), message in zip(
        ranges, encode_blocks(block, ranges, lineage=3), strict=True
    ):
        own = Block(block.sequence, block.steps, block.past_steps, block.codes[:, :, start:stop])
        assert message == encode_block(own, tag=tag, lineage=3)
        back = decode_block(message, tag=tag, step=int(block.steps[-1]), lineage=3)
        assert (back.codes == own.codes).all()


def test_a_past_after_the_record_and_a_first_step_below_zero_are_kept():
    block = random_block(2, 3)
    odd = Block(block.sequence, np.array([0, 4]), np.array([-1, 9]), block.codes)
    assert roundtrip(odd).past_steps.tolist() == [-1, 9]


def test_still_channels_cost_almost_nothing():
    codes = np.zeros((len(ROWS), 16, 512), np.int16)
    steps = np.arange(16)
    assert len(encode_block(Block(steps, steps, steps, codes), tag=TAG, lineage=0)) < 104


def payload_of(*parts: bytes, version: int = 1) -> bytes:
    return sealed(b"".join(parts), version=version, kind=1, tag=TAG, step=9, lineage=3)


def decode(message: bytes) -> Block:
    return decode_block(message, tag=TAG, step=9, lineage=3)


CONSTANT = b"\x00\x00\x00"


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([varint.encode([0, 1])], "a block of reasonable size, got 1 x 0 cells"),
        ([varint.encode([limits.MAX_CHANNELS + 1, 1])], "a number of at most"),
        ([varint.encode([limits.MAX_CHANNELS, 3])], "a block of reasonable size"),
        ([varint.encode([1, 2])], "1 more bytes, got 0"),
        ([varint.encode([1, 1]), bytes(3), b"\x07"], "constant or deflated, got mode 7"),
        ([varint.encode([1, 1]), bytes(3), 8 * CONSTANT, b"x"], "the end of the record, got 1"),
        ([varint.encode([1, 2]), bytes(6), 8 * CONSTANT], "increasing steps, got steps that go"),
        ([varint.encode([1, 1]), bytes(3), b"\x01\x02xx"], "deflated bytes, got Error -3"),
        (
            [
                varint.encode([1, 2]),
                varint.encode_signed([1 << 61, 1 << 61, 0, 1, 0, 0]),
                8 * CONSTANT,
            ],
            "steps below 2\\*\\*62, got larger ones",
        ),
        (
            [varint.encode([1, 1]), bytes(3), b"\x01", varint.encode([9]), zlib.compress(b"1")],
            "2 bytes once inflated, got at least 1",
        ),
        ([b"\xff" * 11], "a number of at most 10 bytes"),
        ([varint.encode([1, 1]), varint.encode([1 << 63])], "numbers below 2\\*\\*62"),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_a_payload_that_does_not_hold_together_is_damaged(parts, text, version):
    if version == 2 and len(parts) > 2:
        parts = [*parts[:2], heads(EIGHT), *parts[2:]]
    with pytest.raises(DamagedRecord, match=text):
        decode(payload_of(*parts, version=version))


@pytest.mark.parametrize("version", [1, 2])
def test_a_bomb_is_not_inflated(version):
    bomb = zlib.compress(bytes(10_000_000))
    parts = [varint.encode([1, 1]), bytes(3), *[heads(["norm"], {})][: version - 1]]
    parts += [b"\x01", varint.encode([len(bomb)]), bomb]
    with pytest.raises(DamagedRecord, match="expected 2 bytes once inflated, got at least 3"):
        decode(payload_of(*parts, version=version))


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([], "1 more bytes, got 0"),
        ([b"\5\2"], "5 more bytes, got 1"),
        ([varint.encode([limits.MAX_HEADS + 1])], "a number of at most 4096"),
        ([b"\2\2\2"], "each statistic once, got one twice"),
        ([b"\1\2", CONSTANT, b"x"], "the end of the record, got 1"),
        ([b"\1\2"], "1 more bytes, got 0"),
        ([b"\2\3\0"], "a plane predicted by an earlier one, got plane 0"),
        ([b"\4\2\5\1\7"], "a plane predicted by an earlier one, got plane 1"),
        ([b"\5\2\5\0\7\1"], "a plane predicted by an earlier one, got plane 1"),
        ([b"\2\0\5"], "5 more bytes, got 0"),
        ([b"\3\0\1a\5\1"], "constant or deflated, got mode 5"),
    ],
)
def test_heads_that_do_not_hold_together_are_damaged(parts, text):
    with pytest.raises(DamagedRecord, match=text):
        decode(payload_of(varint.encode([1, 1]), bytes(3), *parts, version=2))


def test_a_block_of_the_wrong_shape_is_refused():
    good = random_block(2, 3)
    codes = good.codes
    wrong = (codes[:5], np.concatenate([codes, codes]), codes[:, :1], codes[:, :, :0], codes[0])
    for each in (*wrong, codes.astype(np.int32)):
        with pytest.raises(InvalidArgument, match="expected int16 codes of shape"):
            encode_block(
                Block(good.sequence, good.steps, good.past_steps, each), tag=TAG, lineage=0
            )
    with pytest.raises(InvalidArgument, match="expected 2 sequence numbers and past steps"):
        encode_block(
            Block(good.sequence[:1], good.steps, good.past_steps, good.codes), tag=TAG, lineage=0
        )
    with pytest.raises(InvalidArgument, match="expected strictly increasing steps"):
        encode_block(
            Block(good.sequence, good.steps[::-1], good.past_steps, good.codes), tag=TAG, lineage=0
        )


def test_many_blocks_are_restored_as_one():
    blocks = [random_block(records, 7, seed) for seed, records in enumerate((16, 16, 3, 16))]
    ends = np.cumsum([0] + [block.steps[-1] + 1 for block in blocks[:-1]])
    counts = np.cumsum([0] + [block.sequence[-1] for block in blocks[:-1]])
    blocks = [
        Block(block.sequence + count, block.steps + end, block.past_steps + end, block.codes)
        for block, end, count in zip(blocks, ends, counts, strict=True)
    ]
    # Of the second block one row is the same everywhere, of the last two all cells of a row are.
    blocks[1].codes[5] = 77
    blocks[2].codes[4], blocks[3].codes[4] = 1, 1

    def opened(block: Block, rows=ROWS):
        message = encode_block(block, tag=TAG, lineage=3)
        return open_block(message, tag=TAG, step=int(block.steps[-1]), lineage=3, rows=rows)

    whole = restore([opened(block) for block in blocks])
    for name in ("sequence", "steps", "past_steps"):
        expected = np.concatenate([getattr(block, name) for block in blocks])
        np.testing.assert_array_equal(getattr(whole, name), expected)
    codes = np.concatenate([block.codes for block in blocks], axis=1)
    np.testing.assert_array_equal(whole.codes, codes)
    for rows in [(), (1,), (3, 4), (0, 1, 2, 5, 6, 7)]:
        some = restore([opened(block, rows) for block in blocks]).codes
        np.testing.assert_array_equal(some[list(rows)], codes[list(rows)])
    asked = [(6, 7), ROWS, (6, 7), (1, 6, 7)]
    some = restore([opened(block, rows) for block, rows in zip(blocks, asked, strict=True)]).codes
    np.testing.assert_array_equal(some[[6, 7]], codes[[6, 7]])
    np.testing.assert_array_equal(some[:, 16:32], codes[:, 16:32])
    np.testing.assert_array_equal(some[1, 35:], codes[1, 35:])


@pytest.mark.parametrize("steps", [[1, 5, 4], [5, 4, 9], [1, 5, 5], [2, 2, 9]])
@pytest.mark.parametrize("which", ["steps", "sequence"])
def test_what_rises_and_falls_is_refused_by_writer_and_reader(monkeypatch, steps, which):
    order = {"steps": np.array([7, 8, 9]), "sequence": np.arange(3), which: np.array(steps)}
    block = Block(
        **order, past_steps=order["steps"] - 1, codes=np.zeros((len(STATISTICS), 3, 2), np.int16)
    )
    with pytest.raises(InvalidArgument, match="strictly increasing steps and sequence numbers"):
        encode_block(block, tag=TAG, lineage=3)
    monkeypatch.setattr("tb_pastnet.format.block._check", lambda block: None)
    message = encode_block(block, tag=TAG, lineage=3)
    with pytest.raises(DamagedRecord, match="increasing steps, got steps that go back"):
        decode_block(message, tag=TAG, step=int(order["steps"][-1]), lineage=3)


def test_the_bytes_of_a_block_are_the_documented_ones():
    codes = np.arange(len(ROWS), dtype=np.int16)[:, None, None]
    step = np.array([9])
    message = encode_block(Block(step, step, step - 1, codes), tag=TAG, lineage=3)
    stored = [0, 1, 2, 1, *range(4, len(ROWS))]  # two of them as differences
    names = [*EIGHT[:5], "nonfinite_count", *EIGHT[6:], "moved"]
    numbers = varint.encode([1, 1]) + varint.encode_signed([9, 0, 1])
    cells = b"".join(bytes([0, code, 0]) for code in stored)
    assert message == payload_of(numbers, heads(names), cells, version=2)


CELLS = {
    name: np.random.default_rng(n).integers(-99, 99, (3, 5), np.int16)
    for n, name in enumerate([*NUMBERED, "skewness", "ratio", "größe", "number 99"])
}
PLACE = {"tag": TAG, "step": 9, "lineage": 3}


@pytest.mark.parametrize(
    ("names", "near", "unknown"),
    [
        (["skewness", "norm", "past_norm", "kept"], {"past_norm": "norm"}, ["skewness"]),
        (["trainable", "kept"], {"kept": "trainable"}, []),
        (["norm", "ratio", "kept"], {"ratio": "norm"}, ["ratio"]),
        (
            ["skewness", "delta_norm", "kept"],
            {"delta_norm": "skewness"},
            ["delta_norm", "skewness"],
        ),
        (["number 99", "kept", "größe"], {}, ["größe", "number 99"]),
        ([], {}, []),
    ],
)
def test_a_reader_takes_the_statistics_that_it_knows(names, near, unknown):
    codes = {name: CELLS[name] for name in names}
    if names:
        message = block_message(codes, near=near, **PLACE)
    else:
        head = varint.encode([5, 3]) + varint.encode_signed([1, 1, 1, 0, 1, 1, 1, 1, 1])
        message = payload_of(head, b"\0", version=2)
    block = decode(message)
    assert block.unknown == tuple(unknown)
    assert block.codes.shape == (len(ROWS), 3, 5)
    for row, name in enumerate(STATISTICS):
        expected = CELLS[name] if name in codes and name not in unknown else NAN
        np.testing.assert_array_equal(block.codes[row], np.broadcast_to(expected, (3, 5)), name)


def test_numbers_that_were_rounded_are_whole_and_others_are_exact():
    old = np.array([[-32768, 79, 78, 25, 0]], np.int16)  # 2^(79/16) is 30.64
    now = np.array([[-32768, 30 - 32768, 16384, 16384 + 512, NAN]], np.int16)
    row = STATISTICS.index("nonfinite")
    for name, codes, numbers in (
        ("nonfinite", old, [0, 31, 29, 3, 1]),
        ("nonfinite_count", now, [0, 30, 49152, 98304, np.nan]),
    ):
        block = decode(block_message({name: codes}, near={}, **PLACE))
        np.testing.assert_array_equal(dequantize_statistic(row, block.codes[:, 0]), numbers)


def test_a_known_name_may_be_written_out():
    head = varint.encode([1, 1]) + varint.encode_signed([1, 0, 1]) + counted(b"\0\4kept")
    block = decode(payload_of(head, b"\0\5\0", version=2))
    assert (block.codes[STATISTICS.index("kept")].tolist(), block.unknown) == ([[5]], ())


def test_blocks_of_all_versions_are_restored_as_one():
    eight = {name: CELLS[name] for name in EIGHT}
    later = {name: CELLS[name] for name in ("norm", "skewness")}
    joined = restore(
        [
            open_block(block_message(eight, version=1, **PLACE), **PLACE),
            open_block(block_message(eight, **PLACE), **PLACE, rows=(1, 3)),
            open_block(block_message(later, near={}, **PLACE), **PLACE),
        ]
    )
    for row, name in enumerate(EIGHT):
        expected = as_counts(CELLS[name]) if name == "nonfinite" else CELLS[name]
        np.testing.assert_array_equal(joined.codes[row, :3], expected)
    np.testing.assert_array_equal(joined.codes[1, 3:6], CELLS["past_norm"])
    np.testing.assert_array_equal(joined.codes[3, 3:6], CELLS["delta_max"])
    np.testing.assert_array_equal(joined.codes[0, 6:], CELLS["norm"])
    assert (joined.codes[1:, 6:] == NAN).all()
    assert joined.unknown == ("skewness",)

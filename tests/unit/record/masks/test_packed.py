import base64
import zlib

import ml_dtypes
import numpy as np
import pytest

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.masks.packed import (
    Bounds,
    Resumed,
    SavedMasks,
    StoredMasks,
    load,
    pack,
    save,
    unpack,
)

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(), (3,), (4, 5), (3, 0)])
def test_masks_and_frozen_values_come_back(shape, dtype):
    kept = RNG.random(shape) > 0.5
    stored = StoredMasks(
        kept, kept & (RNG.random(shape) > 0.5), RNG.normal(size=shape).astype(dtype)
    )
    packed = pack(stored)
    if packed is None:
        assert stored.through.all()
        return
    back = unpack(packed, shape, dtype, "w")
    np.testing.assert_array_equal(back.kept, stored.kept)
    np.testing.assert_array_equal(back.through, stored.through)
    expected = np.where(stored.kept & ~stored.through, stored.held, np.zeros((), dtype))
    assert back.held.dtype == dtype
    assert back.held.tobytes() == expected.astype(dtype).tobytes()


@pytest.mark.parametrize("shape", [(), (3,), (4, 5), (3, 0), (0,)])
def test_saved_masks_come_back_also_those_of_nothing(shape):
    kept = RNG.random(shape) > 0.5
    saved = SavedMasks(kept, kept & (RNG.random(shape) > 0.5), np.arange(3, dtype=np.uint32))
    seen = []

    def check(*given):
        seen.append(given)
        return 3

    bounds = Bounds.of({"w": shape}, 3)
    origin, masks = load(save("9c1e", {"w": saved}), bounds, check, "a file")
    assert (origin, list(masks), seen) == ("9c1e", ["w"], [("w", shape)])
    for back, expected in zip(masks["w"], saved, strict=True):
        assert back.dtype == expected.dtype
        np.testing.assert_array_equal(back, expected)


def test_masks_of_no_variable_are_saved_too():
    assert load(save("", {}), Bounds.of({}, 0), lambda *given: 0, "a file") == ("", {})


def test_masks_that_do_not_fit_are_not_unpacked():
    def refuse(name, shape):
        raise InvalidArgument(f"{name} {shape}")

    huge = np.broadcast_to(np.ones(1, bool), (1 << 10,))
    stored = save("", {"w": SavedMasks(huge, huge, np.zeros(1, np.uint32))})
    with pytest.raises(InvalidArgument, match=r"w \(1024,\)"):
        load(stored, Bounds.of({"w": (1 << 10,)}, 1), refuse, "a file")


def test_frozen_values_that_are_not_finite():
    zeros = np.zeros(3, bool)
    held = np.array([np.nan, -np.inf, -0.0], np.float32)
    back = unpack(pack(StoredMasks(~zeros, zeros, held)), (3,), np.float32, "w")
    assert back.held.tobytes() == held.tobytes()


def test_masks_cost_little():
    kept = np.zeros((1000, 1000), bool)
    kept[:, ::2] = True
    packed = pack(StoredMasks(kept, kept, np.zeros(kept.shape)))
    assert sum(map(len, packed.values())) < 2000


GOOD = pack(StoredMasks(np.ones(9, bool), np.zeros(9, bool), np.ones(9, np.float32)))
BOMB = base64.b64encode(zlib.compress(bytes(1 << 20))).decode()


@pytest.mark.parametrize(
    ("packed", "shape", "expected", "got"),
    [
        (GOOD, (17,), 3, "2"),
        (GOOD, (9, 2), 3, "2"),
        ({**GOOD, "frozen": GOOD["kept"]}, (9,), 36, "2"),
        ({**GOOD, "kept": BOMB}, (9,), 2, "more"),
        ({**GOOD, "kept": "é"}, (9,), 2, "damaged text (ValueError)"),
        ({**GOOD, "kept": GOOD["kept"][:8]}, (9,), 2, "2 of damaged text"),
        ({**GOOD, "kept": "AAAA"}, (9,), 2, "damaged text (error)"),
        ({**GOOD, "kept": None}, (9,), 2, "damaged text (TypeError)"),
        ({"kept": GOOD["kept"]}, (9,), 2, "damaged text (TypeError)"),
    ],
)
def test_text_that_is_none(packed, shape, expected, got):
    with pytest.raises(InvalidArgument) as error:
        unpack(packed, shape, np.float32, "w")
    assert str(error.value) == (
        f"Could not read the masks of 'w' from its config: expected {expected} bytes, got {got}. "
        f"Build the layer with the shape and dtype that the masks were made for, or pass "
        f"masks=None."
    )


def test_damaged_text_where_nothing_is_frozen():
    packed = pack(StoredMasks(np.zeros(9, bool), np.zeros(9, bool), np.ones(9, np.float32)))
    with pytest.raises(InvalidArgument, match=r"expected 0 bytes, got damaged text .error.\."):
        unpack({**packed, "frozen": "AAAA"}, (9,), np.float32, "w")


@pytest.mark.parametrize("channels", [1, 8, 9, 65])
def test_channels_whose_held_values_differ_are_named(channels):
    saved = np.arange(channels, dtype=np.uint32)
    after = saved + (saved == channels - 1)
    resumed = Resumed.of({"a": (saved, saved), "b": (saved, after), "c": (saved, saved + 1)})
    assert (resumed.equal, resumed.changed["b"]) == (("a",), (channels - 1,))
    assert resumed.changed["c"] == tuple(range(channels))
    assert not resumed
    assert Resumed.of({"a": (saved, saved)})
    assert ("…" in str(resumed)) == (channels > 8)

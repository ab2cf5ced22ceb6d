"""Sets of weights: the masks in force, read in few calls and never guessed."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_pastnet.format import limits
from tb_pastnet.format.mask_bits import MaskBits, encode_mask
from tb_pastnet.format.tags import TAG_MASKS, mask_tag
from tb_pastnet.reader import mask_changes, notes, overlap_sets
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.overlap_sets import UNKNOWN, drawn, each_weights
from tb_pastnet.reader.store import Store
from tests.examples import examples
from tests.providers import CALLER, MemoryProvider, memory_run

LAYERS = {"c": 4, "d": 2}
SIZES = {"c": 36, "d": 18}
Found = dict[str, list[np.ndarray | None]]


def read(
    store: Store, steps: Sequence[int], mask: str = "kept", alone: bool = False
) -> tuple[Found, Notes]:
    """By layer the flags at each step, None where they aren't known."""
    run = store.catalog(CALLER).runs["a"]
    layers = [{0: one} for one in drawn(run).values()]
    readers, lost = [store.reader(CALLER, run)], Notes()
    every = each_weights(readers, [np.array(steps)], mask, layers, lost, np.array([alone]))
    found: Found = {}
    for layer, sets in zip(drawn(run), every, strict=True):
        one = sets[0]
        flags = [_flags(one, which) for which in one.positions.tolist()]
        found[layer] = flags
    return found, lost


def _flags(one, which: int) -> np.ndarray | None:
    if which == UNKNOWN:
        return None
    if one.plain(which):
        return np.full(one.elements, one.size(which) > 0)
    bits = one.bits(which)
    if bits is None:
        return None
    flags = np.unpackbits(bits.view(np.uint8), count=one.elements).astype(bool)
    assert one.size(which) == flags.sum()
    return flags


def same(found: Sequence[np.ndarray | None], right: Sequence[np.ndarray | None]) -> None:
    for one, other in zip(found, right, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_array_equal(one, other)


@st.composite
def changes(draw: st.DrawFn) -> list[tuple[int, str, str, np.ndarray]]:
    found = []
    steps = sorted(draw(st.lists(st.integers(0, 20), max_size=8)))
    for step in steps:
        layer = draw(st.sampled_from(list(LAYERS)))
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        array = rng.random(SIZES[layer]) < draw(st.sampled_from([0.0, 0.3, 0.8, 1.1]))
        found.append((step, draw(st.sampled_from(["kept", "trainable"])), layer, array))
    return found


def replayed(made: Sequence[tuple], layer: str, step: int) -> dict[str, np.ndarray]:
    through = {mask: np.ones(SIZES[layer], bool) for mask in ("kept", "trainable")}
    return {**through, **{m: array for at, m, of, array in made if of == layer and at <= step}}


@examples(0.6)
@given(changes(), changes(), st.integers(5, 25))
def test_sets_are_those_of_the_last_changes(first: list, second: list, start: int) -> None:
    """Also where a second lineage goes on from some step, with masks of its own."""
    provider = MemoryProvider()
    one = memory_run(provider, "a", range(1, 30), layers=LAYERS)
    two = memory_run(
        provider, "a", range(start, 30), layers=LAYERS, ordinal=2, lineage=7, first_step=start
    )
    for writer, made in ((one, first), (two, second)):
        for step, mask, layer, array in made:
            writer.masks(step, {(mask, f"{layer}/kernel"): array})
    steps = [-1, 1, *range(2, 29, 3), 29]
    for mask in ("kept", "trainable"):
        found, said = read(Store(provider), steps, mask)
        assert not said
        for layer in LAYERS:
            right = []
            for step in steps:
                masks = replayed(second if step >= start else first, layer, step)
                free = masks["kept"] & masks["trainable"]
                right.append(None if step < 0 else masks["kept"] if mask == "kept" else free)
            same(found[layer], right)


def schedule(provider: MemoryProvider, count: int = 3) -> list[np.ndarray]:
    """A mask of "c" at the steps 4, 8, …"""
    writer = memory_run(provider, "a", range(1, 21), layers=LAYERS)
    rng = np.random.default_rng(3)
    found = [rng.random(36) < 0.6 for _ in range(count)]
    for at, mask in enumerate(found):
        writer.masks(4 * (at + 1), {("kept", "c/kernel"): mask})
    return found


KEPT = mask_tag("kept", "c/kernel")


def test_all_masks_are_read_in_one_call_and_those_that_need_none_in_none() -> None:
    provider = MemoryProvider()
    writer = memory_run(provider, "a", range(1, 9), layers={f"c{n}": 1 for n in range(40)})
    mask = np.arange(9) > 3
    for step in (2, 5):
        writer.masks(step, {("kept", f"c{n}/kernel"): mask for n in range(30)})
    store = Store(provider)
    assert store.reader(CALLER, store.catalog(CALLER).runs["a"]).masks
    count = len(provider.reads)
    read(store, [1])
    assert len(provider.reads) == count
    # Of a run that is compared with no other one the log tells the sizes.
    found, _ = read(store, [8], alone=True)
    assert len(provider.reads) == count
    found, _ = read(store, [1, 3, 8])
    assert [len(tags) for _, tags, _ in provider.reads[count:]] == [30]
    same(found["c29"], [np.ones(9, bool), mask, mask])
    same(found["c30"], [np.ones(9, bool)] * 3)


def test_what_is_too_much_for_one_call_takes_several(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = MemoryProvider()
    writer = memory_run(provider, "a", range(1, 9), layers={f"c{n}": 1 for n in range(10)})
    masks = [np.arange(9) > n % 5 for n in range(10)]
    writer.masks(2, {("kept", f"c{n}/kernel"): masks[n] for n in range(10)})
    assert overlap_sets.BYTES_A_CALL < limits.MAX_MESSAGE
    monkeypatch.setattr(overlap_sets, "BYTES_A_CALL", 7)
    count = len(provider.reads)
    found, _ = read(Store(provider), [8])
    for n in range(10):
        same(found[f"c{n}"], [masks[n]])
    assert [len(tags) for _, tags, _ in provider.reads[count:]][-4:] == [3, 3, 3, 1]


@pytest.mark.parametrize("how", ["flip", "gone", "other", "unequal", "swapped"])
def test_bits_that_cant_be_read_are_unknown_and_noted(how: str) -> None:
    provider = MemoryProvider()
    masks = schedule(provider)
    events = provider.tree["a/pastnet.0001.3f9a2c1b"][KEPT]
    if how == "flip":
        step, wall, array, content = events[1]
        array = array.copy()
        array[-1] ^= 1
        events[1] = (step, wall, array, content)
    elif how == "gone":
        del events[1]
    elif how == "other":
        events[1] = (events[1][0], 0.0, "no bytes", b"")
    elif how == "unequal":
        # Sound by itself, and the log tells of another number of weights.
        bits = MaskBits(1, 8, 36, np.packbits(masks[1] & ~masks[0]))
        data = encode_mask(bits, tag=KEPT, step=8, lineage=0x3F9A2C1B)
        events[1] = (8, 0.0, np.frombuffer(data, np.uint8), b"")
    else:
        # As in TensorBoard's fast loader, the step that goes back replaces the other.
        events[0], events[1] = events[1], events[0]
    found, said = read(Store(provider), [5, 9, 13])
    same(found["c"], [masks[0], None, masks[2]])
    same(found["d"], [np.ones(18, bool)] * 3)
    assert said == {notes.MASKS_UNREAD: 1}


def test_behind_a_gap_of_the_log_nothing_is_known_until_the_next_change() -> None:
    provider = MemoryProvider()
    masks = schedule(provider)
    del provider.tree["a/pastnet.0001.3f9a2c1b"][TAG_MASKS][1]
    found, said = read(Store(provider), [5, 9, 13])
    same(found["c"], [None, None, masks[2]])
    same(found["d"], [None, None, None])
    assert notes.MASKS_LOST in said


def test_a_log_that_is_gone_leaves_all_unknown() -> None:
    provider = MemoryProvider()
    schedule(provider)
    del provider.tree["a/pastnet.0001.3f9a2c1b"][TAG_MASKS]
    found, _ = read(Store(provider), [1, 9])
    same([*found["c"], *found["d"]], [None] * 4)


def test_masks_that_were_withheld_are_noted() -> None:
    provider = MemoryProvider()
    masks = schedule(provider)
    provider.broken = {f"a/pastnet.0001.3f9a2c1b/{KEPT}"}
    store = Store(provider)
    found, said = read(store, [9])
    same(found["c"], [None])
    assert said == {notes.WITHHELD: 1, notes.MASKS_UNREAD: 1}
    provider.broken = set()
    found, said = read(store, [9])
    same(found["c"], [masks[1]])
    assert not said


def test_a_mask_of_another_shape_is_unknown() -> None:
    provider = MemoryProvider()
    writer = memory_run(provider, "a", range(1, 21), layers=LAYERS)
    writer.masks(3, {("kept", "c/kernel"): np.arange(37) > 4})
    found, _ = read(Store(provider), [2, 3])
    same(found["c"], [np.ones(36, bool), None])


def test_what_a_hostile_log_claims_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes claim a mask of many megabytes."""

    size = 9 << 22
    provider = MemoryProvider()
    writer = memory_run(provider, "a", range(0), layers={"c": size // 9})
    flags = np.ones(size, bool)
    flags[0] = False
    writer.masks(0, {("kept", "c/kernel"): flags})
    del flags
    monkeypatch.setattr(overlap_sets, "MOST_BYTES", size // 8 - 1)
    tracemalloc.start()
    try:
        found, said = read(Store(provider), [0])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    same(found["c"], [None])
    assert said == {notes.MASKS_UNREAD: 1}
    assert peak < 1 << 20, peak


def test_two_masks_that_let_through_a_part_each_are_joined_once_read() -> None:
    provider = MemoryProvider()
    writer = memory_run(provider, "a", range(1, 21), layers=LAYERS)
    kept, trainable = np.arange(36) % 2 > 0, np.arange(36) % 3 > 0
    writer.masks(3, {("kept", "c/kernel"): kept, ("trainable", "c/kernel"): trainable})
    writer.masks(9, {("kept", "c/kernel"): np.zeros(36, bool)})
    found, _ = read(Store(provider), [2, 5, 9], "trainable", alone=True)
    same(found["c"], [np.ones(36, bool), kept & trainable, np.zeros(36, bool)])


def test_each_mask_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = MemoryProvider()
    masks = schedule(provider, 4)
    decoded = []
    real = mask_changes.decode_mask

    def counting(*arguments, **more):
        decoded.append(more["step"])
        return real(*arguments, **more)

    monkeypatch.setattr(mask_changes, "decode_mask", counting)
    found, _ = read(Store(provider), list(range(4, 20)))
    same(found["c"], [masks[at // 4 - 1] for at in range(4, 20)])
    assert decoded == [4, 8, 12, 16]

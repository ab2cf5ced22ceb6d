"""Pruned weights of a layer, from the log of mask changes and from the records' shares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tb_pastnet.format.block import Block, encode_block
from tb_pastnet.format.description import Series, encode_series
from tb_pastnet.reader import notes
from tb_pastnet.reader.figures import Figures, StepSpan, figures_of
from tb_pastnet.reader.overview import overview_columns, overview_csv
from tb_pastnet.reader.store import Store
from tests import event_files as files
from tests.providers import CALLER, MemoryProvider, MemoryWriter, memory_run

RNG = np.random.default_rng(6)
CHANNELS = 4
KERNEL, BIAS = "conv1/kernel", "conv1/bias"
KEPT = RNG.random((9, CHANNELS)) < 0.4
HOLES = int((~KEPT).sum())


def figures(provider: MemoryProvider, run: str = "a") -> Figures:
    store = Store(provider)
    return figures_of(store.reader(CALLER, store.catalog(CALLER).runs[run]), 1e-4)


def pruned(found: Figures, layer: int = 0) -> list[float]:
    return found.summary.pruned[layer].tolist()


def masked(provider: MemoryProvider, log: bool = True) -> MemoryWriter:
    """Eight records, from the fifth on with a mask on the kernel."""
    writer = memory_run(provider, "a", range(0))
    kernel = files.hold(files.codes(range(1, 9), CHANNELS), slice(4, None), KEPT)
    if log:
        writer.masks(0, {("kept", KERNEL): np.ones(36, bool)})
        writer.masks(5, {("kept", KERNEL): KEPT})
    writer.records(range(1, 9), {KERNEL: kernel})
    return writer


def test_the_log_tells_exactly_and_a_layer_without_masks_has_none_pruned() -> None:
    provider = MemoryProvider()
    masked(provider)
    found = figures(provider)
    assert pruned(found) == [0] * 4 + [HOLES] * 4
    assert pruned(found, 1) == [0] * 8
    assert found.summary.prunable == (36, 54)
    assert found.pruned.tolist() == [[0] * 4 + [HOLES] * 4, [0] * 8]
    header, arrays, _ = found.block(8, 8)
    assert header["prunable"] == [36, 54]
    assert arrays["pruned"].tolist() == found.pruned.tolist()
    assert not found.summary.notes


def test_a_layer_without_prunable_weights_has_no_share() -> None:
    provider = MemoryProvider()
    masked(provider)
    found = figures(provider)
    found = replace(found, summary=replace(found.summary, prunable=(36, 0)))
    _, arrays, _ = overview_columns(found, 2, StepSpan())
    np.testing.assert_allclose(arrays["pruned"][0], [0, HOLES / 36], rtol=1e-6)
    assert np.isnan(arrays["pruned"][1]).all()
    np.testing.assert_allclose(arrays["total_pruned"], [0, HOLES / 36], rtol=1e-6)


def test_columns_draw_the_mean_share_of_their_records() -> None:
    provider = MemoryProvider()
    masked(provider)
    for most, right in ((8, [0] * 4 + [1] * 4), (2, [0, 1]), (1, [0.5])):
        header, arrays, _ = overview_columns(figures(provider), most, StepSpan())
        assert header["sparse"]
        holes = np.array(right, np.float32)
        np.testing.assert_allclose(arrays["pruned"], [holes * HOLES / 36, 0 * holes], rtol=1e-6)
        np.testing.assert_allclose(arrays["total_pruned"], holes * HOLES / 90, rtol=1e-6)


def test_where_nothing_was_ever_pruned_nothing_is_drawn() -> None:
    provider = MemoryProvider()
    memory_run(provider, "a", range(1, 9))
    header, arrays, _ = overview_columns(figures(provider), 8, StepSpan())
    assert not header["sparse"]
    assert not {"pruned", "total_pruned"} & set(arrays)


def test_a_bias_counts_once_it_was_pruned() -> None:
    provider = MemoryProvider()
    writer = masked(provider)
    writer.masks(6, {("kept", BIAS): np.array([0, 1, 1, 0], bool)})
    writer.masks(8, {("kept", BIAS): np.ones(4, bool)})
    found = figures(provider)
    assert found.summary.prunable[0] == 40
    assert pruned(found)[4:] == [HOLES, HOLES + 2, HOLES + 2, HOLES]


def test_a_frozen_weight_isnt_pruned() -> None:
    provider = MemoryProvider()
    writer = masked(provider, log=False)
    writer.masks(0, {("trainable", BIAS): np.zeros(4, bool)})
    found = figures(provider)
    assert found.summary.prunable[0] == 36


def test_a_variable_that_two_layers_share_counts_in_the_first() -> None:
    provider = MemoryProvider()
    writer = masked(provider)
    store = Store(provider)
    run = store.catalog(CALLER).runs["a"]
    first, second = run.layers
    shared = type(second)(second.id, "", "x", "Dense", (KERNEL, *second.variables), second.main)
    twice = type(run)(**{**vars(run), "layers": (first, shared)})
    found = figures_of(store.reader(CALLER, twice), 1e-4)
    assert found.summary.prunable == (36, 54)
    assert pruned(found, 1) == [0] * 8
    assert writer.changes == 2


def test_where_no_log_tells_the_shares_do() -> None:
    provider = MemoryProvider()
    writer = masked(provider)
    del provider.tree[writer.tb_run]["masks"]
    found = figures(provider)
    assert pruned(found) == [0] * 4 + [HOLES] * 4
    assert not found.summary.notes


def test_of_two_kernels_that_no_log_tells_of_both_are_read() -> None:
    provider = MemoryProvider()
    at = np.arange(1, 9)
    for tag in ("cell/kernel", "cell/recurrent_kernel", "cell/bias"):
        shape = (9, CHANNELS) if "kernel" in tag else (CHANNELS,)
        for step in at:
            codes = files.codes([step], CHANNELS)
            if tag == "cell/recurrent_kernel" and step > 4:
                files.hold(codes, slice(None), KEPT)
            block = Block(*(np.array([n]) for n in (step, step, step - 1)), codes)
            content = encode_series(Series(shape, "-1", CHANNELS))
            provider.add("a", tag, int(step), encode_block(block, tag=tag, lineage=0), content)
    found = figures(provider)
    assert found.summary.prunable[0] == 2 * 36
    assert pruned(found) == [0] * 4 + [HOLES] * 4


def test_a_log_whose_end_is_lost_is_corrected_by_the_records() -> None:
    provider = MemoryProvider()
    writer = masked(provider)
    provider.tree[writer.tb_run]["masks"].pop()
    found = figures(provider)
    assert pruned(found) == [0] * 4 + [HOLES] * 4
    assert found.summary.notes == {notes.MASKS_LOST: 1}
    # Where the masks themselves were torn off too, nothing but the records tells it.
    provider.tree[writer.tb_run][f"kept/{KERNEL}"].pop()
    found = figures(provider)
    assert pruned(found) == [0] * 4 + [HOLES] * 4
    assert found.summary.notes == {notes.MASKS_DISAGREE: 4}


def test_behind_a_gap_the_shares_tell_and_without_a_record_nothing_does() -> None:
    provider = MemoryProvider()
    writer = memory_run(provider, "a", range(0), block=2)
    kernel = files.hold(files.codes(range(1, 9), CHANNELS), slice(4, None), KEPT)
    for step, mask in ((0, ~KEPT), (5, KEPT), (8, KEPT)):
        writer.masks(step, {("kept", KERNEL): mask})
    writer.records(range(1, 9), {KERNEL: files.hold(kernel, slice(0, 4), ~KEPT)})
    del provider.tree[writer.tb_run]["masks"][1]
    del provider.tree[writer.tb_run][f"channels/{KERNEL}"][2]
    found = figures(provider)
    np.testing.assert_array_equal(pruned(found), [36 - HOLES] * 4 + [np.nan, np.nan, HOLES, HOLES])
    assert found.summary.notes[notes.MASKS_LOST] == 1
    last = "".join(overview_csv(found)).splitlines()[9].split(",")
    assert last[:2] + last[-2:] == ["5", "conv1", "", "36"]
    _, arrays, _ = overview_columns(found, 2, StepSpan())
    # A column is drawn of what is known.
    np.testing.assert_allclose(arrays["pruned"][0], [1 - HOLES / 36, HOLES / 36], rtol=1e-6)
    np.testing.assert_allclose(arrays["total_pruned"], [(36 - HOLES) / 90, HOLES / 90], rtol=1e-6)

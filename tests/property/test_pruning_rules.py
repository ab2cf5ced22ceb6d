"""Properties of pruning by magnitude, over weights that nobody would write down."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tb_pastnet.core.axes import channel_axis, explicit_axis
from tb_pastnet.core.mask_input import as_mask, channel_mask, sparsity
from tb_pastnet.core.pruning_rules import Prunable, below, blocks, smallest

DTYPES = st.sampled_from([np.float16, np.float32, np.float64])
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6)
SHARES = st.floats(0, 1, exclude_max=True)


@st.composite
def masked(draw):
    values = draw(DTYPES.flatmap(lambda dtype: hnp.arrays(dtype, SHAPES)))
    return values, draw(hnp.arrays(bool, values.shape))


def prunable(values, kept):
    return Prunable("w", values, kept, channel_axis([], "w", values.shape))


def keep_largest(values, kept, share, scope="global"):
    return smallest(list(map(prunable, values, kept)), share, scope=scope)


def sizes(values):
    return np.where(np.isfinite(values), np.abs(values.astype(np.float64)), np.inf)


@given(st.lists(masked(), min_size=1, max_size=4), SHARES, st.sampled_from(["global", "layer"]))
def test_pruning_the_smallest(pairs, share, scope):
    values, before = zip(*pairs, strict=True)
    after = keep_largest(values, before, share, scope=scope)
    groups = [range(len(values))] if scope == "global" else [[i] for i in range(len(values))]
    for mask, old, value in zip(after, before, values, strict=True):
        assert mask.shape == value.shape
        assert not (mask & ~old).any()
        assert mask.any() == old.any()
        if mask.any():
            assert sizes(value)[mask].max() == sizes(value)[old].max()
    for group in groups:
        total = sum(values[i].size for i in group)
        wanted = max(round(share * total), sum(int((~before[i]).sum()) for i in group))
        most = sum(values[i].size - bool(before[i].any()) for i in group)
        assert sum(int((~after[i]).sum()) for i in group) == min(wanted, most)
        gone = [sizes(values[i])[before[i] & ~after[i]] for i in group]
        # Whatever stays is as large as all that went, but for the one that each variable keeps.
        spare = [np.sort(sizes(values[i])[after[i]])[:-1] for i in group]
        gone, spare = np.concatenate(gone), np.concatenate(spare)
        assert not gone.size or not spare.size or spare.min() >= gone.max()


@given(st.lists(masked(), min_size=1, max_size=3), SHARES, SHARES)
def test_pruning_twice_is_pruning_to_the_higher_sparsity(pairs, first, second):
    values, before = zip(*pairs, strict=True)
    twice = keep_largest(
        values, keep_largest(values, before, min(first, second)), max(first, second)
    )
    for one, two in zip(keep_largest(values, before, max(first, second)), twice, strict=True):
        np.testing.assert_array_equal(one, two)


@given(hnp.arrays(np.float32, st.tuples(st.integers(1, 4), st.integers(1, 6))), SHARES)
def test_pruned_channels_are_whole(values, share):
    axis = explicit_axis(-1, values.shape, "w")
    weight = Prunable("w", values, np.ones(values.shape, bool), axis)
    mask = smallest([weight], share, structured=True)[0]
    assert (mask.all(axis=0) | ~mask.any(axis=0)).all()
    assert (~mask[0]).sum() == min(round(share * values.shape[1]), values.shape[1] - 1)


@given(st.data(), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3))
def test_no_block_has_more_than_its_nonzeros(data, size, count, outputs):
    nonzeros = data.draw(st.integers(1, size))
    shape = (size * count, outputs)
    values, before = data.draw(hnp.arrays(np.float32, shape)), data.draw(hnp.arrays(bool, shape))
    mask = blocks([prunable(values, before)], nonzeros, size)[0]
    per_block = mask.reshape(count, size, outputs).sum(axis=1)
    old = before.reshape(count, size, outputs).sum(axis=1)
    np.testing.assert_array_equal(per_block, np.minimum(old, nonzeros))
    assert not (mask & ~before).any()


@given(masked(), st.floats(0, 1e6))
def test_a_threshold_divides_by_magnitude(pair, threshold):
    values, _ = pair
    through = np.ones(values.shape, bool)
    mask = below([prunable(values, through)], threshold)[0]
    np.testing.assert_array_equal(mask, below([prunable(-values, through)], threshold)[0])
    with np.errstate(over="ignore"):
        limit = np.float64(values.dtype.type(threshold))
    assert (sizes(values)[~mask] <= limit + 1e-7).all()
    assert mask[~np.isfinite(values)].all()


@given(SHAPES.flatmap(lambda shape: hnp.arrays(bool, shape)), st.sampled_from("?bBifd"))
def test_masks_come_back_as_they_were_given(mask, kind):
    np.testing.assert_array_equal(as_mask(mask.astype(kind), mask.shape, "w", "kept"), mask)


@given(hnp.array_shapes(max_dims=4, max_side=4), st.data())
def test_channels_are_those_that_the_axis_numbers(shape, data):
    axes = tuple(
        data.draw(st.permutations(range(len(shape))))[: data.draw(st.integers(0, len(shape)))]
    )
    axis = explicit_axis(axes, shape, "w")
    chosen = data.draw(st.lists(st.integers(0, axis.channels - 1), max_size=5))
    rows = axis.split(channel_mask(chosen, axis, "w"))
    assert not rows[sorted(set(chosen))].any()
    assert rows.sum() == (axis.channels - len(set(chosen))) * axis.elements
    assert sparsity([rows]) == len(set(chosen)) / axis.channels

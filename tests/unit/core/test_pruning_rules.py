"""What rules prune: below a threshold, smallest weights, channels and blocks, by plain loops."""

import math

import numpy as np
import pytest

from tb_pastnet.core.axes import channel_axis, explicit_axis
from tb_pastnet.core.mask_input import reduction_axes
from tb_pastnet.core.pruning_rules import Prunable, below, blocks, smallest
from tb_pastnet.errors import InvalidArgument

RNG = np.random.default_rng(0)


def ones(*values):
    return [np.ones(v.shape, bool) for v in values]


def prunable(values, kept=None, axis=None):
    mask = np.ones(values.shape, bool) if kept is None else kept
    return Prunable("w", values, mask, axis or channel_axis([], "w", values.shape))


def keep_largest(values, kept, sparsity, *, scope="global", axes=None):
    weights = [
        prunable(v, m, axes[i] if axes else None)
        for i, (v, m) in enumerate(zip(values, kept, strict=True))
    ]
    return smallest(weights, sparsity, scope=scope, structured=axes is not None)


def keep_blocks(values, kept, nonzeros, size, axis=None):
    return blocks([prunable(values, kept, axis)], nonzeros, size)[0]


def above(values, threshold):
    return below([prunable(values)], threshold)[0]


def test_the_smallest_of_all_go_first_whatever_their_sign():
    first, second = np.array([[0.1, -5.0], [0.2, -0.3]]), np.array([0.15, -0.05, 9.0])
    kept = keep_largest([first, second], ones(first, second), 3 / 7)
    np.testing.assert_array_equal(kept[0], [[False, True], [True, True]])
    np.testing.assert_array_equal(kept[1], [False, False, True])


def test_of_each_layer_its_own_smallest():
    first, second = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.4, 0.3, 0.2, 0.1])
    kept = keep_largest([first, second], ones(first, second), 0.5, scope="layer")
    assert [mask.tolist() for mask in kept] == [[0, 0, 1, 1], [1, 1, 0, 0]]


def test_equal_ones_go_in_their_order():
    values = [np.full(4, -1.0), np.full(4, 1.0)]
    kept = keep_largest(values, ones(*values), 0.5)
    # The last of each variable always stays.
    assert [mask.tolist() for mask in kept] == [[0, 0, 0, 1], [0, 1, 1, 1]]


@pytest.mark.parametrize(
    ("sparsity", "pruned"),
    [(0, 0), (0.25, 2), (0.35, 4), (0.45, 4), (0.46, 5), (0.9, 9), (0.99, 9)],
)
def test_how_many_are_pruned(sparsity, pruned):
    # 2.5 and 3.5 and 4.5 of 10 become the even neighbour; the last one always stays.
    values = RNG.normal(size=10)
    assert (~keep_largest([values], ones(values), sparsity)[0]).sum() == pruned


def test_what_is_pruned_counts_and_stays():
    values = np.array([9.0, 8.0, 7.0, 6.0, 5.0, 4.0])
    before = np.array([False, True, True, True, True, True])
    assert keep_largest([values], [before], 0.5)[0].tolist() == [0, 1, 1, 1, 0, 0]
    assert keep_largest([values], [before], 0.1)[0].tolist() == before.tolist()
    assert before.tolist() == [0, 1, 1, 1, 1, 1]


def test_a_variable_that_is_pruned_whole_counts_and_stays_so():
    first, second = np.arange(4.0), np.arange(1.0, 5.0)
    kept = keep_largest([first, second], [np.zeros(4, bool), np.ones(4, bool)], 5 / 8)
    assert [mask.tolist() for mask in kept] == [[0, 0, 0, 0], [0, 1, 1, 1]]


def test_no_variable_is_pruned_whole():
    small, large, scalar = np.full((3, 3), 1e-6), RNG.normal(size=100) + 9, np.array(1e-9)
    kept = keep_largest([small, large, scalar], ones(small, large, scalar), 0.999)
    assert [int(mask.sum()) for mask in kept] == [1, 1, 1]
    assert kept[1][large.argmax()]
    # A variable that a user pruned whole is left so.
    gone = keep_largest([small, large], [np.zeros((3, 3), bool), np.ones(100, bool)], 0.5)
    assert not gone[0].any()
    assert (~gone[1]).sum() == round(0.5 * 109) - 9


def test_nothing_to_choose_from():
    assert keep_largest([], [], 0.5) == []
    empty = np.zeros((0, 3))
    assert keep_largest([empty], ones(empty), 0.5)[0].shape == (0, 3)
    assert keep_largest([empty], ones(empty), 0.5, scope="layer")[0].shape == (0, 3)


def test_what_is_not_finite_is_the_largest():
    values = np.array([np.nan, 5.0, -np.inf, 1.0], np.float32)
    assert keep_largest([values], ones(values), 0.5)[0].tolist() == [1, 0, 1, 0]
    assert keep_largest([values], ones(values), 0.9)[0].tolist() == [0, 0, 1, 0]


def test_dtypes_are_ranked_together():
    half, double = np.array([1e-3, 2.0], np.float16), np.array([1e-30, 3.0])
    kept = keep_largest([half, double], ones(half, double), 0.25)
    assert [mask.tolist() for mask in kept] == [[1, 1], [0, 1]]


def test_many_weights_as_a_stable_sort_chooses_them():
    values = [np.round(RNG.normal(size=shape), 1) for shape in ((30, 20), (7,), (4, 5, 6))]
    before = [RNG.random(v.shape) > 0.3 for v in values]
    order, sizes, live = [], [], 0
    for number, (v, m) in enumerate(zip(values, before, strict=True)):
        flat = [(abs(x), number, i) for i, x in enumerate(v.flat) if m.flat[i]]
        order += sorted(flat)[:-1]
        live += len(flat)
        sizes.append(v.size)
    more = round(0.8 * sum(sizes)) - (sum(sizes) - live)
    expected = [m.copy() for m in before]
    for _, number, index in sorted(order)[:more]:
        expected[number].flat[index] = False
    for mask, right in zip(keep_largest(values, before, 0.8), expected, strict=True):
        np.testing.assert_array_equal(mask, right)


def test_whole_channels_by_their_root_mean_square():
    # 2-norms: 2 and 3 over 100 weights, 1 and 4 over one: by 2-norm alone the 1 would go first.
    wide = np.full((100, 2), [0.2, 0.3])
    narrow = np.array([[1.0, 4.0]])
    axes = [explicit_axis(-1, v.shape, "w") for v in (wide, narrow)]
    kept = keep_largest([wide, narrow], ones(wide, narrow), 0.25, axes=axes)
    np.testing.assert_array_equal(kept[0], np.full((100, 2), [False, True]))
    assert kept[1].all()


def test_channels_count_as_pruned_only_whole_and_by_what_is_kept():
    values = np.array([[9.0, 1.0, 3.0], [0.1, 1.0, 3.0]])
    before = np.array([[False, True, True], [True, True, True]])
    axis = [explicit_axis(-1, (2, 3), "w")]
    kept = keep_largest([values], [before], 1 / 3, axes=axis)[0]
    np.testing.assert_array_equal(kept, [[0, 1, 1], [0, 1, 1]])
    kept = keep_largest([values], [kept], 2 / 3, axes=axis, scope="layer")[0]
    np.testing.assert_array_equal(kept, [[0, 0, 1], [0, 0, 1]])
    kept = keep_largest([values], [before], 0, axes=axis)[0]
    np.testing.assert_array_equal(kept, before)


def test_channels_of_gates():
    axis = channel_axis(["LSTMCell"], "kernel", (3, 8))
    values = np.tile([2.0, 1.0], (3, 4))
    kept = keep_largest([values], ones(values), 0.5, axes=[axis])[0]
    np.testing.assert_array_equal(kept, np.tile([True, False], (3, 4)))


def test_channels_that_are_not_finite():
    values = np.array([[1e200, np.nan, 1.0], [1e200, 0.0, 1.0]])
    axes = [explicit_axis(-1, (2, 3), "w")]
    assert keep_largest([values], ones(values), 1 / 3, axes=axes)[0][0].tolist() == [1, 1, 0]


def test_another_scope():
    with pytest.raises(InvalidArgument) as error:
        keep_largest([np.ones(3)], [np.ones(3, bool)], 0.5, scope="local")
    assert str(error.value) == (
        "Could not prune the smallest weights: expected scope='global' or 'layer', got 'local'. "
        "Global ranks the weights of all variables together."
    )


def test_a_sparsity_out_of_range():
    with pytest.raises(InvalidArgument, match="expected a sparsity from 0 up to below 1, got 1"):
        keep_largest([np.ones(3)], [np.ones(3, bool)], 1)


def test_two_of_four_inputs():
    values = RNG.normal(size=(8, 3))
    kept = keep_blocks(values, np.ones((8, 3), bool), 2, 4)
    for block in range(2):
        for column in range(3):
            sizes = np.abs(values[4 * block : 4 * block + 4, column])
            mask = kept[4 * block : 4 * block + 4, column]
            assert mask.sum() == 2
            assert sizes[mask].min() > sizes[~mask].max()


def test_blocks_of_a_convolution_lie_along_its_inputs():
    values = RNG.normal(size=(3, 3, 8, 5)).astype(np.float32)
    kept = keep_blocks(values, np.ones(values.shape, bool), 1, 4)
    sizes = np.abs(values).reshape(3, 3, 2, 4, 5)
    expected = sizes == sizes.max(axis=3, keepdims=True)
    np.testing.assert_array_equal(kept, expected.reshape(values.shape))


def test_blocks_along_other_axes():
    values = RNG.normal(size=(2, 2, 5, 4))
    axis = channel_axis(["Conv2DTranspose"], "kernel", values.shape)
    kept = keep_blocks(values, np.ones(values.shape, bool), 3, 4, axis)
    assert (kept.sum(axis=-1) == 3).all()
    assert reduction_axes(channel_axis(["LSTMCell"], "kernel", (3, 20))) == (0,)
    assert reduction_axes(channel_axis(["LSTM"], "weight_ih", (20, 3))) == (1,)
    grouped = channel_axis(["ConvTranspose1d"], "weight", (4, 3, 2), parts=2)
    assert reduction_axes(grouped) == (2,)
    assert reduction_axes(channel_axis(["Dense"], "bias", (3,))) == ()
    np.testing.assert_array_equal(
        keep_blocks(
            values, np.ones(values.shape, bool), 3, 4, explicit_axis((0, 1, 2), values.shape, "w")
        ),
        kept,
    )


def test_blocks_keep_what_is_pruned_and_take_equal_ones_in_order():
    column = np.array([[1.0], [1.0], [1.0], [1.0], [np.nan], [3.0], [2.0], [9.0]])
    before = np.array([[1], [1], [1], [1], [1], [0], [0], [0]], bool)
    kept = keep_blocks(column, before, 2, 4)
    assert kept[:, 0].tolist() == [0, 0, 1, 1, 1, 0, 0, 0]
    assert keep_blocks(column, before, 4, 4).tolist() == before.tolist()


@pytest.mark.parametrize(
    ("counts"),
    [(0, 4), (5, 4), (2, 0), (-1, 4), (2.0, 4), (2, 4.0), (True, 4), (1, True), ("2", 4)],
)
def test_counts_of_a_block(counts):
    with pytest.raises(InvalidArgument) as error:
        keep_blocks(np.ones((4, 1)), np.ones((4, 1), bool), *counts)
    assert str(error.value) == (
        f"Could not prune 'w' in blocks: expected 1 <= nonzeros_per_block <= block_size, got "
        f"{counts[0]!r} of {counts[1]!r}. 2:4 is nonzeros_per_block=2, block_size=4."
    )


@pytest.mark.parametrize(("shape", "length"), [((6, 3), 6), ((3,), 1), ((3, 3, 3, 8), 27)])
def test_blocks_that_do_not_divide(shape, length):
    with pytest.raises(InvalidArgument) as error:
        keep_blocks(np.ones(shape), np.ones(shape, bool), 2, 4)
    assert str(error.value) == (
        "Could not prune 'w' in blocks of 4: expected a number of inputs that blocks fill, got "
        f"{length} for shape {shape}. Choose a block size that divides {length}, or leave this "
        "variable out."
    )


def test_large_weights_of_either_sign_are_above_a_threshold():
    values = np.array([-3, -0.5, -0.4, -0.0, 0, 0.4, 0.5, 3, np.nan, np.inf, -np.inf], np.float32)
    mask = above(values, 0.5)
    assert mask.tolist() == [1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1]
    assert above(values, 0).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
def test_a_weight_at_the_threshold_stays_in_every_dtype(dtype):
    number = 7 if dtype is np.int32 else 0.7
    assert above(np.array([number, -number], dtype), number).all()
    assert not above(np.array([number], dtype), number * 1.01).any()


def test_a_threshold_over_the_largest_number_prunes_all_that_is_finite():
    assert above(np.array([65504, -1, np.inf], np.float16), 1e6).tolist() == [0, 0, 1]


def test_a_threshold_under_the_smallest_number_prunes_only_zeros():
    values = np.array([0, -0.0, 6e-8], np.float16)
    assert above(values, 1e-30).tolist() == [False, False, True]


@pytest.mark.parametrize("threshold", [-0.1, math.nan, math.inf, True, "0.5", None, [0.5]])
def test_thresholds_that_are_none(threshold):
    with pytest.raises(InvalidArgument) as error:
        above(np.ones(2), threshold)
    assert str(error.value) == (
        f"Could not prune 'w' below a threshold: expected a magnitude from 0 on, got {threshold!r}."
        f" Weights of either sign stay if their magnitude reaches it."
    )


def test_pruned_weights_stay_pruned_under_every_rule():
    values = RNG.normal(size=(4, 6))
    kept = RNG.random(values.shape) > 0.3
    for rule, argument in ((below, 0.1), (smallest, 0.5), (blocks, 1)):
        mask = rule([prunable(values, kept)], argument)[0]
        assert not (mask & ~kept).any()


@pytest.mark.parametrize("structured", [False, True])
def test_a_rule_with_a_score_of_its_own(structured):
    def at_random(weights, sparsity, *, seed=0, **how):
        rng = np.random.default_rng(seed)
        return smallest(weights, sparsity, score=lambda rows, kept: rng.random(len(rows)), **how)

    weights = [prunable(np.arange(600.0).reshape(20, 30)), prunable(np.ones((2, 30)))]
    masks = at_random(weights, 0.5, structured=structured)
    gone = [~mask[0] if structured else ~mask for mask in masks]
    assert sum(int(mask.sum()) for mask in gone) == (30 if structured else 330)
    for mask, same, differs in zip(
        masks, at_random(weights, 0.5, structured=structured), at_random(weights, 0.5, seed=1),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_array_equal(mask, same)
        assert (mask != differs).any()
        assert not structured or (mask.all(axis=0) | ~mask.any(axis=0)).all()


def test_blocks_and_thresholds_by_a_score():
    def from_the_end(rows, kept):
        return np.arange(len(rows), dtype=np.float64)

    weight = prunable(np.ones((4, 2)))
    assert blocks([weight], 1, 4, score=from_the_end)[0].tolist() == [[0, 0]] * 3 + [[1, 1]]
    assert below([weight], 6, score=from_the_end)[0].tolist() == [[0, 0]] * 3 + [[1, 1]]

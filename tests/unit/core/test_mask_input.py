"""Masks as they are given, by channel; what is to be pruned is in test_rules.py."""

import math

import numpy as np
import pytest

from tb_pastnet.core.axes import channel_axis, explicit_axis
from tb_pastnet.core.checks import check_sparsity
from tb_pastnet.core.mask_input import as_mask, channel_mask, sparsity
from tb_pastnet.errors import InvalidArgument


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float16, np.float64])
def test_masks_of_every_number_type_are_alike(dtype):
    given = np.array([[1, 0, 1], [0, 0, 1]]).astype(dtype)
    mask = as_mask(given, (2, 3), "w", "kept")
    assert mask.dtype == bool
    np.testing.assert_array_equal(mask, [[True, False, True], [False, False, True]])
    given[0, 0] = 0
    assert mask[0, 0]


def test_lists_scalars_of_scalars_and_empty_masks():
    assert as_mask([True, 0, 1.0], (3,), "w", "kept").tolist() == [True, False, True]
    assert as_mask(0, (), "w", "kept").shape == ()
    assert as_mask(np.ones((0, 4)), (0, 4), "w", "kept").shape == (0, 4)


@pytest.mark.parametrize(
    "given", [1, [1], [[1, 0]], np.ones((2, 1)), np.ones((1, 2, 3)), np.ones(6)]
)
def test_nothing_is_broadcast(given):
    with pytest.raises(InvalidArgument) as error:
        as_mask(given, (2, 3), "dense/kernel", "trainable")
    assert str(error.value) == (
        f"Could not use the trainable mask of 'dense/kernel': expected shape (2, 3), got "
        f"{np.shape(given)}. Give one 0 or 1 for each weight."
    )


@pytest.mark.parametrize(
    ("given", "got"),
    [
        ([[1, 0.5], [1, 2]], "2 other values, the first 0.5 at [0, 1]"),
        ([[1, 0], [math.nan, 1]], "1 other values, the first nan at [1, 0]"),
        ([[-1, 0], [1, 1]], "1 other values, the first -1 at [0, 0]"),
        (np.array([[255, 0], [1, 1]], np.uint8), "1 other values, the first 255 at [0, 0]"),
        ([[1, 0], [1, math.inf]], "1 other values, the first inf at [1, 1]"),
    ],
)
def test_other_values_than_0_and_1(given, got):
    with pytest.raises(InvalidArgument) as error:
        as_mask(given, (2, 2), "w", "kept")
    assert str(error.value) == (
        f"Could not use the kept mask of 'w': expected only 0 and 1, got {got}. Compare first, as "
        f"in w > 0."
    )


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (["a", "b"], "list of ['a', 'b']"),
        (None, "NoneType of None"),
        ([[1], [1, 0]], "list of [[1], [1, 0]]"),
        ([1j, 0], "list of [1j, 0]"),
        ({0, 1}, "set of {0, 1}"),
    ],
)
def test_what_is_no_array_of_numbers(given, kind):
    with pytest.raises(InvalidArgument) as error:
        as_mask(given, (2,), "w", "kept")
    assert str(error.value) == (
        f"Could not use the kept mask of 'w': expected an array of bool, int or float, got {kind}."
        f" Give 1 for each weight that goes through and 0 for each that is held."
    )


def test_channels_of_a_dense_and_of_a_depthwise_kernel():
    mask = channel_mask([3, 1, 3], channel_axis(["Dense"], "kernel", (2, 4)), "w")
    np.testing.assert_array_equal(mask, [[1, 0, 1, 0]] * 2)
    mask = channel_mask(
        np.array([5]), channel_axis(["DepthwiseConv2D"], "kernel", (3, 3, 4, 2)), "w"
    )
    assert not mask[:, :, 2, 1].any()
    assert mask.sum() == 9 * 7


def test_channels_of_gates_have_the_shape_of_the_variable():
    mask = channel_mask([1], channel_axis(["LSTMCell"], "kernel", (3, 20)), "w")
    assert mask.shape == (3, 20)
    assert np.flatnonzero(~mask[0]).tolist() == [1, 6, 11, 16]
    assert channel_mask([0], channel_axis(["GRUCell"], "bias", (2, 12)), "b").shape == (2, 12)


def test_channels_over_axes_in_another_order():
    axis = explicit_axis((2, 0), (2, 3, 4), "w")
    mask = channel_mask([5], axis, "w")
    numbers = axis.split(np.arange(24).reshape(2, 3, 4))
    np.testing.assert_array_equal(np.flatnonzero(~mask), np.sort(numbers[5]))


def test_no_channels_and_the_only_channel_of_a_scalar():
    assert channel_mask([], explicit_axis(0, (3,), "w"), "w").all()
    assert not channel_mask([0], channel_axis(["Dense"], "gain", ()), "w")


@pytest.mark.parametrize(
    ("channels", "got"), [([0, -1], -1), ([4, 5], 4), (np.uint64(2**63), 2**63)]
)
def test_channels_out_of_range(channels, got):
    with pytest.raises(InvalidArgument) as error:
        channel_mask(channels, explicit_axis(-1, (2, 4), "w"), "w")
    assert str(error.value) == (
        f"Could not choose channels of 'w': expected numbers from 0 to 3, got {got}. Channels are "
        f"counted from 0 along axis -1, never from the end."
    )


def test_channels_of_other_types():
    axis = explicit_axis(-1, (2, 4), "w")
    with pytest.raises(InvalidArgument) as error:
        channel_mask(np.array([True, False, True, True]), axis, "w")
    assert str(error.value) == (
        "Could not choose channels of 'w': expected their numbers, got 4 of bool. Give "
        "numpy.flatnonzero(...) of them."
    )
    for wrong in ([0.0], ["a"], None):
        with pytest.raises(InvalidArgument) as error:
            channel_mask(wrong, axis, "w")
        assert str(error.value) == (
            f"Could not choose channels of 'w': expected whole numbers, got {wrong!r}. Give a list "
            f"such as [3, 5]."
        )


def test_sparsity_counts_weights_not_variables():
    assert sparsity([np.zeros(1, bool), np.ones((3, 3), bool)]) == 0.1
    assert sparsity([]) == 0.0
    assert sparsity([np.zeros((0, 3), bool)]) == 0.0


@pytest.mark.parametrize("wrong", [-0.1, 1, 1.0, 1.5, math.nan, True, False, "0.5", None])
def test_sparsities_that_are_none(wrong):
    with pytest.raises(InvalidArgument) as error:
        check_sparsity(wrong)
    assert str(error.value) == (
        f"Could not prune the smallest weights: expected a sparsity from 0 up to below 1, got "
        f"{wrong!r}. It is the fraction of all weights that are pruned afterwards: write 0.8 "
        f"for 80 %."
    )
    assert check_sparsity(np.float32(0.5)) == 0.5

"""The table of channel axes and its fallbacks; real layers are perturbed in the tests of train."""

import numpy as np
import pytest

from tb_pastnet.core.axes import (
    ChannelAxis,
    channel_axis,
    explicit_axis,
    main_variable,
    variable_role,
)
from tb_pastnet.errors import InvalidArgument


@pytest.mark.parametrize(
    ("layer", "variable", "shape", "text", "channels"),
    [
        ("Dense", "kernel", (4, 8), "-1", 8),
        ("Dense", "bias", (8,), "-1", 8),
        ("Conv1D", "kernel", (3, 2, 8), "-1", 8),
        ("Conv2D", "kernel", (3, 3, 2, 8), "-1", 8),
        ("Conv3D", "kernel", (3, 3, 3, 2, 8), "-1", 8),
        ("Conv1DTranspose", "kernel", (3, 8, 2), "-2", 8),
        ("Conv2DTranspose", "kernel", (3, 3, 8, 2), "-2", 8),
        ("Conv3DTranspose", "kernel", (3, 3, 3, 8, 2), "-2", 8),
        ("DepthwiseConv1D", "kernel", (3, 4, 2), "(-2, -1)", 8),
        ("DepthwiseConv2D", "kernel", (3, 3, 4, 2), "(-2, -1)", 8),
        ("SeparableConv1D", "depthwise_kernel", (3, 4, 2), "(-2, -1)", 8),
        ("SeparableConv1D", "pointwise_kernel", (1, 8, 5), "-1", 5),
        ("SeparableConv2D", "pointwise_kernel", (1, 1, 8, 5), "-1", 5),
        ("Embedding", "embeddings", (100, 16), "0", 100),
        ("LSTMCell", "kernel", (3, 32), "-1 mod 8", 8),
        ("LSTMCell", "bias", (32,), "-1 mod 8", 8),
        ("GRUCell", "bias", (2, 24), "-1 mod 8", 8),
        ("SimpleRNNCell", "recurrent_kernel", (8, 8), "-1", 8),
        ("ConvLSTMCell", "kernel", (3, 3, 2, 32), "-1 mod 8", 8),
        ("BatchNormalization", "moving_variance", (8,), "0", 8),
        ("Linear", "weight", (8, 4), "0", 8),
        ("Conv2d", "weight", (8, 2, 3, 3), "0", 8),
        ("Conv3d", "weight", (8, 2, 3, 3, 3), "0", 8),
        ("Conv1d", "weight_v", (8, 2, 3), "0", 8),
        ("ConvTranspose2d", "weight", (2, 8, 3, 3), "1", 8),
        ("ConvTranspose3d", "weight", (2, 8, 3, 3, 3), "1", 8),
        ("Embedding", "weight", (100, 16), "0", 100),
        ("LSTM", "weight_ih", (32, 3), "0 mod 8", 8),
        ("LSTM", "weight_hr", (5, 8), "0", 5),
        ("GRUCell", "bias_hh", (24,), "0 mod 8", 8),
        ("RNN", "weight_hh", (8, 8), "0", 8),
        *((f"BatchNorm{n}d", "running_var", (8,), "0", 8) for n in (1, 2, 3)),
        *((f"InstanceNorm{n}d", "weight", (8,), "0", 8) for n in (1, 2, 3)),
        ("transformers.pytorch_utils.Conv1D", "weight", (4, 8), "-1", 8),
    ],
)
def test_known_layers(layer, variable, shape, text, channels):
    axis = channel_axis([layer, "Layer"], variable, shape)
    assert (axis.text, axis.channels, axis.verified) == (text, channels, True)
    assert axis.channels * axis.elements == np.prod(shape)


@pytest.mark.parametrize(
    ("part", "variable", "shape", "channels"),
    [
        ("query", "kernel", (16, 4, 8), 4),
        ("value", "bias", (4, 8), 4),
        ("attention_output", "kernel", (4, 8, 16), 4),
        ("attention_output", "bias", (16,), 16),
    ],
)
def test_parts_of_attention_have_heads(part, variable, shape, channels):
    axis = channel_axis(
        ["EinsumDense"],
        variable,
        shape,
        parent_types=["MultiHeadAttention"],
        layer_name=part,
        equation="abc,cde->abde",
    )
    assert (axis.channels, axis.verified) == (channels, True)


def test_einsum_is_verified_only_where_one_axis_makes_the_output():
    def axis(equation, shape):
        return channel_axis(["EinsumDense"], "kernel", shape, equation=equation)

    assert (axis("ab,bc->ac", (4, 8)).text, axis("ab,bc->ac", (4, 8)).verified) == ("-1", True)
    assert axis("ab,cb->ac", (8, 4)).text == "-2"
    assert axis("...b,bc->...c", (4, 8)).verified
    assert not axis("ab,bcd->acd", (4, 2, 8)).verified
    assert not axis("ab,b->a", (4,)).verified
    assert channel_axis(["EinsumDense"], "bias", (8,), equation="ab,bc->ac").verified
    # An equation of other kernels than this one says nothing of its axes.
    for shape in ((8,), (2, 4, 8)):
        other = channel_axis(["EinsumDense"], "kernel", shape, equation="ab,bc->ba")
        assert (other.text, other.verified) == (
            channel_axis((), "kernel", shape).text,
            len(shape) == 1,
        )


def test_unknown_layers_fall_back_to_the_last_axis_unverified():
    axis = channel_axis(["mine.Layer", "Layer"], "w", (3, 4))
    assert (axis.text, axis.verified) == ("-1", False)
    assert channel_axis([], "w", (3,)).channels == 3


def test_a_derived_class_is_taken_as_its_base_unverified():
    axis = channel_axis(["mine.Up", "Conv2DTranspose"], "kernel", (3, 3, 8, 2))
    assert (axis.text, axis.verified) == ("-2", False)


def test_a_shape_that_the_rule_does_not_fit_falls_back():
    assert not channel_axis(["LSTMCell"], "kernel", (3, 30)).verified
    assert not channel_axis(["LayerNormalization"], "gamma", (3, 4)).verified
    assert not channel_axis(["Conv2DTranspose"], "kernel", (3,)).verified


def test_a_scalar_is_one_channel():
    axis = channel_axis(["mine.Layer"], "temperature", ())
    assert (axis.channels, axis.elements, axis.text, axis.verified) == (1, 1, "scalar", True)
    assert axis.split(np.array(3.0)).tolist() == [[3.0]]


def test_gates_of_one_unit_belong_together():
    values = np.arange(24).reshape(2, 12)
    axis = channel_axis(["GRUCell"], "kernel", values.shape)
    assert axis.split(values)[1].tolist() == [1, 5, 9, 13, 17, 21]


def test_depthwise_channels_count_multipliers_fastest():
    values = np.arange(6).reshape(1, 3, 2)
    axis = channel_axis(["DepthwiseConv1D"], "kernel", values.shape)
    assert axis.split(values)[:, 0].tolist() == [0, 1, 2, 3, 4, 5]


def rows_of(axis):
    """Of each channel, the indices of the variable's first axis that it has."""
    numbers = np.arange(axis.shape[0]).reshape(-1, *[1] * (len(axis.shape) - 1))
    return [sorted(set(row)) for row in axis.split(np.broadcast_to(numbers, axis.shape)).tolist()]


def test_gates_that_are_stacked_on_the_first_axis():
    axis = channel_axis(["LSTM"], "weight_hh", (12, 3))
    assert rows_of(axis) == [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]
    assert (axis.shape, axis.view) == ((12, 3), (4, 3, 3))


def test_heads_that_are_stacked_behind_query_key_and_value():
    axis = channel_axis(["MultiheadAttention"], "in_proj_weight", (12, 4), parts=2)
    assert rows_of(axis) == [[0, 1, 4, 5, 8, 9], [2, 3, 6, 7, 10, 11]]
    assert (axis.text, axis.elements) == ("0 in 2 parts", 24)
    axis = channel_axis(["MultiheadAttention"], "in_proj_weight", (12, 4), parts=1)
    assert (axis.text, axis.channels, axis.view) == ("0 in 1 part", 1, (3, 1, 4, 4))
    # With keys or values of another width each has a matrix of its own.
    axis = channel_axis(["MultiheadAttention"], "k_proj_weight", (4, 6), parts=2)
    assert (axis.text, rows_of(axis)) == ("0 in 2 parts", [[0, 1], [2, 3]])
    out = channel_axis(
        ["Linear"],
        "weight",
        (4, 4),
        parent_types=["MultiheadAttention"],
        layer_name="out_proj",
        parts=2,
    )
    columns = np.broadcast_to(np.arange(4), (4, 4))
    assert [sorted(set(row)) for row in out.split(columns).tolist()] == [[0, 1], [2, 3]]


def test_groups_of_a_transposed_convolution_have_outputs_of_their_own():
    values = np.arange(4 * 3 * 2).reshape(4, 3, 2)  # two groups of two inputs and three outputs
    axis = channel_axis(["ConvTranspose1d"], "weight", values.shape, parts=2)
    expected = [values[2 * group : 2 * group + 2, out] for group in (0, 1) for out in range(3)]
    assert axis.split(values).tolist() == [each.ravel().tolist() for each in expected]
    assert (axis.channels, axis.shape) == (6, (4, 3, 2))


def test_parts_that_do_not_fit_fall_back():
    assert not channel_axis(["MultiheadAttention"], "in_proj_weight", (12, 4), parts=5).verified


@pytest.mark.parametrize(("axis", "channels"), [(0, 2), (-1, 4), ((0, 2), 8), ((), 1)])
def test_a_users_axis(axis, channels):
    assert explicit_axis(axis, (2, 3, 4), "w").channels == channels


@pytest.mark.parametrize("axis", [3, -4, (0, 0), (0, -3), (0, 7)])
def test_an_axis_out_of_range_is_refused(axis):
    with pytest.raises(InvalidArgument, match=r"'s' .* expected \(\) for a scalar, got"):
        explicit_axis(axis, (), "s")
    with pytest.raises(InvalidArgument, match=r"expected different axes from -3 to 2 for shape"):
        explicit_axis(axis, (2, 3, 4), "w")


@pytest.mark.parametrize("axis", ["out", None, 1.0, (0, "out"), True])
def test_an_axis_that_is_no_number_is_refused(axis):
    with pytest.raises(InvalidArgument, match="expected a whole number or several, got"):
        explicit_axis(axis, (2, 3, 4), "w")


def test_values_of_another_size_are_refused():
    with pytest.raises(
        InvalidArgument, match=r"expected 4 elements as in \(4,\), got shape \(5,\)"
    ):
        ChannelAxis((4,), (0,), "0", True).split(np.zeros(5))


@pytest.mark.parametrize(
    ("names", "main"),
    [
        (["bias", "kernel"], 1),
        (["depthwise_kernel", "pointwise_kernel", "bias"], 1),
        (["kernel", "recurrent_kernel", "bias"], 0),
        (["beta", "moving_mean", "gamma"], 2),
        (["cell/bias", "cell/kernel"], 1),
        (["a", "b"], 0),
        (["parametrizations/weight/original", "bias", "weight"], 2),
    ],
)
def test_the_variable_that_a_layer_is_drawn_by(names, main):
    assert main_variable([(name, (4,)) for name in names]) == main


def test_without_a_known_name_the_largest_is_drawn():
    assert main_variable([("a", (4,)), ("b", (4, 4))]) == 1


@pytest.mark.parametrize(
    ("name", "shape", "role"),
    [
        ("depthwise_kernel", (3, 4, 1), "kernel"),
        ("embeddings", (9, 4), "kernel"),
        ("w", (2, 2), "kernel"),
        ("bias", (2, 24), "bias"),
        ("beta", (4,), "bias"),
        ("cell/gamma", (4,), "scale"),
        ("temperature", (), "other"),
        ("weight", (4, 2), "kernel"),
        ("weight", (4,), "scale"),
        ("bias_ih_l0", (24,), "bias"),
        ("in_proj_bias", (24,), "bias"),
        ("parametrizations/weight/original", (4, 2), "other"),
    ],
)
def test_roles(name, shape, role):
    assert variable_role(name, shape) == role
    assert variable_role(name, shape, statistic=True) == "statistic"

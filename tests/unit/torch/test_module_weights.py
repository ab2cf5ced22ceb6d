"""Channels of real layers, values as arrays, and what a user calls weights."""

from __future__ import annotations

import numpy as np
import pytest

from tb_pastnet.errors import InvalidArgument, UnknownName

torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")

from torch import nn  # noqa: E402

from tb_pastnet.torch.module_weights import array_of, network_of  # noqa: E402

HIDDEN = torch.linspace(-1, 3, 4).reshape(1, 1, 4)


def image(*size):
    return lambda layer: layer(torch.linspace(-1, 3, int(np.prod(size))).reshape(1, *size))


def one_step(layer):
    state = (HIDDEN, HIDDEN) if isinstance(layer, nn.LSTM) else HIDDEN
    return layer(torch.linspace(-1, 2, 3).reshape(1, 1, 3), state)[0].movedim(-1, 1)


def rows(layer):
    return layer(torch.arange(5)).unsqueeze(0)


LAYERS = {
    "linear": (lambda: nn.Linear(3, 5), image(3)),
    "conv": (lambda: nn.Conv2d(3, 4, 2), image(3, 4, 4)),
    "depthwise": (lambda: nn.Conv1d(4, 8, 2, groups=4), image(4, 4)),
    "transposed": (lambda: nn.ConvTranspose2d(3, 5, 2), image(3, 3, 3)),
    "groups": (lambda: nn.ConvTranspose1d(4, 6, 2, groups=2), image(4, 3)),
    "embedding": (lambda: nn.Embedding(5, 3), rows),
    "batch norm": (lambda: nn.BatchNorm2d(3).eval(), image(3, 2, 2)),
    "group norm": (lambda: nn.GroupNorm(2, 4), image(4, 3)),
    "layer norm": (lambda: nn.LayerNorm(4), image(4)),
    "rms norm": (lambda: nn.RMSNorm(4), image(4)),
    "lstm": (lambda: nn.LSTM(3, 4, batch_first=True), one_step),
    "gru": (lambda: nn.GRU(3, 4, batch_first=True), one_step),
    "rnn": (lambda: nn.RNN(3, 4, batch_first=True), one_step),
}


def moved_outputs(layer, call, weight, channel):
    """Outputs, on axis 1, that a change of one channel changes."""
    split = np.arange(weight.axis.channels) == channel
    rest = np.broadcast_to(split[:, None], (weight.axis.channels, weight.axis.elements))
    # The inverse of `split`, by where each element goes.
    numbers = weight.axis.split(np.arange(rest.size).reshape(weight.shape))
    where = np.zeros(rest.size, bool)
    where[numbers.ravel()] = rest.ravel()
    with torch.no_grad():
        before = call(layer).clone()
        weight.entry.stored[torch.from_numpy(where.reshape(weight.shape))] += 0.5
        after = call(layer)
        weight.entry.stored[torch.from_numpy(where.reshape(weight.shape))] -= 0.5
    apart = ((after - before).abs() > 1e-4).movedim(1, 0).flatten(1).any(1)
    return apart.nonzero().ravel().tolist()


@pytest.mark.parametrize("name", LAYERS)
def test_a_channel_moves_its_own_output_and_no_other(name):
    torch.manual_seed(1)
    make, call = LAYERS[name]
    layer = make()
    weights = network_of(layer).weights
    assert weights
    for weight in weights:
        assert weight.axis.verified
        for channel in range(weight.axis.channels):
            assert moved_outputs(layer, call, weight, channel) == [channel], weight.name


def attention(**settings):
    torch.manual_seed(2)
    layer = nn.MultiheadAttention(8, 4, batch_first=True, **settings)
    with torch.no_grad():
        layer.out_proj.weight.copy_(torch.eye(8))
    return layer


def heads(layer):
    query = torch.linspace(-1, 1, 24).reshape(1, 3, 8) ** 2
    values = [query, query[..., : layer.kdim], query[..., : layer.vdim]]
    return layer(*values)[0].unflatten(-1, (4, 2)).movedim(2, 1)


@pytest.mark.parametrize("settings", [{}, {"kdim": 3, "vdim": 5}, {"add_bias_kv": True}])
def test_a_channel_of_attention_is_a_head(settings):
    layer = attention(**settings)
    weights = [each for each in network_of(layer).weights if "out_proj" not in each.name]
    assert {"in_proj_bias"} < {weight.name for weight in weights}
    for weight in weights:
        if weight.name == "bias_k":
            continue  # of one more key, which moves each head only where queries differ
        assert (weight.axis.channels, weight.axis.verified) == (4, True)
        for head in range(4):
            assert moved_outputs(layer, heads, weight, head) == [head], weight.name


def test_a_channel_of_what_joins_heads_reads_its_head():
    layer = attention()
    weight = {each.name: each for each in network_of(layer).weights}["out_proj/weight"]
    reads = np.broadcast_to(np.arange(8) // 2, (8, 8))
    assert [set(row) for row in weight.axis.split(reads).tolist()] == [{0}, {1}, {2}, {3}]


def test_a_norm_over_several_axes_and_an_own_module_are_not_verified():
    class Mix(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.zeros(3, 4))
            self.norm = nn.LayerNorm((2, 3))

    axes = {weight.name: weight.axis for weight in network_of(Mix()).weights}
    assert [axis.verified for axis in axes.values()] == [False] * 3
    assert axes["w"].channels == 3  # as functions of torch have outputs


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "float32", "float64"])
def test_values_are_exact_in_every_dtype(dtype):
    values = torch.tensor([1.5, -0.0, 2.0**-9, float("nan"), 448.0], dtype=getattr(torch, dtype))
    array = array_of(values)
    assert array.dtype == ("float64" if dtype == "float64" else "float32")
    np.testing.assert_array_equal(array, [1.5, -0.0, 2.0**-9, np.nan, 448.0])
    assert np.signbit(array[1])


def test_float32_on_a_cpu_is_not_copied_and_other_memory_is_made_contiguous():
    layer = nn.Conv2d(3, 4, 2)
    read = array_of(layer.weight)
    with torch.no_grad():
        layer.weight[0, 0, 0, 0] = 7
    assert read[0, 0, 0, 0] == 7
    expected = read.copy()
    layer = layer.to(memory_format=torch.channels_last)
    assert not layer.weight.is_contiguous()
    again = array_of(layer.weight)
    assert again.flags.c_contiguous
    np.testing.assert_array_equal(again, expected)


def model():
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(2, 3))


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        (["0.weight"], ["0/weight"]),
        ("3.*", ["3/weight", "3/bias"]),
        (["1/running_*"], ["1/running_mean", "1/running_var"]),
        (("*.bias",), ["0/bias", "1/bias", "3/bias"]),
    ],
)
def test_weights_are_chosen_by_their_names_in_torch_and_in_the_log(wanted, chosen):
    assert [weight.name for weight in network_of(model(), wanted).weights] == chosen


def test_weights_are_chosen_by_themselves_and_by_their_modules():
    module = model()
    chosen = network_of(module, [module[3], module[0].bias]).weights
    assert [weight.name for weight in chosen] == ["0/bias", "3/weight", "3/bias"]
    wrapped = network_of(torch.compile(module, backend="eager"), ["_orig_mod.3.bias"])
    assert [weight.name for weight in wrapped.weights] == ["3/bias"]


def test_axes_are_corrected_and_what_follows_is_said():
    network = network_of(model(), None, {"3.weight": 1}, follows=["0.*"])
    weights = {weight.name: weight for weight in network.weights}
    assert weights["3/weight"].axis.channels == 2
    assert [name for name, weight in weights.items() if weight.text.follows] == [
        "0/weight",
        "0/bias",
    ]
    layers = [(layer.id, layer.type, layer.main) for layer in network.layers]
    assert layers == [
        ("0", "Conv2d", "0/weight"),
        ("1", "BatchNorm2d", "1/weight"),
        ("3", "Linear", "3/weight"),
    ]
    roles = [weight.role for weight in network.weights]
    assert roles == ["kernel", "bias", "scale", "bias", "statistic", "statistic", "kernel", "bias"]


def test_parts_of_a_computed_weight_are_split_as_it_and_lie_in_its_layer():
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    network = network_of(nn.ModuleDict({"a": layer}))
    channels = {weight.text.name: weight.axis.text for weight in network.weights}
    parts = [f"parametrizations/weight/original{number}" for number in (0, 1)]
    assert channels == {"weight": "0", "bias": "0", parts[0]: "0", parts[1]: "0"}
    assert [(each.id, each.type, each.main) for each in network.layers] == [
        ("a", "Linear", "a/weight")
    ]
    assert [weight.role for weight in network.weights] == ["kernel", "bias", "other", "other"]


def test_what_has_no_values_of_its_own_is_skipped_with_a_reason():
    module = nn.Linear(2, 2)
    module.codes = nn.Parameter(torch.zeros(2, dtype=torch.int8), requires_grad=False)
    module.spread = nn.Parameter(torch.eye(2).to_sparse())
    module.none = nn.Parameter(torch.zeros(0))
    network = network_of(module)
    assert [weight.name for weight in network.weights] == ["weight", "bias"]
    assert network.skipped == (
        ("codes", "its dtype int8 isn't a floating one"),
        ("spread", "its layout is sparse_coo"),
        ("none", "it has no elements"),
    )


def test_arguments_that_cannot_be_used_are_refused():
    with pytest.raises(InvalidArgument, match=r"expected model= a torch.nn.Module, got dict. Pass"):
        network_of({"weight": torch.zeros(2)})
    with pytest.raises(InvalidArgument, match=r"Could not record a ReLU: expected at least one"):
        network_of(nn.ReLU())
    with pytest.raises(UnknownName, match=r"Could not find variable '4/weight'"):
        network_of(model(), ["4.weight"])
    twice = nn.ModuleDict({"a/b": nn.Linear(1, 1), "a": nn.ModuleDict({"b": nn.Linear(1, 1)})})
    with pytest.raises(InvalidArgument, match=r"got two of the name 'a/b/weight'. Rename"):
        network_of(twice)

"""Which leaves are recorded, and the channel axes of real layers.

A perturbed channel of a weight moves that channel of the output. What each layer computes is asked
of the framework itself; what a channel of a weight is, of us.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="its room is tested where JAX is installed")
jnp = pytest.importorskip("jax.numpy", reason="its room is tested where JAX is installed")

from tb_pastnet.jax.leaf_weights import network_of  # noqa: E402
from tb_pastnet.jax.tree import Tree, leaves  # noqa: E402
from tests.sampled import sampled  # noqa: E402

KEY = jax.random.key(0)


def weights_of(params):
    return {weight.name: weight for weight in network_of(params, Tree(params)).weights}


def texts(params):
    return {name: (w.axis.text, w.axis.verified) for name, w in weights_of(params).items()}


def moved(call, tree, name, channel):
    """Which outputs change, where one channel of a weight does."""
    weight = weights_of(tree)[name]
    flat, structure = jax.tree_util.tree_flatten(tree)
    (number,) = [leaf.number for leaf in leaves(tree) if leaf.name == name]
    rows = np.zeros((weight.axis.channels, weight.axis.elements))
    rows[channel] = 1
    shape = [weight.axis.view[axis] for axis in weight.axis.order]
    delta = rows.reshape(shape).transpose(np.argsort(weight.axis.order)).reshape(weight.shape)
    changed = [*flat]
    changed[number] = flat[number] + jnp.asarray(delta, flat[number].dtype)
    return np.asarray(call(jax.tree_util.tree_unflatten(structure, changed)) != call(tree))


def last_axis(outputs):
    return outputs.reshape(-1, outputs.shape[-1]).any(0)


def first_axis(outputs):
    return outputs.reshape(outputs.shape[0], -1).any(1)


def rows_of(outputs):
    return outputs.any(-1)


X = np.asarray(jax.random.normal(KEY, (2, 6, 6, 4)))


FLAX = {
    "Linear": ({"in_features": 4, "out_features": 5}, X[:, 0, 0]),
    "Conv": ({"in_features": 4, "out_features": 5, "kernel_size": (3, 3)}, X),
    "depthwise Conv": (
        {"in_features": 4, "out_features": 8, "kernel_size": (3, 3), "feature_group_count": 4},
        X,
    ),
    "ConvTranspose": ({"in_features": 4, "out_features": 5, "kernel_size": (3, 3)}, X),
    "Embed": ({"num_embeddings": 5, "features": 3}, np.arange(5)),
    "LayerNorm": ({"num_features": 4}, X),
    "BatchNorm": ({"num_features": 4, "use_running_average": True}, X),
    "GroupNorm": ({"num_features": 4, "num_groups": 2}, X),
    "RMSNorm": ({"num_features": 4}, X),
}


@pytest.mark.parametrize("word", sampled(FLAX, every=2))
def test_channels_of_flax(word):
    nnx = pytest.importorskip("flax.nnx", reason="its layers are tested where Flax is installed")
    options, inputs = FLAX[word]
    module = getattr(nnx, word.rpartition(" ")[2])(**options, rngs=nnx.Rngs(0))
    outputs_of = rows_of if word == "Embed" else last_axis
    for name, weight in weights_of(module).items():
        assert weight.axis.verified, name
        for channel in range(weight.axis.channels):
            outputs = outputs_of(moved(lambda layer: layer(inputs), module, name, channel))
            assert np.flatnonzero(outputs).tolist() == [channel], name


EQUINOX = {
    "Linear": ((4, 5), {"key": KEY}, X[0, 0, 0]),
    "Conv2d": ((4, 6, 3), {"groups": 2, "key": KEY}, X[0].T),
    "ConvTranspose2d": ((4, 6, 3), {"key": KEY}, X[0].T),
    "LayerNorm": ((4,), {}, X[0, 0, 0]),
    "GroupNorm": ((2, 4), {}, X[0].T),
}


@pytest.mark.parametrize("kind", sampled(EQUINOX, every=2))
def test_channels_of_equinox(kind):
    nn = pytest.importorskip("equinox.nn", reason="its layers are tested where it is installed")
    arguments, options, inputs = EQUINOX[kind]
    module = getattr(nn, kind)(*arguments, **options)
    for name, weight in weights_of(module).items():
        assert weight.axis.verified, name
        for channel in range(weight.axis.channels):
            outputs = first_axis(moved(lambda layer: layer(inputs), module, name, channel))
            assert np.flatnonzero(outputs).tolist() == [channel], name


def test_rows_of_an_embedding_of_equinox():
    nn = pytest.importorskip("equinox.nn", reason="its layers are tested where it is installed")
    module = nn.Embedding(5, 3, key=KEY)
    assert texts(module) == {"weight": ("0", True)}


def test_heads_of_flax():
    nnx = pytest.importorskip("flax.nnx", reason="its layers are tested where Flax is installed")
    module = nnx.MultiHeadAttention(2, 4, rngs=nnx.Rngs(0), decode=False)
    of_heads = [f"{each}/{own}" for each in ("key", "query", "value") for own in ("kernel", "bias")]
    expected = {
        **dict.fromkeys(of_heads, ("-2", True)),
        **dict.fromkeys(("out/kernel", "out/bias"), ("0", True)),
    }
    assert texts(module) == expected
    # Also where only names are left.
    assert texts(nnx.state(module, nnx.Param)) == expected
    for channel in range(2):
        outputs = moved(lambda layer: layer.query(X[0, 0]), module, "query/kernel", channel)
        heads = outputs.any((0, 2))
        assert np.flatnonzero(heads).tolist() == [channel]


def test_heads_of_equinox():
    nn = pytest.importorskip("equinox.nn", reason="its layers are tested where it is installed")
    module = nn.MultiheadAttention(2, 4, key=KEY)
    assert texts(module) == {
        "query_proj/weight": ("0 in 2 parts", True),
        "key_proj/weight": ("0 in 2 parts", True),
        "value_proj/weight": ("0 in 2 parts", True),
        "output_proj/weight": ("1 in 2 parts", True),
    }

    def query(layer):
        return jax.vmap(layer.query_proj)(X[0, 0]).reshape(-1, 2, 2)

    for channel in range(2):
        heads = moved(query, module, "query_proj/weight", channel).any((0, 2))
        assert np.flatnonzero(heads).tolist() == [channel]


def test_gates_of_flax():
    nnx = pytest.importorskip("flax.nnx", reason="its layers are tested where Flax is installed")
    cell = nnx.OptimizedLSTMCell(4, 3, rngs=nnx.Rngs(0))
    carry = (np.ones(3, np.float32), np.ones(3, np.float32))
    for name in ("dense_i/kernel", "dense_h/kernel", "dense_h/bias"):
        assert texts(cell)[name] == ("-1 mod 3", True)
        for unit in range(3):
            outputs = moved(lambda layer: layer(carry, X[0, 0, 0])[0][1], cell, name, unit)
            assert np.flatnonzero(outputs).tolist() == [unit]


@pytest.mark.parametrize(
    "kind", sampled(["LSTMCell", "OptimizedLSTMCell", "GRUCell", "SimpleCell"], every=2, first=1)
)
def test_gates_of_linen_are_leaves_of_their_own(kind):
    nn = pytest.importorskip("flax.linen", reason="its layers are tested where Flax is installed")

    class Network(nn.Module):
        @nn.compact
        def __call__(self, x):
            cell = getattr(nn, kind)(3)
            one, half = np.ones(3, np.float32), np.full(3, 0.5, np.float32)
            return cell((one, half) if "LSTM" in kind else half, x)[1]

    network = Network()
    params = network.init(KEY, X[0, 0, 0])["params"]
    for name, weight in weights_of(params).items():
        assert (weight.axis.text, weight.axis.verified) == ("-1", True), name
        outputs = moved(lambda tree: network.apply({"params": tree}, X[0, 0, 0]), params, name, 1)
        assert np.flatnonzero(outputs).tolist() == [1], name


def test_gates_of_a_gru_of_haiku():
    hk = pytest.importorskip("haiku", reason="its layers are tested where it is installed")

    def step(x):
        return hk.GRU(3)(x, np.full(3, 0.5, np.float32))[0]

    network = hk.without_apply_rng(hk.transform(step))
    params = network.init(KEY, X[0, 0, 0])
    assert set(texts(params).values()) == {("-1 mod 3", True)}
    for name in texts(params):
        outputs = moved(lambda tree: network.apply(tree, X[0, 0, 0]), params, name, 1)
        assert outputs[1], name


def test_gates_of_equinox():
    nn = pytest.importorskip("equinox.nn", reason="its layers are tested where it is installed")
    carry = (np.ones(3, np.float32), np.ones(3, np.float32))
    for cell, call in (
        (nn.LSTMCell(4, 3, key=KEY), lambda layer: layer(X[0, 0, 0], carry)[1]),
        (nn.GRUCell(4, 3, key=KEY), lambda layer: layer(X[0, 0, 0], carry[0])),
    ):
        for name in ("weight_ih", "weight_hh", "bias"):
            assert texts(cell)[name] == ("0 mod 3", True)
            for unit in range(3):
                outputs = moved(call, cell, name, unit)
                assert np.flatnonzero(outputs).tolist() == [unit]


def test_gates_of_haiku():
    hk = pytest.importorskip("haiku", reason="its layers are tested where it is installed")

    def step(x):
        cell = hk.LSTM(3)
        return cell(x, cell.initial_state(None))[0]

    network = hk.without_apply_rng(hk.transform(step))
    params = network.init(KEY, X[0, 0, 0])
    for name in ("lstm/linear/w", "lstm/linear/b"):
        assert texts(params)[name] == ("-1 mod 3", True)
        for unit in range(3):
            outputs = moved(lambda tree: network.apply(tree, X[0, 0, 0]), params, name, unit)
            assert np.flatnonzero(outputs).tolist() == [unit]


@pytest.mark.parametrize(
    ("kind", "arguments"),
    sampled(
        [
            ("Linear", (5,)),
            ("Conv2D", (5, 3)),
            ("Conv2DTranspose", (5, 3)),
            ("LayerNorm", (-1, True, True)),
        ],
        every=2,
    ),
)
def test_channels_of_haiku(kind, arguments):
    hk = pytest.importorskip("haiku", reason="its layers are tested where it is installed")

    def layer(x):
        return getattr(hk, kind)(*arguments)(x)

    network = hk.without_apply_rng(hk.transform(layer))
    params = network.init(KEY, X)
    for name, weight in weights_of(params).items():
        assert weight.axis.verified, name
        for channel in range(weight.axis.channels):
            outputs = moved(lambda tree: network.apply(tree, X), params, name, channel)
            assert np.flatnonzero(last_axis(outputs)).tolist() == [channel], name


def test_linen_is_known_by_the_names_it_gives():
    nn = pytest.importorskip("flax.linen", reason="its layers are tested where Flax is installed")

    class Network(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.Embed(5, 8)(x)
            x = nn.MultiHeadDotProductAttention(2)(x)
            x = nn.LayerNorm()(x)
            x = nn.Conv(4, (3,))(x)
            x = nn.BatchNorm(use_running_average=False)(x)
            return nn.Dense(3, name="head")(x)

    # Shapes alone, which compiles nothing.
    params = jax.eval_shape(Network().init, KEY, np.zeros((1, 3), int))
    weights = weights_of(params)
    kinds = {weight.layer.split("/")[1]: weight.kind for weight in weights.values()}
    assert kinds["Conv_0"] == "Conv"
    assert kinds["head"] == ""
    attention = "params/MultiHeadDotProductAttention_0"
    assert texts(params)[f"{attention}/query/kernel"] == ("-2", True)
    assert texts(params)[f"{attention}/out/kernel"] == ("0", True)
    assert texts(params)["params/Embed_0/embedding"] == ("0", True)
    assert texts(params)["params/head/kernel"] == ("-1", False)
    assert [name for name, weight in weights.items() if weight.statistic] == [
        "batch_stats/BatchNorm_0/mean",
        "batch_stats/BatchNorm_0/var",
    ]


def test_what_batch_norm_of_flax_gathers_is_a_statistic():
    nnx = pytest.importorskip("flax.nnx", reason="its layers are tested where Flax is installed")
    module = nnx.BatchNorm(4, rngs=nnx.Rngs(0))
    statistics = {name for name, weight in weights_of(module).items() if weight.statistic}
    assert statistics == {"mean", "var"}
    assert {
        name for name, weight in weights_of(nnx.state(module)).items() if weight.statistic
    } == statistics


def test_layer_ten_comes_behind_layer_nine():
    params = {f"block_{number}": {"w": jnp.ones((2, 2))} for number in (10, 9, 0)}
    assert [*weights_of(params)] == ["block_0/w", "block_9/w", "block_10/w"]


def test_classes_of_users_fall_back_to_the_last_axis():
    equinox_module = pytest.importorskip("equinox", reason="tested where it is installed").Module

    class Linear(equinox_module):
        weight: jax.Array

    (weight,) = weights_of(Linear(jnp.ones((2, 3)))).values()
    assert weight.kind == "Linear"
    assert (weight.axis.text, weight.axis.verified) == ("-1", False)


def network(params, **options):
    return network_of(params, Tree(params), **options)


def spread(*, addressable, replicated):
    """What an array looks like that several processes have a part of."""
    return SimpleNamespace(
        dtype=np.dtype("float32"),
        shape=(2, 3),
        size=6,
        is_fully_addressable=addressable,
        is_fully_replicated=replicated,
    )


def test_an_array_is_recorded_where_this_process_can_read_it():
    params = {
        "here": spread(addressable=True, replicated=False),
        "everywhere": spread(addressable=False, replicated=True),
        "elsewhere": spread(addressable=False, replicated=False),
    }
    recorded = network(params)
    assert [weight.name for weight in recorded.weights] == ["everywhere", "here"]
    assert recorded.skipped == (("elsewhere", "parts of it are in other processes"),)


def test_names_are_paths_through_any_container():
    array = np.ones(2)
    params = {"a": [array, (array, {"b": array})], 3: array}
    with pytest.raises(ValueError, match="Comparator raised exception while sorting"):
        network(params)  # JAX itself sorts the keys of a dictionary
    names = [weight.name for weight in network({"a": params["a"], "c": {3: array}}).weights]
    assert names == ["a/0", "a/1/0", "a/1/1/b", "c/3"]


@jax.tree_util.register_pytree_node_class
class Pair:
    """A container that gives its parts without names."""

    def __init__(self, *parts):
        self.parts = parts

    def tree_flatten(self):
        return self.parts, None

    @classmethod
    def tree_unflatten(cls, structure, parts):
        return cls(*parts)


def test_a_container_of_its_own_kind_says_nothing_of_its_parts():
    params = Pair({"Dense_0": {"kernel": np.ones((2, 3))}}, np.ones(2))
    kinds = {weight.name: (weight.kind, weight.axis.text) for weight in network(params).weights}
    assert kinds == {"0/Dense_0/kernel": ("", "-1"), "1": ("Pair", "-1")}


def test_a_layer_groups_its_leaves_and_is_drawn_by_its_kernel():
    params = {"dense": {"bias": np.ones(4), "kernel": np.ones((3, 4))}, "scale": np.ones(2)}
    layers = {layer.id: layer for layer in network(params).layers}
    assert layers["dense"].main == "dense/kernel"
    assert layers["dense"].variables == ("dense/bias", "dense/kernel")
    assert layers["scale"].variables == ("scale",)


def test_what_follows_and_what_is_chosen_go_by_names():
    params = {"target": {"w": np.ones(2)}, "online": {"w": np.ones(2)}}
    recorded = network(params, variables=["*/w"], follows=["target/*"])
    follows = {weight.name: weight.text.follows for weight in recorded.weights}
    assert follows == {"online/w": False, "target/w": True}
    assert [each.name for each in network(params, variables=["online/w"]).weights] == ["online/w"]

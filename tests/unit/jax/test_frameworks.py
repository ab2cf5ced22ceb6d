"""Networks of Flax, Equinox and Haiku, in the training steps that their users write."""

from __future__ import annotations

import numpy as np
import pytest

import tb_pastnet as pastnet

jax = pytest.importorskip("jax", reason="its room is tested where JAX is installed")
jnp = pytest.importorskip("jax.numpy", reason="its room is tested where JAX is installed")
optax = pytest.importorskip("optax", reason="it trains what is recorded here")
Recorder = pastnet.jax.Recorder

RNG = np.random.default_rng(0)
TOKENS, Y = RNG.integers(0, 9, (4, 6)), RNG.normal(size=(4, 6, 8)).astype(np.float32)
STEPS = 6


def only_run(logdir):
    (run,) = pastnet.read(logdir).runs.values()
    return run


def channels_of(array, axes):
    """(channels, elements), float64, of channels that axes of the array number."""
    front = np.moveaxis(np.asarray(array, np.float64), axes, range(len(axes)))
    return front.reshape(int(np.prod(front.shape[: len(axes)], dtype=int)), -1)


def check(run, saved, axes):
    """Compares all records with NumPy on the weights that were saved at each step."""
    assert sorted(run.variables) == sorted(axes)
    for name, series in run.variables.items():
        for row, step in enumerate(run.steps.tolist()):
            now, old = (channels_of(saved[each][name], axes[name]) for each in (step, step - 1))
            expected = {
                "norm": np.sqrt((now**2).sum(1)),
                "past_norm": np.sqrt((old**2).sum(1)),
                "delta_norm": np.sqrt(((now - old) ** 2).sum(1)),
                "delta_max": abs(now - old).max(1),
                "changed": (now != old).mean(1),
            }
            for statistic, values in expected.items():
                recorded = getattr(series, statistic)[row]
                np.testing.assert_allclose(recorded, values, rtol=0.023, atol=1e-30, err_msg=name)


def test_a_transformer_block_of_linen(tmp_path):
    nn = pytest.importorskip("flax.linen", reason="it is tested where Flax is installed")

    class Block(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            x = nn.Embed(9, 8)(tokens)
            x = x + nn.MultiHeadDotProductAttention(2)(nn.LayerNorm()(x))
            hidden = nn.gelu(nn.Dense(16)(nn.LayerNorm()(x)))
            return x + nn.Dense(8)(hidden)

    block, optimizer = Block(), optax.adamw(1e-2)
    params = jax.jit(block.init)(jax.random.key(0), TOKENS)["params"]
    state = jax.jit(optimizer.init)(params)

    @jax.jit
    def step(params, state):
        def loss(params):
            return jnp.mean((block.apply({"params": params}, TOKENS) - Y) ** 2)

        updates, state = optimizer.update(jax.grad(loss)(params), state, params)
        return optax.apply_updates(params, updates), state

    def flat(params):
        leaves, _ = jax.tree_util.tree_flatten_with_path(params)
        return {"/".join(key.key for key in path): np.array(leaf) for path, leaf in leaves}

    saved = [flat(params)]
    with Recorder(tmp_path, params, every=2) as recorder:
        for number in range(1, STEPS + 1):
            params, state = step(params, state)
            saved.append(flat(params))
            recorder.record(number, params)
        assert recorder.notes.counts() == {}
    attention = "MultiHeadDotProductAttention_0"
    heads = {f"{attention}/{each}/kernel": (1,) for each in ("query", "key", "value")}
    biases = {f"{attention}/{each}/bias": (0,) for each in ("query", "key", "value")}
    first = {"Embed_0/embedding": (0,), f"{attention}/out/kernel": (0,)}
    axes = {name: (array.ndim - 1,) for name, array in saved[0].items()}
    check(only_run(tmp_path), saved, {**axes, **heads, **biases, **first})


def test_a_module_of_nnx_that_changes_in_place(tmp_path):
    nnx = pytest.importorskip("flax.nnx", reason="it is tested where Flax is installed")

    class Network(nnx.Module):
        def __init__(self, rngs):
            self.hidden = nnx.Linear(8, 6, rngs=rngs)
            self.norm = nnx.BatchNorm(6, rngs=rngs)
            self.drop = nnx.Dropout(0.5, rngs=rngs)
            self.out = nnx.Linear(6, 2, rngs=rngs)

        def __call__(self, x):
            return self.out(self.drop(self.norm(jax.nn.relu(self.hidden(x)))))

    @nnx.jit
    def step(model, optimizer):
        gradients = nnx.grad(lambda model: jnp.mean((model(Y) - Y[..., :2]) ** 2))(model)
        optimizer.update(model, gradients)

    def flat(model):
        names = (
            "hidden/kernel hidden/bias norm/scale norm/bias norm/mean norm/var out/kernel out/bias"
        )
        parts = [name.split("/") for name in names.split()]
        return {
            f"{layer}/{own}": np.array(getattr(getattr(model, layer), own)[...])
            for layer, own in parts
        }

    model = Network(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)
    saved = [flat(model)]
    with Recorder(tmp_path, model, every=1) as recorder:
        for number in range(1, STEPS + 1):
            (model.eval if number == 4 else model.train)()  # another structure, the same weights
            step(model, optimizer)
            saved.append(flat(model))
            recorder.record(number, model)
        assert recorder.notes.counts() == {}
    run = only_run(tmp_path)
    check(run, saved, {name: (array.ndim - 1,) for name, array in saved[0].items()})
    assert {layer.type for layer in run.layers.values()} == {"Linear", "BatchNorm"}
    assert set(run.skipped) == {"drop/rngs/count", "drop/rngs/key"}


def test_a_module_of_equinox_with_donation(tmp_path):
    eqx = pytest.importorskip("equinox", reason="it is tested where Equinox is installed")
    model = eqx.nn.MLP(8, 2, 5, 1, key=jax.random.key(0))
    optimizer = optax.adam(1e-2)
    state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_jit(donate="all")
    def step(model, state):
        def loss(model):
            return jnp.mean((jax.vmap(model)(Y[:, 0]) - Y[:, 0, :2]) ** 2)

        updates, state = optimizer.update(eqx.filter_grad(loss)(model), state, model)
        return eqx.apply_updates(model, updates), state

    def flat(model):
        return {
            f"layers/{number}/{own}": np.array(getattr(layer, own))
            for number, layer in enumerate(model.layers)
            for own in ("weight", "bias")
        }

    saved = [flat(model)]
    with Recorder(tmp_path, model, every=2) as recorder:
        for number in range(1, STEPS + 1):
            donated = model.layers[0].weight
            model, state = step(model, state)
            assert donated.is_deleted()
            saved.append(flat(model))
            recorder.record(number, model)
        assert recorder.notes.counts() == {}
    check(only_run(tmp_path), saved, dict.fromkeys(saved[0], (0,)))


def test_parameters_of_haiku(tmp_path):
    hk = pytest.importorskip("haiku", reason="it is tested where Haiku is installed")

    def forward(x):
        return hk.nets.MLP([5, 2])(x)

    network = hk.without_apply_rng(hk.transform(forward))
    params = network.init(jax.random.key(0), Y[:, 0])
    optimizer = optax.sgd(0.1)
    state = optimizer.init(params)

    @jax.jit
    def step(params, state):
        def loss(params):
            return jnp.mean((network.apply(params, Y[:, 0]) - Y[:, 0, :2]) ** 2)

        updates, state = optimizer.update(jax.grad(loss)(params), state, params)
        return optax.apply_updates(params, updates), state

    def flat(params):
        return {
            f"{layer}/{own}": np.array(array)
            for layer, each in params.items()
            for own, array in each.items()
        }

    saved = [flat(params)]
    with Recorder(tmp_path, params, every=3, variables=["*/w"]) as recorder:
        for number in range(1, STEPS + 1):
            params, state = step(params, state)
            saved.append(flat(params))
            recorder.record(number, params)
    names = ("mlp/~/linear_0/w", "mlp/~/linear_1/w")
    check(only_run(tmp_path), saved, dict.fromkeys(names, (1,)))

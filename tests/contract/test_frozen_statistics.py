"""Statistics of frozen layers that move are a finding, in every framework that has any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tb_pastnet as pastnet
from tests.commands import command

STEPS = 12
X = np.random.default_rng(0).normal(size=(16, 4)).astype("f4")


def found(path: Path) -> list[tuple[Any, ...]]:
    own = [each for each in pastnet.read(path).findings() if each.kind == "statistics"]
    assert all(each.severity == "harm" for each in own)
    return [(each.layers, each.channels, each.first_step, each.numbers) for each in own]


def in_torch(
    path: Path, *, frozen_from: int, eval_from: int, every: int = 1, odd: bool = False
) -> None:
    torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")
    nn = torch.nn
    net = nn.ModuleDict(
        {"norm": nn.BatchNorm1d(4), "plain": nn.BatchNorm1d(4), "head": nn.Linear(4, 1)}
    )
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    with pastnet.torch.Recorder(path, net, optimizer, every=every) as recorder:
        for step in range(1, STEPS + 1):
            net["norm"].requires_grad_(step < frozen_from)
            net["norm"].train(step < eval_from and (step % 2 == 1 or not odd))
            optimizer.zero_grad()
            inputs = torch.as_tensor(X + step)
            net["head"](net["norm"](net["plain"](inputs) + step)).pow(2).mean().backward()
            optimizer.step()
            recorder.record(step)


LATER = STEPS + 1


def test_statistics_that_move_between_records_only_move_too(tmp_path: Path) -> None:
    in_torch(tmp_path, frozen_from=1, eval_from=LATER, every=2, odd=True)
    (finding,) = pastnet.read(tmp_path).findings()[:1]
    assert (finding.layer, finding.variable) == ("norm", "norm/running_mean")
    assert found(tmp_path) == [(("norm",), 4, 1, {"last_step": STEPS})]


@pytest.mark.parametrize(
    ("frozen_from", "eval_from", "every", "expected"),
    [
        (1, LATER, 1, (1, STEPS)),
        (1, LATER, 4, (1, STEPS)),
        (5, LATER, 1, (6, STEPS)),  # in step 5 it may still have been trained
        (1, 8, 1, (1, 7)),
        (1, 1, 1, None),
        (LATER, LATER, 1, None),
    ],
)
def test_statistics_that_move_while_all_weights_of_their_layer_are_frozen(
    tmp_path: Path, frozen_from: int, eval_from: int, every: int, expected: tuple[int, int] | None
) -> None:
    in_torch(tmp_path, frozen_from=frozen_from, eval_from=eval_from, every=every)
    if expected is None:
        assert found(tmp_path) == []
    else:
        first, last = expected
        assert found(tmp_path) == [(("norm",), 4, first, {"last_step": last})]
    failed = command("report", str(tmp_path), "--fail-on", "statistics").code
    assert failed == (expected is not None)


def test_in_keras(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    model = keras.Sequential(
        [keras.Input((4,)), keras.layers.BatchNormalization(name="norm"), keras.layers.Dense(1)]
    )
    norm = model.get_layer("norm")
    norm.gamma.trainable = norm.beta.trainable = False  # the layer's own flag would stop them
    model.compile("sgd", "mse")
    callback = pastnet.PastNetCallback(tmp_path, every=1)
    model.fit(X, X[:, :1], batch_size=4, epochs=3, verbose=0, callbacks=[callback])
    callback.close()
    assert [own[0] for own in found(tmp_path)] == [("norm",)]


def jax_run(path: Path, tree: Any, masks: Any, moves: Any) -> None:
    with pastnet.jax.Recorder(path, tree, every=1, trainable=masks) as recorder:
        for step in range(1, STEPS + 1):
            tree = moves(tree, step)
            recorder.record(step, tree)


def test_in_linen(tmp_path: Path) -> None:
    """The statistics stand beside the parameters, in a collection of their own."""
    jax = pytest.importorskip("jax", reason="JAX isn't installed: an extra of its own")
    linen = pytest.importorskip("flax.linen", reason="flax isn't installed")

    class Net(linen.Module):  # type: ignore[misc, name-defined]
        @linen.compact  # type: ignore[untyped-decorator]
        def __call__(self, x: Any) -> Any:
            return linen.Dense(2)(linen.BatchNorm(use_running_average=False)(x))

    net = Net()
    tree = net.init(jax.random.key(0), X)

    def moves(tree: Any, step: int) -> Any:
        _, new = net.apply(tree, X + step, mutable=["batch_stats"])
        return {**tree, **new}

    flags = jax.tree_util.tree_map_with_path(lambda path, _: "BatchNorm" not in str(path), tree)
    jax_run(tmp_path / "frozen", tree, flags, moves)
    jax_run(tmp_path / "free", tree, None, moves)
    (own,) = found(tmp_path)
    assert own == (("batch_stats/BatchNorm_0",), 4, 1, {"last_step": STEPS})


def test_in_nnx(tmp_path: Path) -> None:
    nnx = pytest.importorskip("flax.nnx", reason="flax isn't installed")
    jax = pytest.importorskip("jax", reason="JAX isn't installed: an extra of its own")
    net = nnx.Sequential(nnx.BatchNorm(4, rngs=nnx.Rngs(0)), nnx.Linear(4, 2, rngs=nnx.Rngs(0)))

    def moves(net: Any, step: int) -> Any:
        net(X + step)
        return net

    flags = lambda tree: jax.tree_util.tree_map_with_path(  # noqa: E731
        lambda path, _: "scale" not in str(path) and "bias" not in str(path), tree
    )
    jax_run(tmp_path, net, flags, moves)
    (own,) = found(tmp_path)
    assert own == (("layers/0",), 4, 1, {"last_step": STEPS})

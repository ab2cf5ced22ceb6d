"""The runs whose loops are the demo's own, by NumPy on the weights after each of a few steps."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import tb_pastnet as pastnet
from demo import story
from demo.digits import BATCH, Digits, digits
from demo.frameworks import FRAMEWORKS
from demo.story import CONVOLUTIONS, EPOCHS, FREEZE, LEAK, LEAKING, PRUNE, PRUNED, THAW
from tests.sampled import sampled

STEPS = 2  # an epoch
LEAKED = {"torch": slice(None), "jax": slice(LEAKING)}  # channels of block2


class Weights:
    """Stands for a Recorder: keeps the weights, channels last, before the first and each step."""

    seen: list[dict[str, np.ndarray]]
    declared: list[tuple[int, dict, dict]]

    def __init__(self, folder, params, *_, **__):
        Weights.seen, Weights.declared, self.params = [], [], params
        self.keep(params)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def record(self, step, params=None):
        self.keep(self.params if params is None else params)
        assert step == len(self.seen) - 1

    def declare(self, params, masks, kept):
        self.declared.append((len(self.seen) - 1, masks, kept))

    def keep(self, params):
        if isinstance(params, dict):
            layers = {
                f"{layer}/{key}": np.array(array)
                for layer, arrays in params.items()
                for key, array in arrays.items()
            }
        else:
            layers = {}
            for path, module in params.named_modules():
                if hasattr(module, "bias"):
                    name = path.replace(".", "/")
                    layers[f"{name}/kernel"] = np.moveaxis(values(module, "weight"), 0, -1)
                    layers[f"{name}/bias"] = values(module, "bias")
        self.seen.append({name: np.array(array) for name, array in layers.items()})


def values(module, key):
    """A tensor of a layer; where it is pruned the layer's own is that of the last forward pass."""
    if hasattr(module, f"{key}_mask"):
        parts = [getattr(module, f"{key}_{part}") for part in ("orig", "mask")]
        return np.prod([part.detach().numpy() for part in parts], 0)
    return getattr(module, key).detach().numpy()


# JAX compiles each run anew.
@pytest.fixture(scope="module", params=sampled(["torch", "jax"], every=2))
def framework(request):
    for package in FRAMEWORKS[request.param].packages:
        pytest.importorskip(package, reason=f"needs {package}")
    return request.param


@pytest.fixture(scope="module")
def trained(framework, tmp_path_factory):
    """By name of a run: what was seen, and what was declared."""
    whole, runs = digits(), {}
    few = Digits(tuple(part[: STEPS * BATCH] for part in whole.train), whole.test)
    loops = FRAMEWORKS[framework].load()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(story, "STEPS_PER_EPOCH", STEPS)
        if framework == "jax":
            patch.setattr(loops, "STEPS_PER_EPOCH", STEPS)
        patch.setattr(getattr(pastnet, framework), "Recorder", Weights)
        for name in loops.RUNS:
            [(run, right)] = loops.trained(name, few, tmp_path_factory.mktemp("logs"))
            assert run == name
            assert 0.1 < right <= 1
            runs[name] = Weights.seen, Weights.declared
    return runs


def states(trained, name, variable):
    """The values of a variable, (1 + steps, …, channels)."""
    return np.stack([weights[variable] for weights in trained[name][0]])


def moved(trained, name, variable):
    """Whether each channel changes in each step, (steps, channels)."""
    values = states(trained, name, variable)
    changed = values[1:] != values[:-1]
    return changed.any(tuple(range(1, values.ndim - 1)))


def test_all_runs_start_from_the_same_values(trained):
    starts = [seen[0] for seen, _ in trained.values()]
    for start in starts[1:]:
        assert start.keys() == starts[0].keys()
        for name, array in start.items():
            np.testing.assert_array_equal(array, starts[0][name])


def test_two_seeds_are_two_trainings(trained):
    first, second = (states(trained, f"prune_channels_s{n}", "head/logits/bias") for n in (0, 1))
    assert (first[1] != second[1]).any()


def test_nothing_is_held_in_the_baseline(trained):
    for name in trained["dense"][0][0]:
        assert moved(trained, "dense", name).any(1).all()


@pytest.mark.parametrize("key", ["kernel", "bias"])
def test_layers_are_frozen_one_by_one_and_the_last_is_thawed(trained, key):
    for layer, epoch in zip(CONVOLUTIONS, FREEZE, strict=True):
        moves = moved(trained, "freeze_steps", f"{layer}/{key}").any(1)
        end = THAW if layer == CONVOLUTIONS[-1] else EPOCHS
        expected = [not epoch <= step // STEPS < end for step in range(EPOCHS * STEPS)]
        assert moves.tolist() == expected


@pytest.mark.parametrize("seed", [0, 1])
def test_the_smallest_channels_are_zero_from_their_epoch_on(trained, framework, seed):
    for layer in PRUNED:
        kernel, bias = (
            states(trained, f"prune_channels_s{seed}", f"{layer}/{key}")
            for key in ("kernel", "bias")
        )
        norms = np.sqrt((kernel.astype(np.float64) ** 2).sum(tuple(range(1, kernel.ndim - 1))))
        channels = norms.shape[1]
        for step in range(1, EPOCHS * STEPS + 1):
            count = round(0.1 * sum(epoch <= (step - 1) // STEPS for epoch in PRUNE) * channels)
            pruned = norms[step] == 0
            assert pruned.sum() == count
            assert not bias[step][pruned].any()
        for epoch in PRUNE:
            # torch ranks what it has pruned before by the weights of the last forward pass.
            stale = framework == "torch" and epoch > PRUNE[0]
            left, gone = norms[epoch * STEPS - stale], norms[epoch * STEPS + 1] == 0
            assert left[gone].max() <= left[~gone].min()


def test_what_leaks_fades_by_rate_times_decay_and_nothing_else_does(trained, framework):
    first = LEAK * STEPS
    for layer in CONVOLUTIONS[2:]:
        kernel = states(trained, "leak_weight_decay", f"{layer}/kernel")
        leaked = kernel[first:, ..., LEAKED[framework]]
        np.testing.assert_allclose(leaked[1:], leaked[:-1] * (1 - 2e-4), rtol=1e-6)
    values = states(trained, "leak_weight_decay", "block1/conv1/kernel")
    for current, past in zip(values[1:], values[:-1], strict=True):
        assert not np.allclose(current, past * (1 - 2e-4), rtol=1e-6)
    before = states(trained, "leak_weight_decay", "block2/conv1/kernel")[: first + 1]
    for past, current in pairwise(before):
        assert not np.allclose(current, past * (1 - 2e-4), rtol=1e-6)


def test_masks_of_jax_are_declared_when_they_change(trained, framework):
    if framework == "torch":
        assert not any(declared for _, declared in trained.values())
        return
    steps = {name: [step // STEPS for step, *_ in run[1]] for name, run in trained.items()}
    pruning = {f"prune_channels_s{seed}": [*PRUNE] for seed in (0, 1)}
    others = {"dense": [], "freeze_steps": [*FREEZE, THAW], "leak_weight_decay": [LEAK]}
    assert steps == others | pruning
    [(_, masks, kept)] = trained["leak_weight_decay"][1]
    for layer, arrays in masks.items():
        for key, mask in arrays.items():
            leaks = layer in CONVOLUTIONS[2:] and key == "kernel"
            held = slice(LEAKING) if leaks else slice(0)
            expected = np.ones_like(mask)
            expected[..., held] = 0
            np.testing.assert_array_equal(mask, expected)
            assert kept[layer][key].all()

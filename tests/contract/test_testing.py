"""`pastnet.testing`: what training changed, by bits, in any framework."""

from __future__ import annotations

import fnmatch
import re
import subprocess
import sys
from collections import namedtuple
from contextlib import nullcontext

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_pastnet.core.standing import in_words, may_move
from tb_pastnet.errors import InvalidArgument, UnknownName
from tb_pastnet.testing import assert_frozen, assert_learns, assert_only_trains
from tools.steps import ROOT

DTYPES = ["f2", "f4", "f8", "c8", "c16", "g", "i1", "u2", "i8", "?", ml_dtypes.bfloat16, "M8[s]"]
BASE, HEAD = "base/kernel", "head/kernel"


def mapping(dtype="f4", shape=(3, 4)):
    return {name: np.zeros(shape, dtype) for name in (BASE, "base/bias", HEAD)}


def flip(array, bit):
    """Changes one bit of the memory of a contiguous array."""
    array.reshape(-1).view(np.uint8)[bit // 8] ^= 1 << bit % 8


def fails(context, body):
    """The failure of an assertion; "" if it holds."""
    try:
        with context as now:
            body(now)
    except AssertionError as error:
        return str(error)
    return ""


@given(st.data())
def test_a_single_bit_is_seen_and_nothing_else_is(data):
    dtype = np.dtype(data.draw(st.sampled_from(DTYPES)))
    sizes = st.sampled_from([0, 1, 2, 3, 7, 8, 9])
    shape = tuple(data.draw(st.lists(sizes, max_size=3)))
    weights = mapping(dtype, shape)
    name = data.draw(st.sampled_from(list(weights)))
    bytes_of_one = 10 if dtype.char == "g" else 1 if dtype.kind == "b" else dtype.itemsize
    elements = np.prod(shape, dtype=int)
    before = {key: value.tobytes() for key, value in weights.items()}

    def body(now):
        now(weights)
        if data.draw(st.booleans()):
            element = data.draw(st.integers(0, elements - 1))
            bit = data.draw(st.integers(0, 1 if dtype.kind == "b" else 8 * bytes_of_one - 1))
            flip(weights[name], 8 * dtype.itemsize * element + (0 if dtype.kind == "b" else bit))

    pattern = data.draw(st.sampled_from(["base*", "*/kernel", "head.*", "*"]))
    asserted = fnmatch.filter(weights, pattern.replace(".", "/"))
    if not elements:
        with pytest.raises(InvalidArgument), assert_frozen(weights, pattern):
            pytest.fail("nothing is compared")
        return
    failure = fails(assert_frozen(weights, pattern), body)
    changed = [key for key in asserted if weights[key].tobytes() != before[key]]
    assert bool(failure) == bool(changed)
    assert all(key in failure for key in changed)


@pytest.mark.parametrize(
    ("was", "now"),
    [(0.0, -0.0), (np.nan, np.uint32([0x7FC00001]).view("f4")[0]), (1.0, np.nextafter(1, 2, dtype="f4")),
     (1 + 0j, complex(1, -0.0)), (np.longdouble(1), np.nextafter(np.longdouble(1), 2))],
)  # fmt: skip
def test_bits_count_not_values(was, now):
    weights = {"w": np.array([was, 2], np.float32 if type(was) is float else None)}
    with assert_frozen({**weights, "other": np.zeros(1)}, "w") as told:
        told({**weights, "other": np.zeros(1)})
    assert "w (2,): 1 of 2 values changed, in channel 0 of 2" in fails(
        assert_frozen(weights), lambda _: weights["w"].__setitem__(0, now)
    )


@pytest.mark.parametrize("pattern", ["", "bose*", "base/kernel/x", 7])
@pytest.mark.parametrize("assertion", [assert_frozen, assert_learns, assert_only_trains])
def test_a_pattern_without_a_match_is_an_error(assertion, pattern):
    with pytest.raises(InvalidArgument), assertion(mapping(), "base*", pattern):
        pytest.fail("the block must not run")


@pytest.mark.parametrize("nothing", [{}, [], None, "weights", {"a": "b"}, {"a": None}, object()])
@pytest.mark.parametrize("assertion", [assert_frozen, assert_learns])
def test_nothing_to_compare_is_an_error(assertion, nothing):
    with pytest.raises(InvalidArgument), assertion(nothing):
        pytest.fail("the block must not run")


@pytest.mark.parametrize(
    "call",
    [
        lambda: assert_only_trains(mapping()),
        lambda: assert_only_trains(mapping(), "*"),
        lambda: assert_frozen(mapping(), statistics="stil"),
        lambda: assert_learns(mapping(), pattern="*"),
        lambda: assert_frozen({"a.b": np.ones(1), "a": {"b": np.ones(1)}}),
    ],
)
def test_calls_that_assert_nothing_are_errors(call):
    with pytest.raises((InvalidArgument, TypeError)), call():
        pytest.fail("the block must not run")


def test_names_with_dots_and_slashes_are_one():
    for pattern in ("base.kernel", "base/kernel", "kernel"):
        weights = {"base.kernel": np.zeros(2), "x": np.zeros(1)}
        with assert_only_trains(weights, pattern):
            weights["base.kernel"] += 1


def test_a_tree_that_nothing_changes_shows_nothing_unless_it_is_passed():
    weights = mapping()
    assert "now(params)" in fails(assert_frozen(weights, "base*"), lambda _: None)
    with assert_frozen(weights, "base*") as now:
        now({name: value + (name == HEAD) for name, value in weights.items()})


@pytest.mark.parametrize(
    ("after", "text"),
    [
        (lambda w: w.pop(BASE), "isn't there any more"),
        (lambda w: w.update({BASE: np.zeros((3, 5), "f4")}), "float32[3, 4] and is float32[3, 5]"),
        (lambda w: w.update({BASE: np.zeros((3, 4), "f8")}), "and is float64[3, 4]"),
        (lambda w: w.update({"base/new": np.zeros(3)}), "base/new"),
    ],
)
def test_another_structure_fails(after, text):
    for assertion in (assert_frozen, assert_learns):
        weights = mapping()

        def body(_, weights=weights):
            for name in weights:
                weights[name] += assertion is assert_learns  # noqa: B023
            weights[HEAD] += 1
            after(weights)

        assert text in fails(assertion(weights, "base*"), body)


def test_an_exception_of_the_block_passes_through():
    for assertion in (assert_frozen, assert_only_trains):
        weights = mapping()
        with pytest.raises(ZeroDivisionError), assertion(weights, "head*"):
            weights[BASE] += 1 // (weights.pop(HEAD).size - 12)


def test_trees_of_any_containers_and_scalars():
    pair = namedtuple("pair", "left right")
    tree = {"a": [np.ones(2), pair(np.float32(1), (1.5, True))], "b": None, "c": "text"}
    with assert_only_trains(tree, "a/1/left") as now:
        now({**tree, "a": [tree["a"][0], pair(np.float32(2), (1.5, True))]})
    for wrong in ((1.5, False), (-1.5, True)):
        failure = fails(
            assert_frozen(tree),
            lambda now: now({"a": [np.ones(2), pair(np.float32(1), wrong)]}),  # noqa: B023
        )
        assert "a/1/right/" in failure


def test_only_one_copy_is_made():
    import tracemalloc

    weights = {name: np.ones(1 << 20) for name in "abcd"}
    tracemalloc.start()
    try:
        with assert_only_trains(weights, "a", "b"):
            _, most = tracemalloc.get_traced_memory()
            weights["a"] += 1
            weights["b"] += 1
    finally:
        tracemalloc.stop()
    assert most < 1.1 * 4 * (8 << 20)


def test_importing_it_needs_numpy_alone():
    program = (
        "import sys\nfor name in 'torch tensorflow keras jax tensorboard werkzeug'.split():\n"
        "    sys.modules[name] = None\n"
        "import numpy as np, tb_pastnet as pastnet\n"
        "with pastnet.testing.assert_learns({'a': (a := np.ones(2))}): a += 1"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


# PyTorch


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="needs torch")


def network(torch, *, tied=False):
    nn = torch.nn
    module = nn.ModuleDict({"base": nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)),
                            "head": nn.Linear(4, 4)})  # fmt: skip
    if tied:
        module["head"].weight = module["base"][0].weight
    return module


def step(torch, module, optimizer):
    optimizer.zero_grad()
    module["head"](module["base"](torch.randn(8, 4))).pow(2).mean().backward()
    optimizer.step()


def test_torch_module_that_is_fine_tuned(torch):
    module = network(torch)
    module["base"].requires_grad_(False)
    optimizer = torch.optim.AdamW(module.parameters())
    with assert_only_trains(module, "head.*"), assert_frozen(module, "base.*"):
        step(torch, module, optimizer)
    with assert_learns(module, "head.*"), assert_frozen(module, module["base"]):
        step(torch, module, optimizer)
    failure = fails(
        assert_frozen(module, "base.*", statistics="still"),
        lambda _: step(torch, module, optimizer),
    )
    assert "base/1/running_mean (4,): 4 of 4 values changed" in failure
    assert "call eval()" in failure
    with pytest.raises(InvalidArgument), assert_frozen(module, "base.1.running_*"):
        pytest.fail("the block must not run")
    module["base"].requires_grad_(True)
    module["base"].eval()
    module["head"].requires_grad_(False)
    with assert_only_trains(module, "base.*", statistics="still"):
        step(torch, module, optimizer)


def test_torch_causes_of_what_stands_still(torch):
    from tests.contract.test_standing import STILL

    for name, (make, expected) in STILL.items():
        torch.manual_seed(1)
        module, _, train = make()
        failure = fails(assert_learns(module), lambda _, train=train: (train(1), train(2)))
        lines = dict(
            re.findall(r"  (\w+)/weight .*: not one bit moved. Likely cause: (.*)", failure)
        )
        still = {key: in_words(cause) for key, cause in expected.items() if not may_move(cause)}
        assert lines.items() >= still.items(), name
        module["b"].requires_grad_(False)
        assert "requires_grad is False" in fails(assert_learns(module, "b.*"), lambda _: None)


def test_torch_causes_of_what_moves(torch):
    module = network(torch)
    optimizer = torch.optim.AdamW(module.parameters(), weight_decay=0.1)
    failure = fails(assert_frozen(module, "base.0.*"), lambda _: step(torch, module, optimizer))
    assert failure.count("requires_grad is True") == 2
    step(torch, module, optimizer)
    module["base"][0].weight.requires_grad_(False)  # its gradient stays

    def body(_):
        for _ in range(2):
            optimizer.zero_grad(set_to_none=False)
            module["head"](torch.randn(8, 4)).sum().backward()
            optimizer.step()

    assert "Likely cause: momentum" in fails(assert_frozen(module, "base.0.weight"), body)
    optimizer.state.clear()  # only the decay is left
    assert "Likely cause: weight decay" in fails(assert_frozen(module, "base.0.weight"), body)


def test_torch_parameter_that_is_replaced_in_the_block(torch):
    module = network(torch)
    optimizer = torch.optim.SGD(module.parameters(), 0.1)

    def body(_):
        step(torch, module, optimizer)
        module["head"].weight = torch.nn.Parameter(torch.zeros(4, 4))

    assert "another parameter took its place" in fails(assert_frozen(module, "head.weight"), body)
    with assert_frozen(module, "head.weight"):
        module["head"].weight = torch.nn.Parameter(torch.zeros(4, 4))


def test_torch_tied_weights_are_one(torch):
    module = network(torch, tied=True)
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    with assert_learns(module, "head.weight"):
        step(torch, module, optimizer)
    failure = fails(assert_frozen(module, "head.weight"), lambda _: step(torch, module, optimizer))
    assert "base/0/weight" in failure


@pytest.mark.parametrize(
    "dtype", ["bfloat16", "float16", "float64", "complex64", "int8", "bool", "float8_e4m3fn"]
)
@pytest.mark.parametrize("shape", [(), (5, 3)])
def test_torch_tensors_of_any_dtype(torch, dtype, shape):
    module = torch.nn.Module()
    values = torch.zeros(shape).to(getattr(torch, dtype))
    module.w = torch.nn.Parameter(values, requires_grad=False)
    empty = values[:0] if shape else torch.zeros(0)
    module.empty = torch.nn.Parameter(empty, requires_grad=False)

    def flip_one(_):
        module.w.data.view(-1).view(torch.uint8)[:1].bitwise_xor_(1)

    with assert_frozen(module):
        module.w.data.copy_(module.w.clone())
    assert "w" in fails(assert_frozen(module), flip_one)
    assert not fails(assert_learns(module), flip_one)


def test_torch_leaves_no_hook_and_its_wrappers_no_trace(torch):
    from torch.optim.optimizer import _global_optimizer_post_hooks as hooks

    module = network(torch)
    module["head"].weight = torch.nn.Parameter(module["head"].weight.detach().t())  # not contiguous
    before = len(hooks)
    with assert_frozen(torch.nn.DataParallel(module), "head.*"), nullcontext():
        assert len(hooks) == before + 1
    assert len(hooks) == before
    with torch.no_grad(), assert_learns(module.state_dict(), "head.weight"):
        module["head"].weight += 1


# JAX


def test_pytree_of_jax():
    jax = pytest.importorskip("jax", reason="needs JAX")
    jnp = jax.numpy
    params = {
        "base": {"kernel": jnp.ones((2, 3), jnp.bfloat16)},
        "head": [jnp.ones(3), jnp.zeros((0,))],
    }
    moved = jax.tree_util.tree_map(lambda x: x, params) | {
        "head": [jnp.ones(3) * 2, jnp.zeros((0,))]
    }
    with assert_frozen(params, "base/*") as now, assert_only_trains(params, "head.0") as also:
        now(moved)
        also(moved)
    assert "now(params)" in fails(assert_frozen(params, "base*"), lambda _: None)
    wrong = params | {"base": {"kernel": params["base"]["kernel"].at[1, 2].set(1.01)}}
    failure = fails(assert_frozen(params, "base*"), lambda now: now(wrong))
    assert "base/kernel (2, 3): 1 of 6 values changed, in channel 2 of 3" in failure
    assert "not one bit moved" in fails(assert_learns(params, "head.0"), lambda now: now(wrong))


def test_module_of_nnx_with_statistics_and_random_state():
    jax = pytest.importorskip("jax", reason="needs JAX")
    nnx = pytest.importorskip("flax.nnx", reason="needs Flax")
    rngs = nnx.Rngs(0)
    parts = nnx.Linear(2, 3, rngs=rngs), nnx.BatchNorm(3, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)
    model = nnx.Sequential(*parts, nnx.Linear(3, 2, rngs=rngs))

    def train(_):
        model(jax.numpy.ones((4, 2)))
        model.layers[3].kernel[...] += 1

    assert not fails(assert_only_trains(model, "layers.3.kernel"), train)
    failure = fails(assert_frozen(model, "layers.1.*", statistics="still"), train)
    assert "layers/1/mean" in failure


# Keras


def test_keras_model():
    keras = pytest.importorskip("keras", reason="needs Keras")
    layers = keras.layers
    base = keras.Sequential([layers.Dense(3), layers.BatchNormalization()], name="base")
    model = keras.Sequential([keras.Input((4,)), base, layers.Dense(1, name="head")])
    base.trainable = False
    base.layers[1].trainable = True  # statistics and scale move
    model.compile("sgd", "mse")

    def train(_):
        model.fit(np.random.default_rng(0).normal(size=(8, 4)), np.arange(8.0), verbose=0)

    assert not fails(assert_only_trains(model, "head/*", "base/batch_normalization/*"), train)
    assert not fails(assert_frozen(model, "base.dense.*"), train)
    failure = fails(assert_learns(model, "*"), train)
    assert failure.count("trainable is False") == failure.count("not one bit moved") == 2
    assert "trainable is True: nothing froze it" in fails(
        assert_frozen(model, model.layers[-1]), train
    )
    model.layers[-1].trainable = False
    failure = fails(assert_frozen(model, "head.kernel"), train)
    assert "Likely cause: trainable was changed without a new compile" in failure
    kernel = model.layers[-1].kernel
    values = kernel.numpy()
    flip(values, 3)
    failure = fails(assert_frozen(model, "head.kernel"), lambda _: kernel.assign(values))
    assert "head/kernel (3, 1): 1 of 3 values changed" in failure
    assert "Likely cause" not in failure
    with pytest.raises(UnknownName), assert_frozen(model, "hed*"):
        pytest.fail("the block must not run")

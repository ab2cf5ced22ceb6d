"""All constructors have the same options, in the same order: what differs is listed with a reason."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import tb_pastnet as pastnet
from tb_pastnet.record.options import NAMES, Options

TF = {"keras.Recorder", "keras.PastNetCallback"}
GRAPHS = {"v1.Recorder", "v1.RecorderHook"}
TRAINERS = {"torch.LightningCallback", "torch.HuggingFaceCallback"}
TORCH = {"torch.Recorder", "torch.watch", *TRAINERS}
ARRAYS = {"jax.Recorder", "numpy.Recorder"}
ALL = {*TF, *GRAPHS, *TORCH, *ARRAYS}

DIFFERENCES: list[tuple[str, set[str], str]] = [
    ("optimizer", {"torch.Recorder", "torch.watch"}, "a module doesn't know its optimizer"),
    ("learning_rate", ALL - TORCH, "torch's optimizers tell it"),
    ("trainable kept", {*TORCH, *ARRAYS}, "on TensorFlow `Masks` and `layer.trainable` do"),
    (
        "masks",
        {"keras.Recorder", *GRAPHS, *TORCH},
        "`Masks` hold variables of TensorFlow and tensors of torch; `fit` finds them",
    ),
    ("probe probe_every", TF, "it evaluates a Keras model on TensorFlow"),
    ("initial_step", {*ARRAYS, "keras.Recorder", "torch.Recorder", "torch.watch"}, "others count"),
    ("graph", {"v1.Recorder"}, "a TF1 graph isn't known by its variables"),
    ("opt_state", {"jax.Recorder"}, "JAX's state is passed, and has no owner"),
]
"""Arguments that only some have, which, and why."""

METHODS = "record sync restart declare flush close observe expect_end"
PASSED: dict[str, tuple[set[str], str]] = {
    "jax.Recorder": (
        {"params", "learning_rate", "opt_state"}, "JAX arrays don't change: each call passes them"
    ),
    "v1.Recorder": ({"session"}, "the values of a graph are those of a session"),
}  # fmt: skip
"""What methods take besides, and why."""


def called(name: str) -> Callable[..., Any]:
    room, _, own = name.partition(".")
    package = {"Lightning": "lightning", "HuggingFace": "transformers"}.get(own[:-8], room)
    pytest.importorskip(
        {"v1": "tensorflow"}.get(package, package), reason="it isn't installed: an extra of its own"
    )
    return getattr(getattr(pastnet, room), own)


def lacks(name: str) -> set[str]:
    return {each for words, have, _ in DIFFERENCES for each in words.split() if name not in have}


@pytest.mark.parametrize("name", sorted(ALL))
def test_options_are_those_of_the_declaration_but_for_what_is_listed(name: str) -> None:
    parameters = inspect.signature(called(name)).parameters
    options = {
        key: each.default for key, each in parameters.items() if each.kind is each.KEYWORD_ONLY
    }
    more = [words for words, have, _ in DIFFERENCES if words not in NAMES and name in have]
    declared = [each for each in NAMES if each not in lacks(name)]
    expected = {each: getattr(Options(), each) for each in declared}
    expected["config"] = None
    assert [*options] == [*declared, *(each for each in more if each in ("graph", "opt_state"))]
    assert {key: options[key] for key in declared} == expected


@pytest.mark.parametrize("name", sorted(ALL))
def test_only_the_directory_the_network_and_its_optimizer_have_places(name: str) -> None:
    parameters = inspect.signature(called(name)).parameters.values()
    assert not any(each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL) for each in parameters)
    placed = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    model = {"jax": "params", "numpy": "arrays"}.get(name.partition(".")[0], "model")
    without = {*TRAINERS, *GRAPHS, "keras.PastNetCallback"}
    expected = ["logdir"] if name in without else ["logdir", model]
    expected += ["optimizer"] * ("optimizer" not in lacks(name))
    assert sorted(placed) == sorted(expected)


@pytest.mark.parametrize("name", sorted(each for each in ALL if each.endswith(".Recorder")))
def test_methods_are_the_same_but_for_what_calls_pass(name: str) -> None:
    common, own = inspect.getmembers(called("keras.Recorder")), called(name)
    more, _ = PASSED.get(name, (set(), ""))
    for method, wanted in common:
        if method in METHODS.split():
            given = inspect.signature(getattr(own, method)).parameters
            assert [key for key in given if key not in more] == [
                *inspect.signature(wanted).parameters
            ]


def test_the_rooms_are_as_alike_as_they_can_be() -> None:
    assert len(DIFFERENCES) + len(PASSED) <= 12


def test_the_names_of_keras_are_those_of_the_root() -> None:
    pytest.importorskip("tensorflow", reason="it isn't installed: an extra of its own")
    for name in pastnet.keras.__all__:
        assert getattr(pastnet, name) is getattr(pastnet.keras, name)

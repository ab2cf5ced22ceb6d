"""What kind of network a user gives: one of another framework gets the call for that as answer.

The names of classes show it, without an import of any framework.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tb_pastnet.errors import InvalidArgument

KERAS, TORCH, JAX = "a Keras model", "a torch module", "a tree of JAX arrays"
OPTIMIZER, TRAINER = "an optimizer", "a trainer"

_CLASSES = {
    ("keras", "Layer"): KERAS,
    ("tensorflow", "Module"): KERAS,
    ("torch", "Module"): TORCH,
    ("flax", "Module"): JAX,
    ("equinox", "Module"): JAX,
    ("torch", "Optimizer"): OPTIMIZER,
    ("keras", "Optimizer"): OPTIMIZER,
    ("optax", "GradientTransformation"): OPTIMIZER,
    ("lightning", "Trainer"): TRAINER,
    ("pytorch_lightning", "Trainer"): TRAINER,
    ("transformers", "Trainer"): TRAINER,
}
"""Of the package and name of a class."""

_CALLS = {
    "record": {
        KERAS: "pastnet.Recorder(logdir, model), or fit(…, callbacks=[pastnet.PastNetCallback("
        "logdir)])",
        TORCH: "pastnet.torch.Recorder(logdir, model, optimizer)",
        JAX: "pastnet.jax.Recorder(logdir, params)",
        OPTIMIZER: "Recorder(logdir, …) with the network first, such as "
        "pastnet.torch.Recorder(logdir, model, optimizer)",
        TRAINER: "pastnet.watch(trainer, logdir)",
    },
    "watch": {
        KERAS: "model.fit(…, callbacks=[pastnet.PastNetCallback(logdir)])",
        JAX: "recorder = pastnet.jax.Recorder(logdir, params), and recorder.record(step, params) "
        "after each update",
        OPTIMIZER: "pastnet.watch(model, logdir, optimizer)",
    },
    "hold the weights of": {
        KERAS: "pastnet.Masks(model)",
        TORCH: "pastnet.torch.Masks(model, optimizer)",
        JAX: "pastnet.jax.Recorder(logdir, params, trainable=tree): it checks that these weights "
        "stay",
    },
    "clone": {
        TORCH: "copy.deepcopy(model)",
        JAX: "copy = params: JAX arrays don't change",
    },
    "keep the past of": {
        KERAS: "pastnet.PastNetwork(model)",
        TORCH: "copy.deepcopy(model) for a past network, and pastnet.torch.Recorder(logdir, model, "
        'optimizer, past="epoch") to record how far it is',
        JAX: "past = params for a past network: JAX arrays don't change, and pastnet.jax.Recorder("
        'logdir, params, past="epoch") to record how far it is',
    },
}
"""By what a user wants, and the kind, the call to write."""


def kind_of(subject: Any) -> str | None:
    """The kind of a network, an optimizer or a trainer; None if it is unknown."""
    for each in type(subject).__mro__:
        kind = _CLASSES.get((each.__module__.partition(".")[0], each.__name__))
        if kind is not None:
            return kind
    return JAX if _has_jax_arrays(subject) else None


def check_subject(subject: Any, kind: str, task: str, argument: str = "model") -> None:
    """Raises InvalidArgument for a network of another framework.

    Args:
        subject: the user's.
        kind: what is expected.
        task: "record", "watch", "hold the weights of", "clone" or "keep the past of".
        argument: its name.
    """
    got = kind_of(subject)
    if got is None or got == kind:
        return
    call = _CALLS[task].get(got)
    mend = "Pass the network itself." if call is None else f"Write {call}."
    raise InvalidArgument(
        f"Could not {task} {type(subject).__name__}: expected {argument}= {kind}, got {got}. {mend}"
    )


def _has_jax_arrays(tree: Any, depth: int = 8) -> bool:
    """Whether the first leaf of a mapping, list or tuple is a JAX array."""
    if isinstance(tree, Mapping):
        tree = [*tree.values()]
    if isinstance(tree, list | tuple):
        return bool(tree) and depth > 0 and _has_jax_arrays(tree[0], depth - 1)
    return type(tree).__module__.partition(".")[0] in ("jax", "jaxlib")

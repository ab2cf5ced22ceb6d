"""Arguments that a function doesn't have: the error names the right one.

Keras, tfmot, PyTorch and Lightning have other names for many things. A table here has their names;
typing errors are found by similarity.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from typing import Any, TypeVar

from tb_pastnet.errors import UnknownArgument

C = TypeVar("C", bound=Callable[..., Any])

_OURS = {
    "logdir": "log_dir directory path save_dir output_dir default_root_dir",
    "every": "histogram_freq update_freq log_freq save_freq freq frequency interval period "
    "every_n_steps log_every_n_steps save_steps logging_steps",
    "arrays": "weights params model",
    "variables": "layers weights params names name scope var_list",
    "weights": "arrays params model",
    "params": "model weights variables",
    "model": "network module",
    "network": "model",
    "name": "layer layers variable variables weight weights",
    "channels": "filters units indices index rows",
    "channel_axis": "axis dim",
    "trainable": "mask masks frozen freeze requires_grad",
    "kept": "mask masks pruned prune",
    "sparsity": "target_sparsity final_sparsity amount ratio fraction",
    "initial": "initial_sparsity start",
    "final": "final_sparsity target_sparsity end",
    "nonzeros_per_block": "sparsity_m_by_n m_by_n n",
    "block_size": "m",
    "schedule": "pruning_schedule sparsity_schedule",
    "opt_state": "optimizer optimizer_state",
    "learning_rate": "lr optimizer",
    "optimizer": "learning_rate lr",
    "initial_step": "global_step start_step initial_epoch step",
    "probe": "probe_data validation_data batch inputs",
    "example": "example_inputs sample inputs batch",
    "tau": "momentum decay ema_momentum",
    "config": "hparams hyperparameters hyperparams args",
    "follows": "target targets ema teacher",
    "log": "log_fn logger wandb",
    "on_violation": "on_leak on_change raise_on_violation",
}
"""The names of others, by our name."""

_OPPOSITE = {
    **dict.fromkeys(("frozen", "freeze"), ", False for what is frozen"),
    **dict.fromkeys(("pruned", "prune"), ", 0 for what is pruned"),
}
"""Names that say the opposite, and what to write then."""

_TENSORBOARD = "keras.callbacks.TensorBoard takes it: use both callbacks."
_STOPPING = (
    "keras.callbacks.EarlyStopping takes it; on_violation='stop' ends a training whose frozen "
    "weights changed."
)
_HELD = "Set trainable = False of the layer, or hold single weights by pastnet.Masks(model)."
_ELSEWHERE = {
    "trainable": _HELD,
    "frozen": _HELD,
    "kept": "Prune by pastnet.Masks(model), and pass masks= where the model doesn't carry them.",
    "initial_step": "Leave it out: steps are counted here; in a graph call restart(step).",
    "optimizer": "Leave it out: the trainer has it.",
    "model": "Leave it out: the trainer has it.",
    "probe": "Leave it out: it evaluates Keras models on TensorFlow.",
    "graph": "Leave it out: variables= are of one graph.",
    "frequency": "Pass every= to PruningCallback.",
    "verbose": "Leave it out: verbose= of fit decides what is printed.",
    **dict.fromkeys(("patience", "monitor", "min_delta", "restore_best_weights"), _STOPPING),
    **dict.fromkeys(("write_graph", "write_images", "write_steps_per_second"), _TENSORBOARD),
    **dict.fromkeys(("profile_batch", "embeddings_freq", "embeddings_metadata"), _TENSORBOARD),
}
"""Arguments that we don't have, and where they are."""


def answered(called: C) -> C:
    """Decorates a function, or a class for its constructor: invalid calls raise our error.

    A valid call costs nothing more. Errors from inside are unchanged.
    """
    if isinstance(called, type):
        called.__init__ = _answering(called.__init__, called.__name__)  # type: ignore[misc]
        return called
    return _answering(called, called.__name__)  # type: ignore[return-value]


def check(shown: str, given: Iterable[str], names: Collection[str], rest: str = "") -> None:
    """Raises UnknownArgument for the first name that isn't among those of `shown`.

    What it takes any number of, by place, is called `rest`.
    """
    for name in given:
        if name not in names:
            expected, mend = _meant(name, names)
            if rest and not get_close_matches(name, names, 1):
                call = f"{shown}({', '.join([*names][:1])}, …)"
                expected, mend = f"{rest} by place", f"Write {call}."
            raise UnknownArgument(
                f"Could not call {shown}: expected {expected}, got {name}=. {mend}"
            )


def names_of(called: Callable[..., Any], without: Collection[str] = ()) -> list[str]:
    """The names of a function's arguments."""
    names = inspect.signature(called).parameters
    return [name for name in names if name not in ("self", *without)]


def _answering(function: Callable[..., Any], shown: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            explain(function, shown, args, kwargs, error)
            raise

    return call


def explain(
    function: Callable[..., Any], shown: str, args: Any, kwargs: Any, error: TypeError
) -> None:
    """Raises UnknownArgument if a function can't be called with these arguments."""
    parameters = inspect.signature(function).parameters.values()
    rest = [each.name for each in parameters if each.kind is each.VAR_POSITIONAL]
    if not any(each.kind is each.VAR_KEYWORD for each in parameters):
        check(shown, kwargs, names_of(function, rest), *rest)
    given = {each.name for each in list(parameters)[: len(args)]} | kwargs.keys()
    places = [each for each in parameters if each.kind is not each.KEYWORD_ONLY]
    if len(args) > len(places) and not rest:
        names = ", ".join(each.name for each in places if each.name != "self")
        raise UnknownArgument(
            f"Could not call {shown}: expected at most {len(places) - ('self' in given)} "
            f"arguments by place, got {len(args) - ('self' in given)}. Write {shown}({names})."
        ) from error
    missing = [
        each.name
        for each in parameters
        if each.default is each.empty
        and each.name not in given
        and each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    ]
    if missing:
        raise UnknownArgument(
            f"Could not call {shown}: expected {missing[0]}=, got none. Write "
            f"{shown}({', '.join(f'{name}=…' for name in missing)})."
        ) from error


def _meant(name: str, names: Collection[str]) -> tuple[str, str]:
    """The argument expected instead of a name, and how to fix the call."""
    typed = get_close_matches(name, names, 1, cutoff=0.9)
    ours = typed or [
        own for own, others in _OURS.items() if own in names and name in others.split()
    ]
    if not ours and name in _ELSEWHERE:
        return "an argument that it has", _ELSEWHERE[name]
    if near := ours or get_close_matches(name, names, 1):
        return f"{near[0]}=", f"Write {near[0]}={_OPPOSITE.get(name, '')}."
    return f"some of {', '.join(names)}", "Leave it out, or write one of them."

"""Takes snapshots of a training in torch, and goes back to one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch.optim import Optimizer

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.masks.mask_table import MaskTable
from tb_pastnet.record.masks.snapshots import (
    LEARNING_RATE,
    Rewound,
    Snapshot,
    check_snapshot,
    states_of,
)
from tb_pastnet.record.weight import Array
from tb_pastnet.torch.masks.held_places import HELD
from tb_pastnet.torch.module_tensors import is_spread
from tb_pastnet.torch.module_weights import values_in

_RATES = "lr", "initial_lr"


def take(state: MaskTable, optimizers: Sequence[Optimizer]) -> Snapshot:
    """Copies weights and optimizers to the host."""
    refuse_spread(state, "take a snapshot of")
    values = {name: np.array(weight.read()) for name, weight in state.weights.items()}
    packed = tuple((type(each).__name__, _pack(each)) for each in optimizers)
    return Snapshot(values, packed, _step(optimizers), state.origin)


def refuse_spread(state: MaskTable, doing: str) -> None:
    """Raises InvalidArgument if ranks share any of the weights."""
    state.look()
    for name, weight in state.weights.items():
        if is_spread(weight.entry.stored):
            raise InvalidArgument(
                f"Could not {doing} {name!r}: expected a tensor of one process, got one that is "
                f"spread over ranks. Record such a training, and save it by "
                f"torch.distributed.checkpoint."
            )


def rewind(
    state: MaskTable, optimizers: Sequence[Optimizer], snapshot: Snapshot, what: str
) -> Rewound:
    """Goes back to a snapshot, see `Masks.rewind`. Slots of pruned weights are up to the caller."""
    state.look()
    check_snapshot(state.weights, snapshot, what)
    start = _step(optimizers)
    states = states_of(optimizers, snapshot)
    pairs = [
        (each, _unpack(own[1]) if own[0] == type(each).__name__ else None)
        for each, own in zip(optimizers, states, strict=True)
    ]
    if what == LEARNING_RATE:
        for optimizer, saved in pairs:
            _rewind_clock(optimizer, saved)
        return Rewound(0, 0, 0, "kept", (start, _step(optimizers)))
    counts = [0, 0, 0]
    for name, weight in state.weights.items():
        kept, trainable = state.read(name)
        through = kept & trainable
        counts[0] += int(through.sum()) * (not weight.statistic)
        counts[1] += int((~through).sum())
        counts[2] += weight.statistic
        if not weight.computed:
            _write(weight.entry.stored, torch.from_numpy(through), snapshot.weights[name])
            place = state.storage_of(weight.variable)
            if place is not None and place.enforced:
                place.accept(place.tensor())
    fresh = [not _rewind_optimizer(*pair) for pair in pairs]
    slots = "kept" if not pairs else "initial" if any(fresh) else "snapshot"
    state.origin = snapshot.origin
    return Rewound(counts[0], counts[1], counts[2], slots, (start, _step(optimizers)))


@torch.no_grad()
def _write(tensor: torch.Tensor, through: torch.Tensor, values: Array) -> None:
    new = torch.from_numpy(np.array(values)).to(tensor.device, tensor.dtype)
    tensor.copy_(torch.where(through.to(tensor.device), new, tensor))


def _rewind_optimizer(optimizer: Optimizer, saved: Any) -> bool:
    """Whether an optimizer got its state; one that the snapshot doesn't have begins again."""
    sizes = [len(group["params"]) for group in optimizer.param_groups]
    if saved is not None and [len(group["params"]) for group in saved["param_groups"]] == sizes:
        optimizer.load_state_dict(saved)
        return True
    optimizer.state.clear()
    return False


def _rewind_clock(optimizer: Optimizer, saved: Any) -> None:
    """Sets back the steps and the learning rates."""
    groups = [] if saved is None else saved["param_groups"]
    for group, former in zip(optimizer.param_groups, groups, strict=False):
        group.update({key: former[key] for key in _RATES if key in former and key in group})
    slots = {} if saved is None else saved["state"]
    numbered = [each for group in optimizer.param_groups for each in group["params"]]
    for number, parameter in enumerate(numbered):
        state = optimizer.state.get(parameter, {})
        if "step" in state:
            step = slots.get(number, {}).get("step", 0)
            if isinstance(state["step"], torch.Tensor):
                state["step"].fill_(float(step))
            else:
                state["step"] = int(step)


def _step(optimizers: Iterable[Optimizer]) -> int:
    return max(map(steps_of, optimizers), default=0)


def steps_of(optimizer: Optimizer) -> int:
    """How many steps an optimizer has made, as far as it counts them or masks have seen them."""
    own = [state["step"] for state in optimizer.state.values() if "step" in state]
    return max([int(step) for step in own], default=HELD.steps.get(optimizer, 0))


def _pack(optimizer: Optimizer) -> tuple[Array, ...]:
    """The state of an optimizer as arrays; the first is JSON."""
    arrays: list[Array] = []

    def plain(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            # As bytes: NumPy doesn't have all dtypes.
            own = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
            arrays.append(np.array(values_in(own.clone())).astype(np.uint8))
            dtype = str(value.dtype).removeprefix("torch.")
            return {"tensor": len(arrays), "dtype": dtype, "shape": [*value.shape]}
        if isinstance(value, dict):
            return {"items": [[plain(key), plain(each)] for key, each in value.items()]}
        if isinstance(value, tuple | list):
            return {type(value).__name__: [plain(each) for each in value]}
        if value is None or isinstance(value, bool | int | float | str):
            return value
        raise InvalidArgument(
            f"Could not take a snapshot of {type(optimizer).__name__}: expected tensors, numbers "
            f"and texts in its state, got a {type(value).__name__}. Save it by torch.save."
        )

    head = json.dumps(plain(optimizer.state_dict()))
    return (np.frombuffer(head.encode(), np.uint8), *arrays)


def _unpack(arrays: Sequence[Array]) -> Any:
    def made(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if "tensor" in value:
            dtype = getattr(torch, value["dtype"])
            own = torch.from_numpy(np.array(arrays[value["tensor"]]))
            return own.view(dtype).reshape(value["shape"])
        if "items" in value:
            return {made(key): made(each) for key, each in value["items"]}
        ((kind, own),) = value.items()
        each = [made(item) for item in own]
        return tuple(each) if kind == "tuple" else each

    return made(json.loads(arrays[0].tobytes()))

"""Walks a module: its tensors in forward order, under names that no wrapper changes.

A wrapped and a plain network have the same names: the wrappers of DistributedDataParallel,
`torch.compile` and activation checkpoints are left out of paths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from torch import nn
from torch.nn.utils.parametrize import ParametrizationList

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.torch.module_tensor import ModuleTensor, is_mask

_WRAPPED = ("_orig_mod", "_checkpoint_wrapped_module")
_PARALLEL = (nn.DataParallel, nn.parallel.DistributedDataParallel)
_MADE = ("torch.nn.utils.parametrize", "torch.distributed")
"""Modules of torch that change a module's class to a derived one."""


def tensors_of(module: nn.Module) -> list[ModuleTensor]:
    """Lists the tensors of a module, each shared one once; raises if they can't be read."""
    reshard(module)
    unique: dict[tuple[int, str], ModuleTensor] = {}
    for entry in _walk(module, "", "", (), None):
        key = (id(entry.owner), entry.key) if entry.computed else (id(entry.stored), "")
        first = unique.setdefault(key, entry)
        if first is not entry:
            around, paths = (*first.around, *entry.around), (*first.paths, *entry.paths)
            unique[key] = replace(first, around=around, paths=paths)
    entries = list(unique.values())
    _refuse(module, entries)
    return entries


def reshard(module: nn.Module) -> None:
    """Turns parameters into shards again if FSDP2 has left them whole, as after an evaluation."""
    for each in module.modules():
        if any(kind.__name__ == "FSDPModule" for kind in type(each).__mro__):
            each.reshard()


def kinds_of(module: nn.Module | None) -> tuple[str, ...]:
    """Names of a module's class and its bases; torch's own classes without a module name."""
    kinds = () if module is None else type(module).__mro__
    return tuple(
        kind.__name__
        if kind.__module__.startswith("torch.")
        else f"{kind.__module__}.{kind.__qualname__}"
        for kind in kinds
        if not kind.__module__.startswith(_MADE)
    )


def _walk(
    module: nn.Module,
    path: str,
    full: str,
    around: tuple[nn.Module, ...],
    parent: nn.Module | None,
) -> Iterator[ModuleTensor]:
    around = (*around, module)
    for key, statistic, computed in _keys(module):
        paths = dict.fromkeys((_below(path, key), _below(full, key)))
        yield ModuleTensor(module, key, path, around, tuple(paths), parent, statistic, computed)
    for name, child in module._modules.items():
        if child is not None:
            wraps = name in _WRAPPED or (name == "module" and isinstance(module, _PARALLEL))
            inside = wraps or isinstance(child, ParametrizationList)
            below = path if wraps else _below(path, name)
            outer = parent if inside else module
            yield from _walk(child, below, _below(full, name), around, outer)


def _keys(module: nn.Module) -> Iterator[tuple[str, bool, bool]]:
    """For each tensor of a module its name, whether it is a buffer, and whether it is computed."""
    for key in module._modules.get("parametrizations") or ():
        yield key, False, True
    masks = set()
    for key, parameter in module._parameters.items():
        own = key.removesuffix("_orig")
        if own != key and f"{own}_mask" in module._buffers:
            masks.add(f"{own}_mask")
            yield own, False, False
        elif parameter is not None:
            yield key, False, False
    for key, buffer in module._buffers.items():
        leaves = key in module._non_persistent_buffers_set or key in masks or is_mask(module)
        if buffer is not None and buffer.is_floating_point() and not leaves:
            yield key, True, False


def _below(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _refuse(module: nn.Module, entries: Sequence[ModuleTensor]) -> None:
    """Raises InvalidArgument if the values of a module can't be read."""
    for entry in entries:
        tensor = entry.stored
        failed = f"Could not record {entry.name!r} of a {type(module).__name__}"
        if isinstance(tensor, nn.parameter.UninitializedTensorMixin):
            raise InvalidArgument(
                f"{failed}: expected values, got a lazy parameter without a shape. Call the module "
                f"on one batch first."
            )
        if tensor.is_meta:
            raise InvalidArgument(
                f"{failed}: expected values, got a tensor on the device 'meta'. Load the weights, "
                f"or call to_empty() and initialise them, first."
            )
        if hasattr(tensor, "ds_id"):
            raise InvalidArgument(
                f"{failed}: expected whole values, got a parameter that DeepSpeed's ZeRO-3 has "
                f"spread over workers. Train with ZeRO stage 1 or 2 to record."
            )
        if "_fsdp_wrapped_module" in entry.name or entry.key == "_flat_param":
            raise InvalidArgument(
                f"{failed}: expected whole rows, got a part of a flat parameter: the older FSDP "
                f"cuts anywhere. Shard with torch.distributed.fsdp.fully_shard to record."
            )

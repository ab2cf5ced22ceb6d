"""The tensors of a module, in forward order, under names that no wrapper changes.

A wrapped and a plain network have the same names: the wrappers of DistributedDataParallel,
`torch.compile`, activation checkpoints and PEFT are left out of paths.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.nn.utils.parametrize import ParametrizationList

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.device_array import has_memory

_WRAPPED = ("_orig_mod", "_checkpoint_wrapped_module")
PLAIN = (nn.Parameter, torch.Tensor)
"""Classes of tensors that are what they seem."""
_OF_MODULES = frozenset(vars(nn.Module()))
_OF_PEFT = ("base_model", "model", "base_layer")
"""What PEFT's classes call the network, or the layer, that they wrap."""
_SAVED = "modules_to_save"
_PARALLEL = (nn.DataParallel, nn.parallel.DistributedDataParallel)
_MADE = ("torch.nn.utils.parametrize", "torch.distributed")
"""Modules of torch that change a module's class to a derived one."""


@dataclass(frozen=True)
class ModuleTensor:
    """A parameter or buffer by its place: the tensor there may be replaced during training.

    Attributes:
        owner: the module that has it.
        key: its name there; for a pruned weight, or one with a parametrization, the name that the
            module computes with.
        layer: the path of `owner` without wrappers; "" is the root.
        around: the modules that it is in, the outermost first; if it is shared, those of each
            place.
        paths: its names in torch, "." written as "/", first the one without wrappers.
        parent: the module around `owner`; for a ParametrizationList, its module.
        statistic: it is a buffer.
        computed: a parametrization computes it from others, which are listed, too.
        adapts: the path of the layer that PEFT adapts with it; None if it is no part of an adapter.
        also: if it is shared, its paths in other places, without wrappers.
    """

    owner: nn.Module
    key: str
    layer: str
    around: tuple[nn.Module, ...]
    paths: tuple[str, ...]
    parent: nn.Module | None = None
    statistic: bool = False
    computed: bool = False
    adapts: str | None = None
    also: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its path in the log."""
        return self.paths[0]

    @property
    def handles(self) -> tuple[object, ...]:
        """The objects that a user may name it by."""
        return (*self.around, self.stored)

    @property
    def part_of(self) -> tuple[nn.Module, str]:
        """The module that computes with it, and the name of the weight that it is for."""
        if isinstance(self.owner, ParametrizationList) and self.parent is not None:
            return self.parent, self.layer.rpartition("/")[2]
        return self.owner, self.key

    @property
    def made_of(self) -> Any:
        """The ParametrizationList that computes it, None without one."""
        # Read at each step: `is_parametrized` is slow.
        own = self.owner._modules.get("parametrizations")
        return own[self.key] if own is not None and self.key in own else None

    @property
    def mask(self) -> Any:
        """The mask that prunes it, a tensor of 0 and 1; None if it isn't pruned."""
        if f"{self.key}_orig" in self.owner._parameters:
            return self.owner._buffers.get(f"{self.key}_mask")
        return next((each.mask for each in self.made_of or () if is_mask(each)), None)

    @property
    def stored(self) -> Any:
        """The trained tensor; for a computed weight the first that it is computed from."""
        parameter = self.owner._parameters.get(self.key)
        if parameter is not None:
            return parameter
        made_of = self.made_of
        if made_of is not None:
            return getattr(made_of, "original" if made_of.is_tensor else "original0")
        stored = self.owner._parameters.get(f"{self.key}_orig")
        stored = self.owner._buffers.get(self.key) if stored is None else stored
        if stored is None:
            raise self.changed("a tensor", "None")
        return stored

    def value(self) -> Any:
        """The values that the module computes with now, not those of its last call."""
        parameter = self.owner._parameters.get(self.key)
        if parameter is not None:  # of most weights, at each record
            return parameter
        made_of, mask = self.made_of, self.mask
        if made_of is None and mask is None:
            return self.stored
        with torch.no_grad():
            if made_of is None:
                return self.present(self.stored) * self.present(mask)
            for each in (*made_of.parameters(), *made_of.buffers()):
                self.present(each)
            with torch.random.fork_rng(_gpus_of(made_of)):
                return _twin(made_of)()

    def present(self, tensor: Any) -> Any:
        """The tensor; raises InvalidArgument if its memory was freed."""
        if has_memory(local_of(tensor)):
            return tensor
        raise self.freed()

    def freed(self) -> InvalidArgument:
        """The error if its memory was freed: reading it would end the process."""
        return InvalidArgument(
            f"Could not read {self.name!r}: expected its values, got a storage without them, as "
            f"offloading leaves. Restore them before a record is due."
        )

    def changed(self, expected: str, got: str) -> InvalidArgument:
        """The error if the network isn't as it was when the Recorder was made."""
        return InvalidArgument(
            f"Could not read {self.name!r}: expected {expected}, got {got}. Make a new Recorder if "
            f"the network changes."
        )

    def trained(self) -> bool:
        """Whether it, or a tensor that it is computed from, gets a gradient."""
        parameter = self.owner._parameters.get(self.key)
        if parameter is not None:  # of most weights, at each step
            return bool(parameter.requires_grad)
        made_of = self.made_of
        if made_of is None:
            return bool(self.stored.requires_grad)
        return any(parameter.requires_grad for parameter in made_of.parameters())


def tensors_of(module: nn.Module) -> list[ModuleTensor]:
    """Lists the tensors of a module, each shared one once; raises if they can't be read."""
    reshard(module)
    unique: dict[tuple[int, str], ModuleTensor] = {}
    for entry in _walk(module, "", "", (), None):
        key = (id(entry.owner), entry.key) if entry.computed else (id(entry.stored), "")
        first = unique.setdefault(key, entry)
        if first is not entry:
            around, paths = (*first.around, *entry.around), (*first.paths, *entry.paths)
            also = tuple(dict.fromkeys((*first.also, entry.name)))
            unique[key] = replace(first, around=around, paths=paths, also=also)
    entries = list(unique.values())
    _refuse(module, entries)
    # Without wrappers two may have one path: these keep theirs.
    times = Counter(entry.name for entry in entries)
    return [
        replace(entry, paths=entry.paths[::-1]) if times[entry.name] > 1 else entry
        for entry in entries
    ]


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
    adapts: str | None = None,
) -> Iterator[ModuleTensor]:
    around = (*around, module)
    for key, statistic, computed in _keys(module):
        paths = tuple(dict.fromkeys((_below(path, key), _below(full, key))))
        own = path, around, paths, parent, statistic, computed, adapts
        yield ModuleTensor(module, key, *own)
    for name, child in _children(module):
        if child is not None:
            wraps = _wraps(module, name)
            inside = wraps or isinstance(child, ParametrizationList)
            below = path if wraps else _below(path, name)
            outer = parent if inside else module
            adapted = path if adapts is None and _is_adapter(module) and not wraps else adapts
            yield from _walk(child, below, _below(full, name), around, outer, adapted)


def _wraps(module: nn.Module, name: str) -> bool:
    """Whether a module only wraps its child of some name."""
    if name in _WRAPPED or (name == "module" and isinstance(module, _PARALLEL)):
        return True
    return _is_peft(module) and (name in _OF_PEFT or name.startswith(_SAVED))


def _children(module: nn.Module) -> Iterator[tuple[str, nn.Module | None]]:
    """The modules in one, by name; the copy that PEFT trains of a module is that one's only."""
    for name, child in module._modules.items():
        if name == _SAVED and _is_peft(module) and child is not None and len(child._modules) == 1:
            ((adapter, copied),) = child._modules.items()
            yield f"{name}/{adapter}", copied
        else:
            yield name, child


def _is_peft(module: nn.Module) -> bool:
    return type(module).__module__.startswith("peft.")


def _is_adapter(module: nn.Module) -> bool:
    """Whether it is a layer of PEFT around one of the network."""
    return any(kind.__name__ == "BaseTunerLayer" for kind in type(module).__mro__)


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
        if tensor.is_meta and not is_offloaded(entry):
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


def is_offloaded(entry: ModuleTensor) -> bool:
    """Whether accelerate brings its values for each forward pass, as `device_map` does."""
    return bool(entry.stored.is_meta) and hasattr(entry.owner, "_hf_hook")


def local_of(tensor: Any) -> Any:
    """The part of a tensor that is on this rank; all of it if it isn't spread over ranks."""
    return tensor.to_local() if is_spread(tensor) else tensor


def is_spread(tensor: Any) -> bool:
    """Whether it is a DTensor: FSDP2 and tensor parallelism spread parameters as such."""
    return type(tensor) not in PLAIN and hasattr(tensor, "to_local")


def is_mask(parametrization: nn.Module) -> bool:
    """Whether a parametrization only prunes, by its class name in torch.ao and torchao."""
    return type(parametrization).__name__ == "FakeSparsity"


def _gpus_of(module: nn.Module) -> list[int]:
    """The GPUs that a parametrization may draw random numbers on."""
    return list({tensor.get_device() for tensor in module.parameters() if tensor.is_cuda})


def _twin(module: nn.Module) -> nn.Module:
    """A parametrization like this one, which can be called without a trace on this one.

    It isn't in training, and has its own buffers and counters: spectral_norm makes an iteration at
    each call, and observers of quantization look at each value. Parameters are shared.
    """
    if isinstance(module, torch.jit.ScriptModule):
        return module
    twin: nn.Module = object.__new__(type(module))
    own = {
        name: value if name in _OF_MODULES else _apart(value)
        for name, value in vars(module).items()
    }
    children = module._modules.items()
    own["_parameters"] = dict(module._parameters)
    own["_modules"] = {name: child and _twin(child) for name, child in children}
    own["_buffers"] = {name: _apart(value) for name, value in module._buffers.items()}
    vars(twin).update(own, training=False)
    return twin


def _apart(value: Any) -> Any:
    """A copy of what a module may write to; anything else as it is."""
    if isinstance(value, torch.Tensor) and not isinstance(value, nn.Parameter):
        return value.clone()
    return copy(value) if type(value) in (list, dict, set, deque, OrderedDict) else value

"""The recorded tensors of a module: their names, channels, and how they are read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, KeysView, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from tb_pastnet.core.axes import ChannelAxis, channel_axis, experts_axis, explicit_axis
from tb_pastnet.core.float_words import WORDS, values_of
from tb_pastnet.core.follow_pairs import Follows, follow_pairs
from tb_pastnet.core.memory_layout import statistics_of
from tb_pastnet.core.names import Called, Names
from tb_pastnet.core.statistics import OF_PAST
from tb_pastnet.core.subject import TORCH, check_subject
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.device_array import (
    bits_of,
    check_memory,
    has_memory,
    memory_of,
    tensor_values,
)
from tb_pastnet.record.weight import Array, Network, Weight
from tb_pastnet.torch.fingerprint import fingerprints
from tb_pastnet.torch.lora import Added, LoraTensor, with_effective
from tb_pastnet.torch.module_tensors import (
    ModuleTensor,
    is_offloaded,
    is_spread,
    kinds_of,
    local_of,
    tensors_of,
)

Axis = int | tuple[int, ...]
AxisOverrides = Mapping[Any, Axis]

_EXACT = (torch.float32, torch.float64)

_OF_LAYER = re.compile(r"_l\d+(_reverse)?$")
"""The suffixes of weight names for each layer and direction of an RNN."""


class TorchWeight(Weight):
    """A parameter or a buffer of a module."""

    def __init__(self, entry: ModuleTensor, axis: Axis | None, *, follows: bool) -> None:
        owner, key = entry.part_of
        layer = entry.layer.removesuffix(f"parametrizations/{key}").rstrip("/")
        layer = layer if entry.adapts is None else entry.adapts
        # A parametrization may return another shape than the stored one.
        value = entry.value()
        shape = tuple(value.shape)
        super().__init__(
            entry.name,
            shape,
            str(value.dtype).removeprefix("torch."),
            _axis(entry, shape) if axis is None else explicit_axis(axis, shape, entry.name),
            layer=layer,
            own_name=entry.name.removeprefix(f"{layer}/"),
            kind=next(iter(kinds_of(owner)), "").rpartition(".")[2],
            statistic=entry.statistic,
            follows=follows,
            aliases=entry.paths,
            handles=entry.handles,
            also=entry.also,
        )
        self.entry = self.variable = entry
        self.stand_in: torch.Tensor | None = None

    @property
    def computed(self) -> bool:
        """See `Weight`: by a parametrization."""
        return self.entry.computed

    def shares_memory(self, other: Weight) -> bool:
        """See `Weight`: parameters of one storage do, too."""
        own = [getattr(each.variable, "stored", None) for each in (self, other)]
        places = {local_of(each).data_ptr() for each in own if isinstance(each, torch.Tensor)}
        return super().shares_memory(other) or (len(places) == 1 and places != {0})

    def read(self) -> Array:
        """See `Weight`: the stored values."""
        return values_in(self._checked(self.entry.stored))

    def effective(self) -> Array:
        """See `Weight`: with masks and parametrizations."""
        return values_in(self.value())

    def value(self) -> torch.Tensor:
        """The effective values where they are; raises InvalidArgument if their shape is another.

        If it has a `stand_in`, values that were kept of an earlier moment, it is that.
        """
        kept = self.stand_in
        return self._checked(self.entry.value() if kept is None else kept)

    def _checked(self, tensor: torch.Tensor) -> torch.Tensor:
        # Not `self.shape`, which may be that of a rank's part.
        if tensor.shape != self.text.shape:
            raise self.entry.changed(f"shape {self.text.shape}", f"{tuple(tensor.shape)}")
        if not has_memory(local_of(tensor)):
            raise self.entry.freed()
        return tensor

    def fingerprints(self, *, fast: bool = True) -> Any:
        """See `Weight`: of a tensor's own bits, where its memory is."""
        own = local_of(self.value().detach())
        return fingerprints(own, self.axis_of(own.shape), fast=fast).cpu().numpy()

    def current_dtype(self) -> str:
        """See `Weight`."""
        return str(self.value().dtype)

    def rows(self, channels: npt.NDArray[np.intp]) -> Array:
        """See `Weight`: only they leave an accelerator."""
        value, axis = self.value().detach(), self.axis
        places, form = axis.places(channels), (len(channels), axis.elements)
        words = _words_in(value)
        if words is not None:
            return values_of(words.reshape(axis.view).transpose(axis.order)[places].reshape(form))
        chosen = tuple(torch.from_numpy(each).to(value.device) for each in places)
        turned = value.reshape(axis.view).permute(axis.order)
        return values_in(turned[chosen].reshape(form))

    def at(self, positions: npt.NDArray[np.intp]) -> Array:
        """See `Weight`: only they leave an accelerator."""
        value = self.value().detach()
        words = _words_in(value)
        if words is not None:
            return values_of(words.reshape(-1)[positions])
        return values_in(value.reshape(-1)[torch.from_numpy(positions).to(value.device)])

    @property
    def plain(self) -> bool:
        """See `Weight`."""
        return super().plain and self.entry.mask is None

    def trainable(self) -> bool:
        """See `Weight`. Statistics are written by their layer."""
        return self.statistic or self.entry.trained()


class AdaptedWeight(TorchWeight):
    """The weight that a LoRA layer computes with: past copies of its base would be as large."""

    factored = True
    entry: LoraTensor

    def snapshot(self) -> _AdaptedPast:
        """See `Weight`: of the base its fingerprints, or a copy if it trains."""
        base, added = self.entry.base.value().detach(), self.entry.added()
        kept = base.clone() if self.entry.base.trained() else None
        return _AdaptedPast([each.kept() for each in added], kept, self._prints(base))

    def past_value(self, past: _AdaptedPast) -> Array:
        """See `Weight`."""
        base = self.entry.base.value() if past.base is None else past.base
        return values_in(self.entry.sum_of(base, past.added))

    def measure(self, past: _AdaptedPast) -> tuple[Any, Any]:
        """See `Weight`. Channels whose base has moved meanwhile have no past."""
        now = self.value()
        rows = statistics_of(values_in(now), self.past_value(past), self.axis)
        if past.base is None:
            moved = self._prints(self.entry.base.value()) != past.prints
            rows[np.ix_(OF_PAST, moved)] = np.nan
        return rows, self._prints(now)

    def _prints(self, tensor: torch.Tensor) -> Any:
        return fingerprints(tensor.detach(), self.axis).cpu().numpy()


class _AdaptedPast(NamedTuple):
    """What the weight of a LoRA layer was computed from."""

    added: list[Added]
    base: torch.Tensor | None  # None: the base of now, as long as its fingerprints are these
    prints: Any

    @property
    def nbytes(self) -> int:
        """Bytes of these values."""
        parts = [part for each in self.added for part in (each.a, each.b, each.magnitude)]
        own = [part.nbytes for part in (*parts, self.base) if part is not None]
        return int(sum(own) + self.prints.nbytes)


class Homes:
    """The places of some weights' tensors in torch: quick to look up, at each record or step."""

    def __init__(self, weights: Iterable[Any]) -> None:
        self.weights: list[TorchWeight] = list(weights)
        owners = [weight.entry.owner for weight in self.weights]
        self._tensors: list[dict[str, Any]] = [
            owner._buffers if weight.statistic else owner._parameters
            for weight, owner in zip(self.weights, owners, strict=True)
        ]
        self._keys = [weight.entry.key for weight in self.weights]
        self._always = [weight.text.follows or weight.statistic for weight in self.weights]

    def now(self) -> list[Any]:
        """Of each what a dictionary of torch has: None if torch computes the weight."""
        return list(map(dict.get, self._tensors, self._keys))

    def stored(self) -> list[torch.Tensor]:
        """Of each weight the stored tensor: see `ModuleTensor`."""
        return [
            weight.entry.stored if tensor is None else tensor
            for weight, tensor in zip(self.weights, self.now(), strict=True)
        ]

    def trainable(self) -> list[bool]:
        """Of each weight whether the framework's flags let it change, or it follows."""
        return [
            always or (weight.trainable() if tensor is None else tensor.requires_grad)
            for always, weight, tensor in zip(self._always, self.weights, self.now(), strict=True)
        ]


def weights_of(module: nn.Module) -> list[TorchWeight]:
    """All parameters and floating buffers of a module, including those that can't be recorded."""
    return [_weight(entry, None, follows=False) for entry in with_effective(tensors_of(module))]


def _weight(entry: ModuleTensor, axis: Axis | None, *, follows: bool) -> TorchWeight:
    kind = AdaptedWeight if isinstance(entry, LoraTensor) else TorchWeight
    return kind(entry, axis, follows=follows)


def array_of(tensor: torch.Tensor) -> Array:
    """See `values_in`; raises InvalidArgument if the memory of the tensor was freed."""
    check_memory(local_of(tensor))
    return values_in(tensor)


def values_in(tensor: torch.Tensor) -> Array:
    """The values of a tensor in this machine's memory: a view if possible, to be released at once.

    For a tensor spread over ranks it is this rank's part. Dtypes other than float32 and float64
    become float32, exactly.
    """
    if is_spread(tensor):
        tensor = local_of(tensor.detach())
    return memory_of(tensor if tensor.dtype in _EXACT else tensor.detach().float())


def _words_in(tensor: torch.Tensor) -> Array | None:
    """The words of `core.float_words` where they are: torch starts threads to convert a few."""
    name = str(tensor.dtype).removeprefix("torch.")
    known = name in WORDS and tensor.is_contiguous()
    bits = bits_of(local_of(tensor)) if known else None
    return None if bits is None else bits.view(WORDS[name])


def checked(tensor: Any, name: str, argument: str) -> torch.Tensor:
    """A user's tensor; raises InvalidArgument if it is something else, or sparse."""
    got = type(tensor).__name__
    if isinstance(tensor, torch.Tensor):
        if tensor.layout is torch.strided:
            return tensor
        got = str(tensor.layout)
    raise InvalidArgument(
        f"Could not use {argument}= of {name!r}: expected a dense torch.Tensor, got {got}. Convert "
        f"it first, by torch.as_tensor() or to_dense()."
    )


def mask_values(mask: Any, name: str, argument: str) -> Array:
    """The values of a user's mask, whose dtype may be one that NumPy doesn't have."""
    return tensor_values(checked(mask, name, argument))


def network_of(
    module: nn.Module,
    variables: Iterable[Any] | None = None,
    channel_axes: AxisOverrides | None = None,
    follows: Follows = None,
) -> Network[TorchWeight]:
    """Lists what is recorded of a module."""
    if not isinstance(module, nn.Module):
        check_subject(module, TORCH, "record")
        raise InvalidArgument(
            f"Could not record {module!r:.40}: expected model= a torch.nn.Module, got "
            f"{type(module).__name__}. Pass the module itself."
        )
    shown = f"a {type(module).__name__}"
    usable: dict[str, ModuleTensor] = {}
    skipped = []
    for entry in with_effective(tensors_of(module)):
        reason = _unusable(entry)
        if reason is not None:
            skipped.append((entry.name, reason))
        elif usable.setdefault(entry.name, entry) is not entry:
            raise InvalidArgument(
                f"Could not record {shown}: expected a different name for each tensor, got two of "
                f"the name {entry.name!r}. Rename the module that has '/' in its name."
            )
    names = Names(
        {
            name: Called(tuple(entry.stored.shape), entry.paths, entry.handles)
            for name, entry in usable.items()
        }
    )
    if isinstance(follows, Mapping):
        follows = {spelled(target): spelled(source) for target, source in follows.items()}
    moved = follow_pairs(names, spelled(follows), names.following)
    axes = names.keyed(spelled(channel_axes), "channel_axis")
    weights = [
        _weight(entry, axes.get(name), follows=name in moved) for name, entry in usable.items()
    ]
    wanted = None if variables is None else spelled(variables)
    return Network.of(weights, wanted, skipped=skipped, shown=shown, follows=moved)


def _axis(entry: ModuleTensor, shape: tuple[int, ...]) -> ChannelAxis:
    owner, key = entry.part_of
    if kinds_of(owner)[0].endswith("Experts"):
        transposed, count = getattr(owner, "is_transposed", None), getattr(owner, "num_experts", 0)
        fused = experts_axis(
            shape, count, transposed=bool(transposed), verified=transposed is not None
        )
        if fused is not None:
            return fused
    heads = getattr(entry.parent, "num_heads", 1)
    return channel_axis(
        kinds_of(owner),
        _OF_LAYER.sub("", key),
        shape,
        parent_types=kinds_of(entry.parent),
        layer_name=entry.layer.rpartition("/")[2],
        parts=getattr(owner, "groups", getattr(owner, "num_heads", heads)),
        outputs_first=True,
    )


def _unusable(entry: ModuleTensor) -> str | None:
    tensor = entry.stored
    if is_spread(tensor) and (entry.computed or entry.mask is not None):
        return "it is computed from weights that are spread over ranks"
    if is_offloaded(entry):
        return "it is offloaded: its values are here only in a forward pass"
    local = local_of(tensor)
    if not tensor.dtype.is_floating_point:
        return f"its dtype {str(tensor.dtype).removeprefix('torch.')} isn't a floating one"
    if tensor.layout is not torch.strided:
        return f"its layout is {str(tensor.layout).removeprefix('torch.')}"
    if hasattr(local, "__tensor_flatten__"):
        return f"it is a {type(local).__name__}, whose values are in other tensors"
    return None if tensor.numel() else "it has no elements"


def spelled(wanted: Any) -> Any:
    """A user's names of weights, with "/" for the "." of a key of `state_dict`."""
    if isinstance(wanted, str):
        return wanted.replace(".", "/") if "." in wanted else wanted
    if isinstance(wanted, list | tuple | set | frozenset | KeysView | Iterator):
        return tuple(spelled(each) for each in wanted)
    if isinstance(wanted, Mapping):
        return {spelled(key): value for key, value in wanted.items()}
    return wanted

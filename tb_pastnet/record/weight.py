"""One array of a network, and the network, for `core` and `record`: in any framework."""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.axes import (
    MOST_DIMENSIONS,
    ChannelAxis,
    explicit_axis,
    main_variable,
    variable_role,
)
from tb_pastnet.core.fingerprint import fingerprints
from tb_pastnet.core.names import Called, Names
from tb_pastnet.core.sketch import FEWEST
from tb_pastnet.core.statistics import VALUE_ROWS, channel_statistics
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format import description
from tb_pastnet.format.fitting import Room
from tb_pastnet.format.together import Together, put_together

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

_WORTH_COMPILING = 1 << 28
"""Elements of a network from which on compiled fingerprints are worth the time to compile them."""

ORIGIN = "fingerprints:"
"""How the name of an origin begins; former ones have no such beginning."""


_BITS = re.compile(r"\d+")


class Look(NamedTuple):
    """The bits of a weight at a moment: the dtype of its values, and a fingerprint a channel."""

    dtype: str
    prints: npt.NDArray[np.uint64]


class OwnMasks(Protocol):
    """The masks of a weight whose layer owns them."""

    @property
    def version(self) -> int:
        """Different after each change."""

    @property
    def kept(self) -> Mask:
        """False is pruned."""

    @property
    def trainable(self) -> Mask:
        """False is frozen."""


class Weight(ABC):
    """An array that training changes: subclass it once for a framework.

    Args:
        name: its identity in the network, a path such as "block/conv1/kernel".
        shape: of the array.
        dtype: its name, such as "float32".
        axis: how it splits into channels.
        layer: the path of its layer; "": all of `name` but its last part.
        own_name: its name in that layer; "": the rest of `name`.
        kind: the class of its layer.
        statistic: it isn't trained by gradients.
        follows: anything but an optimizer moves it on purpose, like a target network: it isn't
            trainable, but not held either.
        aliases: its paths in the framework, first the one below the root.
        handles: the framework's objects that identify it: its variable, and layers that it belongs
            to.
        also: its names in other places, if it is shared.

    Attributes:
        text: its description in the log.
        called: its names and handles for the user.
        factored: its past copies are what it is computed from, which is smaller.
        variable: the framework's own; two weights with the same one are the same.
    """

    factored = False

    def __init__(
        self,
        name: str,
        shape: Sequence[int],
        dtype: str,
        axis: ChannelAxis,
        *,
        layer: str = "",
        own_name: str = "",
        kind: str = "",
        statistic: bool = False,
        follows: bool = False,
        aliases: Sequence[str] = (),
        handles: Sequence[object] = (),
        also: Sequence[str] = (),
    ) -> None:
        path, _, last = name.rpartition("/")
        own_name = own_name or last
        self.name = name
        self.variable: Any = self
        self.layer = layer or path or last
        self.shape = tuple(shape)
        self.dtype = dtype
        self.axis = axis
        self.kind = kind
        self.statistic = statistic
        self.called = Called(self.shape, tuple(aliases), tuple(handles))
        self.role = variable_role(own_name, self.shape, statistic=statistic)
        self.text = description.VariableEntry(
            id=name,
            layer=self.layer,
            name=own_name,
            role=self.role,
            shape=self.shape,
            dtype=dtype,
            axis=axis.text,
            verified=axis.verified,
            channels=axis.channels,
            elements=axis.elements,
            follows=follows,
            also=tuple(also),
        )

    def fetch(self) -> None:  # noqa: B027
        """Called for all weights before they are read: may start copies from an accelerator."""

    @abstractmethod
    def read(self) -> Array:
        """The current values. They may be a view of the framework's memory: copy to keep them."""

    def effective(self) -> Array:
        """The values that the network computes with, if these aren't the stored ones."""
        return self.read()

    def fingerprints(self, *, fast: bool = True) -> npt.NDArray[np.uint64]:
        """The fingerprint of each channel of what `effective` returns, see `core.fingerprint`."""
        values = np.asarray(self.effective())
        return fingerprints(values, self.axis_of(values.shape), fast=fast)

    def look(self) -> Look:
        """Its bits now."""
        return Look(self.current_dtype(), self.fingerprints())

    def current_dtype(self) -> str:
        """The dtype of its values now: a module may get another one."""
        return str(np.asarray(self.effective()).dtype)

    def rows(self, channels: npt.NDArray[np.intp]) -> Array:
        """The values of some channels, (channels, elements): those of others aren't copied."""
        values, axis = np.asarray(self.effective()), self.axis
        turned = values.reshape(axis.view).transpose(axis.order)
        return turned[axis.places(channels)].reshape(len(channels), axis.elements)

    def at(self, positions: npt.NDArray[np.intp]) -> Array:
        """The values at some positions of the flattened weight: no others are copied."""
        return np.asarray(self.effective()).reshape(-1)[positions]

    @property
    def plain(self) -> bool:
        """Whether one look at the stored values is enough, and NumPy can choose among them."""
        return not self.computed and len(self.axis.view) <= MOST_DIMENSIONS

    @property
    def nbytes(self) -> int:
        """The bytes of its values, by its dtype."""
        bits = _BITS.search(self.dtype)
        return self.axis.channels * self.axis.elements * (int(bits[0]) if bits else 64) // 8

    def axis_of(self, shape: Sequence[int]) -> ChannelAxis:
        """The channels of values of a shape: of a rank's own rows, which may have another one."""
        whole = tuple(shape) == self.text.shape
        return self.axis if whole else explicit_axis(0, tuple(shape), self.name)

    def snapshot(self) -> Any:
        """A past copy for `measure`, where weights are measured one by one."""
        return np.array(self.effective())

    def past_value(self, past: Any) -> Array:
        """The values of a snapshot."""
        value: Array = past
        return value

    def measure(self, past: Any) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.uint64]]:
        """Compares the values with a snapshot.

        Returns:
            The rows of `core.statistics.STATISTICS` that depend only on values, and fingerprints.
        """
        value = self.effective()
        rows = channel_statistics(value, past, self.axis)[:VALUE_ROWS]
        return rows, fingerprints(np.asarray(value), self.axis, fast=False)

    @property
    def computed(self) -> bool:
        """Whether it is computed from other weights: then it is never held, but these may be."""
        return False

    def trainable(self) -> bool:
        """Whether updates may change it, by the framework's own flags."""
        return True

    def masks(self) -> OwnMasks | None:
        """Its masks, if its layer owns them."""
        return None

    def shares_memory(self, other: Weight) -> bool:
        """Whether another weight of the network changes with it."""
        return self.variable is other.variable


def names_of(weights: Iterable[Weight]) -> Names:
    """Looks up these weights by a user's names."""
    return Names({weight.name: weight.called for weight in weights})


W_co = TypeVar("W_co", bound=Weight, covariant=True)


@dataclass(frozen=True)
class Network(Generic[W_co]):
    """What is recorded of a model.

    Attributes:
        weights: those that are recorded, in forward order.
        layers: the layers that have any of them.
        skipped: name and reason of each variable that can't be recorded.
        everything: all weights that could be recorded, including those that weren't chosen.
        follows: by names of weights that follow others, the names of these.
    """

    weights: tuple[W_co, ...]
    layers: tuple[description.LayerEntry, ...]
    skipped: tuple[tuple[str, str], ...]
    everything: tuple[W_co, ...]
    follows: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        everything: Sequence[W_co],
        wanted: Iterable[object] | None = None,
        *,
        skipped: Sequence[tuple[str, str]] = (),
        shown: str = "a network",
        follows: Mapping[str, str | None] | None = None,
    ) -> Network[W_co]:
        """Chooses what is recorded, in forward order; raises InvalidArgument if nothing is.

        `wanted` may be names, ends of names, patterns such as `"*/kernel"`, variables, or layers;
        None: all. `shown` names the model in errors. What doesn't fit into a log is skipped, too.
        `follows` is what `follow_pairs` returns.
        """
        chosen = everything
        if wanted is not None:
            names = {*names_of(everything).all(wanted)}
            chosen = [weight for weight in everything if weight.name in names]
        room = Room()
        reasons = [room.refusal(weight.text, weight.kind) for weight in chosen]
        fitting = [weight for weight, no in zip(chosen, reasons, strict=True) if no is None]
        refused = [(w.name, no) for w, no in zip(chosen, reasons, strict=True) if no is not None]
        left_out = room.listed([*skipped, *refused])
        if not fitting:
            why = " ({!r}: {})".format(*left_out[0]) if left_out else ""
            raise InvalidArgument(
                f"Could not record {shown}: expected at least one variable of floating dtype, "
                f"got none of {len(everything) + len(skipped)}{why:.400}. Build the model, or "
                f"choose others with variables=."
            )
        recorded = {weight.name for weight in fitting}
        pairs = {
            name: source
            for name, source in (follows or {}).items()
            if source is not None and name in recorded
        }
        _check_apart(pairs, everything)
        return cls(tuple(fitting), _layers(fitting), left_out, tuple(everything), pairs)

    @cached_property
    def sketched(self) -> tuple[W_co, ...]:
        """The main weights of layers, if they are large enough for a sketch."""
        sizes = ((weight, weight.axis.channels * weight.axis.elements) for weight in self.weights)
        main = self._main
        return tuple(weight for weight, size in sizes if weight.name in main and size >= FEWEST)

    @cached_property
    def together(self) -> Together:
        """The numbers of weights whose records share a series."""
        channels = [weight.axis.channels for weight in self.weights]
        return put_together(channels, [weight.name in self._main for weight in self.weights])

    @cached_property
    def _main(self) -> frozenset[str]:
        return frozenset(layer.main for layer in self.layers)

    def origin(self, looks: Mapping[str, Look] | None = None) -> str:
        """A name for all values: runs that start from the same ones share it.

        `looks` may have the fingerprints of some weights, by name.
        """
        digest = hashlib.blake2b(digest_size=16)
        own = [weight for weight in self.everything if not weight.factored]  # their values follow
        sizes = [weight.axis.channels * weight.axis.elements for weight in own]
        fast = sum(sizes) > _WORTH_COMPILING
        for weight in own:
            digest.update(repr((weight.name, weight.dtype, weight.shape)).encode())
            known = (looks or {}).get(weight.name)
            prints = weight.fingerprints(fast=fast) if known is None else known.prints
            digest.update(prints.tobytes())
        return ORIGIN + digest.hexdigest()

    def former_origin(self) -> str:
        """Its name in logs without `ORIGIN` before that; it takes much longer to find."""
        digest = hashlib.blake2b(digest_size=16)
        for weight in self.everything:
            digest.update(repr((weight.name, weight.dtype, weight.shape)).encode())
            digest.update(np.ascontiguousarray(weight.effective()).tobytes())
        return digest.hexdigest()


def _check_apart(pairs: Mapping[str, str], weights: Sequence[Weight]) -> None:
    """Raises InvalidArgument if a weight and the one that it follows are one."""
    by_name = {weight.name: weight for weight in weights}
    for target, source in pairs.items():
        if by_name[target].shares_memory(by_name[source]):
            raise InvalidArgument(
                f"Could not follow {target!r}: expected follows= with a target that has its own "
                f"values, got one that shares those of {source!r}. Copy them once, as by "
                f"copy.deepcopy."
            )


def _layers(weights: Sequence[Weight]) -> tuple[description.LayerEntry, ...]:
    members: dict[str, list[Weight]] = {}
    for weight in weights:
        members.setdefault(weight.layer, []).append(weight)
    layers = []
    for path, own in members.items():
        group, _, name = path.rpartition("/")
        main = own[main_variable([(weight.text.name, weight.shape) for weight in own])]
        layers.append(
            description.LayerEntry(
                id=path,
                group=group,
                name=name,
                type=own[0].kind,
                variables=tuple(weight.name for weight in own),
                main=main.name,
            )
        )
    return tuple(layers)

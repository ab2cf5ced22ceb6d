"""The interface of the recording loop to a framework: subclass `Source` and `Weight` for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from types import ModuleType
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.fingerprint import Prints
from tb_pastnet.core.float_words import WORDS, address_of, words_of
from tb_pastnet.core.memory_layout import layout_of
from tb_pastnet.core.numba_switch import numba_kernels
from tb_pastnet.core.sketch import BUCKETS, sketch
from tb_pastnet.core.standing import UNKNOWN
from tb_pastnet.core.statistics import (
    MOVED,
    STATISTICS,
    VALUE_ROWS,
)
from tb_pastnet.format.function_change import Input, Place
from tb_pastnet.record.array_copies import ArrayCopies, NetworkCopies
from tb_pastnet.record.resting import Resting, RestingCopies
from tb_pastnet.record.weight import Array, Look, Network, Weight

STACK_ELEMENTS = 1 << 16
"""Weights up to this size are measured with others of their shape: a call costs more than they."""

HELD = "held"
"""The answer of `why_still` for a weight that no update is meant to change: it is frozen."""

Floats = npt.NDArray[np.floating]
Ints = npt.NDArray[np.intp]
Sketches = npt.NDArray[np.float64]


class Probing(Protocol):
    """Compares the outputs of a network with its outputs at past values."""

    inputs: tuple[Input, ...]
    places: tuple[Place, ...]

    def values(self, past: Sequence[Any]) -> npt.NDArray[np.float32]:
        """float32 (4, places), rows as in `function_change.MEASURES`."""


class Source(ABC):
    """A network in training: its weights, their past copies, and the rest that a record needs.

    Copy 0 holds the values of the weights when the source is made.
    """

    packages: Sequence[str] = ()
    """The framework's distributions: a log stores their versions."""

    def __init__(self, network: Network[Weight], process: int = 0, processes: int = 1) -> None:
        self.network = network
        self._process, self._processes = process, processes

    @property
    def writes(self) -> bool:
        """Whether this process writes the log: the first of those that train the same network."""
        return self._process == 0

    @property
    def workers(self) -> int:
        """How many processes train the same network."""
        return self._processes

    def trainable(self) -> Sequence[bool]:
        """For each weight, whether the framework's own flags let it change, or it follows."""
        return [weight.text.follows or weight.trainable() for weight in self.network.weights]

    def updates(self) -> int | None:
        """How many updates the framework has made; None if it doesn't count them."""
        return None

    def learning_rate(self, step: int) -> float:
        """The learning rate of a step; NaN if unknown."""
        return float("nan")

    def rate_groups(self) -> Mapping[str, Collection[str]]:
        """Names of the weights of each group with its own learning rate; {}: none.

        Read when a lineage begins: until the next one, `group_rates` are of these groups.
        """
        return {}

    def group_rates(self) -> Sequence[float]:
        """The learning rates of the groups, in their order."""
        return ()

    def why_still(
        self, still: Sequence[int], slow: Sequence[int], skip: int = 0
    ) -> Mapping[int, str]:
        """Why weights are idle, by number: a key of `core.standing.CAUSES`, or `HELD`.

        Called after records, until there are none; not for statistics, nor what follows.

        Args:
            still: weights that haven't changed since the record before.
            slow: weights that may move only by weight decay, or in a few elements of 16 bits. They
                are left out of the answer if it isn't so.
            skip: records after this one without a call, unless other weights are idle there.
        """
        return dict.fromkeys(still, UNKNOWN)

    def decay(self, number: int) -> tuple[float, float] | None:
        """The least and the most share of a weight that decay takes in a step; None if unknown."""
        return None

    def release(self) -> None:  # noqa: B027
        """Releases values that were read for a record: training continues."""

    @abstractmethod
    def copy(self, number: int) -> None:
        """Takes the current values as a past copy, of as many as the schedule holds."""

    @abstractmethod
    def past(self, number: int) -> Sequence[Any]:
        """The values of a past copy, as the framework's probe takes them."""

    @abstractmethod
    def compare(self, number: int, *, replace: bool = False) -> Floats:
        """Compares the current values with a past copy, which they may replace.

        Returns:
            Floats (statistics, channels of all weights), rows as in `core.statistics.STATISTICS`;
            kept and trainable are 1, because masks are handled elsewhere. A channel has moved if
            its bits aren't those of the last comparison since `forget`.
        """

    @property
    def nbytes(self) -> int:
        """Bytes of the past copies."""
        return 0

    def sketches(self) -> Sketches | None:
        """The sketches of `Network.sketched` as they are now, (weights, 64); None if unknown."""
        weights = self.network.sketched
        return np.stack([sketch(weight.effective()) for weight in weights]) if weights else None

    def forget(self) -> None:  # noqa: B027
        """Whether weights have moved is unknown at the next comparison: training goes back."""

    def has_changed(self, number: int) -> bool:
        """Whether any weight has other bits than at the last record; `number` is of a past copy."""
        return bool((self.compare(number)[MOVED] == 1).any())


class PartedSource(Source):
    """Past copies in parts, by number: `members` are the weights of the parts, one after another.

    A part has `take`, `compare`, `prints` and `past`, as `ArrayCopies` has.
    """

    _copies: dict[int, list[Any]]
    _prints: Prints | None = None
    _resting: Resting | None = None

    @cached_property
    def looks(self) -> dict[str, Look]:
        """By name the bits of weights that were just looked at, until `release`."""
        return {} if self._resting is None else self._resting.looks

    def _arrange(self, members: Sequence[int]) -> None:
        channels = [self.network.weights[member].axis.channels for member in members]
        spans = np.split(np.arange(sum(channels)), np.cumsum(channels)[:-1])
        # The place of each weight among those of the parts, and of each of its channels.
        self._places = np.argsort(members)
        self._order = np.concatenate([spans[place] for place in self._places])
        self._in_order = bool((np.diff(self._order) == 1).all())

    def past(self, number: int) -> Sequence[Any]:
        """See `Source`. Later copies leave them as they are."""
        values = [value for part in self._copies[number] for value in part.past()]
        return [values[place] for place in self._places]

    def compare(self, number: int, *, replace: bool = False) -> Floats:
        """See `Source`."""
        copies = self._copies[number]
        stacked = copies[0].compare(replace=replace)
        prints = copies[0].prints
        for part in copies[1:]:
            stacked = np.concatenate([stacked, part.compare(replace=replace)], axis=1)
            prints = np.concatenate([prints, part.prints])
        result = np.empty((len(STATISTICS), len(self._order)), stacked.dtype)
        result[:VALUE_ROWS] = stacked if self._in_order else stacked[:, self._order]
        result[VALUE_ROWS:] = 1  # masks are handled elsewhere
        result[MOVED] = self._moved(prints)
        return result

    @property
    def nbytes(self) -> int:
        """See `Source`."""
        shared = 0 if self._resting is None else self._resting.nbytes
        parts = [part for own in self._copies.values() for part in own]
        return shared + sum(int(part.nbytes) for part in parts)

    def has_changed(self, number: int) -> bool:
        """See `Source`."""
        at_record = self._prints
        try:
            return super().has_changed(number)
        finally:
            self._prints = at_record

    def forget(self) -> None:
        """See `Source`."""
        self._prints = None

    def release(self) -> None:
        """See `Source`."""
        self.looks.clear()

    def sketches(self) -> Sketches | None:
        """See `Source`."""
        weights = self.network.sketched
        if not weights:
            return None
        rows, begin = np.empty((len(weights), BUCKETS)), 0
        first: list[Any] = next(iter(self._copies.values()))
        # These parts come first.
        for part in first:
            if isinstance(part, NetworkCopies | RestingCopies):
                some = (self._sketched >= begin) & (self._sketched < begin + part.weights)
                if some.any():
                    rows[some] = part.sketches((self._sketched[some] - begin).tolist())
                begin += part.weights
        for row in np.flatnonzero(self._sketched >= begin).tolist():
            rows[row] = sketch(weights[row].effective())
        return rows

    @cached_property
    def _sketched(self) -> npt.NDArray[np.intp]:
        """The places of sketched weights among those of the parts."""
        names = {weight.name for weight in self.network.sketched}
        own = [weight.name in names for weight in self.network.weights]
        return np.asarray(self._places)[own]

    def _moved(self, prints: Prints) -> npt.NDArray[Any] | float:
        """Whether each channel has other bits than at the last comparison."""
        before, self._prints = self._prints, prints
        if before is None:
            return np.nan
        moved: npt.NDArray[Any] = before != prints
        return moved if self._in_order or moved.all() else moved[self._order]


class ArraySource(PartedSource):
    """Past copies and statistics of weights in this machine's memory.

    With numba, weights of float32 or less are measured in one call, and past copies take as much
    memory as they do. Without it, small ones of one shape are stacked. Others are measured one by
    one. Views of them are released at once.
    """

    def __init__(
        self,
        network: Network[Weight],
        process: int = 0,
        processes: int = 1,
        resting: Resting | None = None,
    ) -> None:
        super().__init__(network, process, processes)
        self._resting = resting
        at_rest: Sequence[int] = () if resting is None else resting.numbers
        self._kernel = numba_kernels("NumPy", "network_kernel")
        stacks: dict[Any, list[int]] = {}
        resting_numbers = frozenset(at_rest)
        together: dict[str, list[int]] = {}
        rest: list[int] = []
        for number, weight in enumerate(network.weights):
            if number in resting_numbers:
                continue
            axis, words = weight.axis, _words_of(weight)
            if weight.factored or layout_of(axis, 1) is None or words is None:
                rest.append(number)
            elif self._kernel is not None:
                together.setdefault(words, []).append(number)
            else:
                small = axis.channels * axis.elements <= STACK_ELEMENTS
                key = axis.view, axis.axes, None if small else number
                stacks.setdefault(key, []).append(number)
        weights = network.weights
        # By the dtype of their words.
        self._together: dict[str, list[Any]] = {
            words: [weights[number] for number in members] for words, members in together.items()
        }
        self._stacks: list[list[Any]] = [
            [weights[number] for number in stack] for stack in stacks.values()
        ]
        self._rest = [weights[number] for number in rest]
        measured = *together.values(), at_rest, *stacks.values(), rest
        self._arrange(list(chain.from_iterable(measured)))
        self._copies: dict[int, list[Any]] = {}
        self.copy(0)

    def copy(self, number: int) -> None:
        """See `Source`. If another process writes, nothing is kept."""
        if not self.writes:
            return
        self.release()
        if number not in self._copies:
            self._copies[number] = self._new_copies()
            return
        for part in self._copies[number]:
            part.take()
        self.release()

    def _new_copies(self) -> list[Any]:
        parts: list[Any] = []
        for words, members in self._together.items():
            axes = [weight.axis for weight in members]
            locate = partial(self._locate, words)
            parts.append(NetworkCopies(axes, locate, cast(ModuleType, self._kernel), words))
        if self._resting is not None:
            parts.append(RestingCopies(self._resting))
        if self._stacks:
            sizes = [(stack[0].axis, len(stack)) for stack in self._stacks]
            parts.append(ArrayCopies(sizes, self._read))
        if self._rest:
            parts.append(PlainCopies(self._rest))
        return parts

    def _locate(self, members: str, dtype: str) -> tuple[list[int], object]:
        """The addresses of weights measured together, and what keeps their values in memory.

        Args:
            members: the key of these weights in `_together`.
            dtype: of the words that are wanted; raises OtherValues if a value isn't one of these.
        """
        for weight in self._together[members]:
            weight.fetch()
        held = [words_of(weight.effective(), dtype) for weight in self._together[members]]
        return list(map(address_of, held)), held

    def _read(self) -> list[Array]:
        for weight in chain.from_iterable(self._stacks):
            weight.fetch()
        # For a single weight a view, if the framework's memory is C-contiguous and on this machine.
        return [
            np.ascontiguousarray(stack[0].effective(), np.float32)
            if len(stack) == 1
            else np.stack([weight.effective().reshape(-1) for weight in stack], dtype=np.float32)
            for stack in self._stacks
        ]


def _words_of(weight: Weight) -> str | None:
    """The dtype of the words that hold a weight's values exactly; None if none does."""
    if weight.dtype in WORDS:
        return weight.dtype
    return "float32" if np.can_cast(weight.effective().dtype, np.float32) else None


class PlainCopies:
    """Past copies as arrays, compared by the definition: of weights that no kernel can measure."""

    prints: Prints

    def __init__(self, weights: Sequence[Weight]) -> None:
        self._weights = weights
        self._past: list[Any] = []
        self.take()

    def take(self) -> None:
        """Makes the current values the past ones."""
        self._past = [weight.snapshot() for weight in self._weights]

    def compare(self, *, replace: bool) -> Floats:
        """See `ArrayCopies`."""
        parts, prints = [], []
        # Weight by weight: each read may copy from an accelerator.
        for number, weight in enumerate(self._weights):
            rows, own = weight.measure(self._past[number])
            parts.append(rows)
            prints.append(own)
            if replace:
                self._past[number] = weight.snapshot()
        self.prints = np.concatenate(prints)
        return np.concatenate(parts, axis=1)

    @property
    def nbytes(self) -> int:
        """Bytes of the past values."""
        return sum(value.nbytes for value in self._past)

    def past(self) -> list[Array]:
        """The past values. Later copies leave them as they are."""
        pairs = zip(self._weights, self._past, strict=True)
        return [weight.past_value(past) for weight, past in pairs]

"""Compares held weights with the values at which they were held."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.core.compared import BY_VALUE
from tb_pastnet.core.violation import Violation
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format.limits import MAX_VIOLATIONS
from tb_pastnet.record.audit.causes import Array, Facts, cause_of
from tb_pastnet.record.audit.compared_account import ComparedAccount
from tb_pastnet.record.audit.comparison import UNKNOWN, Channels, Comparison, Ints, sampled
from tb_pastnet.record.masks.mask_table import MaskTable, version_of


@dataclass
class _Open:
    """Fingerprints and violation of each channel of a variable."""

    fingerprint: Ints
    expected: Ints
    violations: dict[int, Violation]


class OpenViolations:
    """Open and past violations of all variables."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}
        self._past: deque[Violation] = deque(maxlen=MAX_VIOLATIONS)

    def all(self) -> list[Violation]:
        """Past and open ones, by their first step."""
        going_on = [each for name in self._open.values() for each in name.violations.values()]
        return sorted([*self._past, *going_on], key=lambda violation: violation.first_step)

    def enter(
        self, name: str, compared: Channels, step: int, find_cause: Callable[[Ints], str]
    ) -> list[Violation]:
        """Enters a check: returns violations that are new, or moved since the last.

        A violation of weights that have been held again since is new; `find_cause` gets the
        channels with a new one.
        """
        first = _Open(compared.fingerprint, compared.expected, {})
        variable = self._open.setdefault(name, first)
        anew = variable.expected != compared.expected
        for channel in [*variable.violations]:
            if anew[channel] or not compared.differ[channel]:
                self._past.append(variable.violations.pop(channel))
        differ = np.flatnonzero(compared.differ)
        new = differ[[channel not in variable.violations for channel in differ.tolist()]]
        cause = find_cause(new) if new.size else ""
        moved = variable.fingerprint != compared.fingerprint
        entered = []
        for channel in differ.tolist():
            old = variable.violations.get(channel)
            if old is not None and not moved[channel]:
                continue
            variable.violations[channel] = Violation(
                variable=name,
                channel=channel,
                first_step=step if old is None else old.first_step,
                last_step=step,
                elements=_count_of(int(compared.differ[channel])),
                held=int(compared.held[channel]),
                largest=float(compared.largest[channel]),
                cause=cause if old is None else old.cause,
            )
            entered.append(variable.violations[channel])
        variable.fingerprint, variable.expected = compared.fingerprint, compared.expected
        return entered

    def close(self, name: str) -> None:
        """Ends those of a variable: its values are right again, or it isn't held any more."""
        variable = self._open.pop(name, None)
        if variable is not None:
            self._past.extend(variable.violations.values())

    def close_all(self) -> None:
        """Ends all."""
        for name in list(self._open):
            self.close(name)


def _count_of(elements: int) -> int | None:
    return None if elements == UNKNOWN else elements


class Held(Protocol):
    """A weight with held elements, compared on its device, with defaults to derive from.

    Its `masks` may be None; `by` is one of `core.compared.WAYS`.
    """

    name: str
    axis: ChannelAxis
    masks: Any
    by: str = BY_VALUE

    @property
    def flagged(self) -> bool:
        """Whether all of it is held, by the framework's trainable flag."""

    def follow(self, masks: Any, *, flagged: bool) -> bool:
        """Updates which elements are held; returns whether these have changed."""

    def flags(self) -> npt.NDArray[np.bool_]:
        """Which elements are held."""

    def count(self) -> int:
        """How many elements are held."""
        return self.axis.channels * self.axis.elements if self.flagged else int(self.flags().sum())

    @property
    def nbytes(self) -> int:
        """Bytes of the values that are kept for it."""
        return 0

    def compared(self) -> Comparison:
        """Value, expected value and held elements, as arrays."""

    def moved(self) -> bool:
        """Whether any held element moved."""
        return bool(self.compared().differ().any())

    def renewed(self) -> bool:
        """Whether it couldn't be compared, and so is held at its current values from now on."""
        return False

    def channels(self) -> Channels:
        """Compares it channel by channel."""
        return self.compared().channels(self.axis)

    def worst(self, channels: Ints, count: int) -> Ints:
        """Positions of elements that moved farthest, a share of each channel, at most `count`."""
        return self.compared().worst(self.axis, channels, count)

    def sample(self) -> Ints:
        """Positions of some held elements, from all over the weight."""
        return sampled(self.flags())

    def values_at(self, positions: Ints) -> tuple[Array, Array]:
        """Expected and current values of some of its elements."""


def moved_of(held: Sequence[Held]) -> list[bool]:
    """Which of some weights have a held element that moved, one by one.

    Raises InvalidArgument if something couldn't be compared.
    """
    renewed = [each.name for each in held if each.renewed()]
    if renewed:
        raise InvalidArgument(
            f"Could not compare {', '.join(map(repr, renewed[:3]))} with fingerprints: expected "
            f"the dtype of when it was held, got another. It is compared with its current values "
            f"from now on: audit='values' compares across dtypes."
        )
    return [each.moved() for each in held]


class CauseFinder(ABC):
    """Names the likely causes of violations, from facts of a framework's room."""

    def begin(self, held: Sequence[Any]) -> None:  # noqa: B027
        """Called when more of some weights is held from now on."""

    def remember(self, held: Iterable[Any]) -> None:  # noqa: B027
        """Called after a check, with the weights that it looked at."""

    def newly_bypassed(self, held: Iterable[Any]) -> set[str]:
        """Names of weights that were updated without their masks, if that is new."""
        return set()

    @abstractmethod
    def facts(self, held: Any, channels: Ints) -> Facts:
        """Facts about a weight that moved in some channels."""

    def cause(self, held: Any, channels: Ints) -> str:
        """A key of `core.violation.CAUSES`; "unknown" if something can't be read."""
        try:
            return cause_of(self.facts(held, channels))
        except Exception:
            return "unknown"


class AuditSource(ABC):
    """What an audit needs from a framework's room: `weights` that may be held, and causes."""

    weights: Sequence[Any]
    causes: CauseFinder

    def expect(self, weights: Sequence[Any]) -> None:  # noqa: B027
        """Called before `held` with all weights that are held from now on."""

    @abstractmethod
    def held(self, weight: Any) -> Held:
        """Starts comparing a weight."""

    @abstractmethod
    def moved(self, held: Sequence[Any]) -> Sequence[bool]:
        """Which of some weights have a held element that moved."""

    def quick_key(self) -> Hashable:
        """Changes when `trainable` of a layer has changed; read at each step."""
        return ()

    def follow_statistics(self, held: Mapping[str, Held]) -> None:  # noqa: B027
        """Called when the held weights, by name, or the flags have changed."""

    def notes(self) -> Sequence[str]:
        """Observations at a check besides violations."""
        return ()

    def trainable(self) -> Sequence[bool]:
        """For each weight, whether the framework's own flags let updates change it."""
        return [True] * len(self.weights)

    def close(self) -> None:  # noqa: B027
        """Removes what was set on the framework's objects."""


class Audit:
    """Compares held weights bitwise with the values at which they were held.

    Elements are held if enforced or declared masks don't let them through: at zero if pruned, at
    their reference if frozen. Whole weights are held if the framework's flag says that they aren't
    trainable, at the value from when that was first seen. Statistics, such as those of
    BatchNormalization, are never held. Layers that own their masks hold weights by the way they
    compute; here they are only checked for `trainable=False`.

    Other bits are other values: −0 isn't 0, except in pruned arrays; a NaN that stays hasn't moved.
    """

    def __init__(self, source: AuditSource, masks: Callable[[], MaskTable | None]) -> None:
        self._source = source
        self._masks = masks
        own = (weight.masks() for weight in source.weights)
        self._own_masks = [masks for masks in own if masks is not None]
        self._seen: Hashable = None
        self._trainable: Sequence[bool] = ()
        self._observed: MaskTable | None = None
        self._held: dict[str, Held] = {}
        self._violations = OpenViolations()
        self._notes: dict[str, None] = {}
        self._account: ComparedAccount | None = None
        self.observe()

    @property
    def violations(self) -> list[Violation]:
        """All so far by their first step, as of their last movement; at most 65,536 ended ones."""
        return self._violations.all()

    @property
    def notes(self) -> list[str]:
        """Other observations about the training, each once."""
        return list(self._notes)

    def report_to(self, account: ComparedAccount) -> None:
        """Reports frozen and pruned values to an account, from now on."""
        self._account = account
        for weight in self._held.values():
            account.hold(weight.name, weight.count(), weight.by)

    def observe(self, *, quick: bool = False) -> None:
        """Looks at which elements are held, and takes current values as references.

        `quick` reads `trainable` only if that of a layer, or a mask, has changed.
        """
        masks = self._masks()
        seen = self._source.quick_key(), version_of(masks, self._own_masks)
        if quick and seen == self._seen:
            return
        trainable = self._source.trainable()
        if seen != self._seen or trainable != self._trainable:
            self._follow(masks, trainable)
            self._seen, self._trainable = seen, trainable

    @property
    def nbytes(self) -> int:
        """Bytes of what held weights are compared with."""
        return sum(each.nbytes for each in self._held.values())

    @property
    def changed(self) -> bool:
        """Whether `observe(quick=True)` has something to do."""
        return self._seen != (self._source.quick_key(), version_of(self._masks(), self._own_masks))

    def check(self, step: int) -> list[Violation]:
        """Compares after an update: violations that are new, or moved since the last check."""
        self.observe()
        self._notes |= dict.fromkeys(self._source.notes())
        if not self._held:
            return []
        violations = []
        held = list(self._held.values())
        for weight, moved in zip(held, self._source.moved(held), strict=True):
            if moved:
                find_cause = partial(self._source.causes.cause, weight)
                compared = weight.channels()
                violations += self._violations.enter(weight.name, compared, step, find_cause)
                if self._account is not None:
                    # One at least in each channel of which no more is known.
                    changed = int(np.abs(compared.differ).sum())
                    self._account.change(weight.name, changed, step)
            else:
                self._violations.close(weight.name)
        self._note_bypass(held)
        self._source.causes.remember(held)
        return violations

    def close(self) -> None:
        """Removes what was set on the framework's objects."""
        self._source.close()

    def restart(self) -> None:
        """Forgets current violations, so a new lineage reports them again."""
        self._violations.close_all()

    def _masks_changed(self) -> None:
        """Looks at changed masks before the next step. A failure here isn't the command's."""
        with suppress(Exception):
            self.observe()

    def _follow(self, masks: MaskTable | None, trainable: Sequence[bool]) -> None:
        if masks is not None:
            masks.registry.settle()
            if self._observed is not masks:
                masks.registry.observed_by(self._masks_changed)
                self._observed = masks
        first, begun = not self._held, []
        storages = [
            None if masks is None else masks.storage_of(weight.variable)
            for weight in self._source.weights
        ]
        each = list(zip(self._source.weights, storages, trainable, strict=True))
        self._source.expect([weight for weight, own, free in each if own is not None or not free])
        for weight, own, free in each:
            if own is None and free:
                if self._held.pop(weight.name, None) is not None:
                    self._report(weight.name, None)
                self._violations.close(weight.name)
                continue
            if weight.name not in self._held:
                self._held[weight.name] = self._source.held(weight)
            held = self._held[weight.name]
            if held.follow(own, flagged=not free):
                begun.append(held)
                self._report(weight.name, held)
        self._source.follow_statistics(self._held)
        if begun:
            self._source.causes.begin(begun)
        if first:
            # As of now: while nothing was held, no check has looked.
            self._source.causes.remember(self._held.values())

    def _report(self, name: str, held: Held | None) -> None:
        if self._account is not None:
            self._account.hold(name, *((0,) if held is None else (held.count(), held.by)))

    def _note_bypass(self, held: Sequence[Held]) -> None:
        for name in self._source.causes.newly_bypassed(held):
            self._notes.setdefault(
                f"Could not hold {name!r} in a training step: expected a step traced after its "
                "first mask, got one traced before, which bypasses it. Create the tf.function of "
                "the step again."
            )

"""The freeze audit: does what should stand still stand still?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from tb_pastnet.core.violation import Violation
from tb_pastnet.keras.audit.book import Book
from tb_pastnet.keras.audit.compiled import Compiled
from tb_pastnet.keras.audit.evidence import Witness
from tb_pastnet.keras.audit.watch import Ints, Watch
from tb_pastnet.keras.layers.weight import MaskedWeight
from tb_pastnet.keras.masks.keeper import attached
from tb_pastnet.keras.masks.table import MaskTable
from tb_pastnet.keras.model.trainable_flags import Flags, TrainableFlags
from tb_pastnet.keras.model.weights import TFWeight
from tb_pastnet.record.mask_tracker import version_of


class Testimony(Protocol):
    """Knows of a training what tells why held weights moved: see `evidence.Witness`."""

    def begin(self, watch: Watch, state: MaskTable | None) -> None:
        """Where more of a variable is held from now on."""

    def tick(self, watches: Iterable[Watch], state: MaskTable | None) -> None:
        """After a check."""

    def bypassed(self, state: MaskTable | None) -> set[str]:
        """Ids of variables that updates were made of without their masks."""

    def cause(self, watch: Watch, channels: Ints, state: MaskTable | None) -> str:
        """A key of `core.violation.CAUSES`."""


class Comparing(Protocol):
    """Compares variables where they lie: see `compiled.Compiled`."""

    def watch(self, record: TFWeight) -> Watch:
        """Watches a variable from now on."""

    def moved(self, watches: Sequence[Watch]) -> Sequence[bool]:
        """Which of them have a held element that moved."""


class Audit:
    """Compares held weights bitwise with what they were when they were held.

    Held are the elements that masks don't let through, enforcing or only declared, at zero where
    they are pruned and at their reference where frozen; and whole variables of which Keras says
    `trainable=False`, at the value that they had when that was first seen. Statistics, such as
    those of BatchNormalization, are never held. Layers that own their masks hold by the way they
    compute; here they are watched for `trainable=False` alone.

    Other bits are other values: −0 isn't 0, while a NaN that stays the same hasn't moved. Under a
    distribution strategy the first replica is read.

    A variable that isn't trainable costs one copy of it while that lasts.

    Args:
        records: the variables.
        masks: gives the masks of now, None where there are none.
        witness: names causes.
        comparing: watches variables.

    Example:
        >>> import keras, numpy as np
        >>> from tb_pastnet.keras.model.weights import network
        >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
        >>> model.trainable = False
        >>> audit = Audit.of(model, network(model).weights)
        >>> audit.check(1)
        []
        >>> model.set_weights([model.get_weights()[0], np.array([0, 0.5])])
        >>> [violation] = audit.check(2)
        >>> violation.variable, violation.channel, violation.largest, violation.cause
        ('dense/bias', 1, 0.5, 'loaded')
    """

    def __init__(
        self,
        records: Sequence[TFWeight],
        masks: Callable[[], MaskTable | None],
        witness: Testimony,
        comparing: Comparing,
    ) -> None:
        self._masks = masks
        self._records = [record for record in records if not record.found.statistic]
        self._switches = TrainableFlags(self._records)
        variables = (record.found.variable for record in self._records)
        self._owned = [one for one in variables if isinstance(one, MaskedWeight)]
        self._witness = witness
        self._comparing = comparing
        self._seen: Any = None
        self._flags: Flags | None = None
        self._heard: MaskTable | None = None
        self._watches: dict[str, Watch] = {}
        self._book = Book()
        self._notes: dict[str, None] = {}
        self.observe()

    @classmethod
    def of(
        cls,
        model: Any,
        records: Sequence[TFWeight],
        state: MaskTable | None = None,
        optimizer: Any = None,
    ) -> Audit:
        """That of a model which runs eagerly, or in compiled steps.

        One compiled function compares all variables; it is compiled again when others are held. To
        count how often they are set by hand, `assign` of watched variables is wrapped.

        Args:
            model: a keras.Model or layer, a tf.Module, or a mapping of names to variables; the
                masks that it carries, or gets, are found.
            records: its variables.
            state: masks of a model that can't carry them.
            optimizer: the one that trains, where the model isn't compiled with it.
        """
        witness = Witness(model, optimizer)
        return cls(records, lambda: state or attached(model), witness, Compiled())

    @property
    def violations(self) -> list[Violation]:
        """All that were found so far by their first step, each as of its last movement.

        Of those that have ended the newest 65,536 are remembered.
        """
        return self._book.all()

    @property
    def notes(self) -> list[str]:
        """What was found out about the training besides violations, each once."""
        return list(self._notes)

    def observe(self, *, quick: bool = False) -> None:
        """Sees what is held and what not, so that references are those of now.

        Args:
            quick: `trainable` of a variable itself isn't asked, where that of no layer has changed
                and no mask. Quick enough for each step.
        """
        state = self._masks()
        seen = self._switches.quick_key(), version_of(state, self._owned)
        if quick and seen == self._seen:
            return
        flags = self._switches.read()
        if seen != self._seen or flags != self._flags:
            self._follow(state, self._switches.of(flags))
            self._seen, self._flags = seen, flags

    def check(self, step: int) -> list[Violation]:
        """Compares.

        Args:
            step: the number of the last update.

        Returns:
            Violations that are new, or that moved again since the last check. Those of one channel
            with one `first_step` are the same one.
        """
        self.observe()
        if not self._watches:
            return []
        told = []
        watches = list(self._watches.values())
        for watch, moved in zip(watches, self._comparing.moved(watches), strict=True):
            if moved:
                told += self._judge(watch, step)
            else:
                self._book.close(watch.record.text.id)
        self._note_bypass()
        self._witness.tick(watches, self._masks())
        return told

    def restart(self) -> None:
        """Forgets what is violated now, so that it is found anew: for a new lineage."""
        self._book.close_all()

    def _hear(self) -> None:
        """Sees a change of masks before the next step. It isn't the command that may fail here."""
        with suppress(Exception):
            self.observe()

    def _follow(self, state: MaskTable | None, trainable: Sequence[bool]) -> None:
        if state is not None:
            state.settle()
            if self._heard is not state:
                state.tell(self._hear)
                self._heard = state
        unwatched = not self._watches
        for record, free in zip(self._records, trainable, strict=True):
            name, variable = record.text.id, record.found.variable
            hold = None if state is None else state.hold_of(variable)
            if hold is None and free:
                self._watches.pop(name, None)
                self._book.close(name)
                continue
            if name not in self._watches:
                self._watches[name] = self._comparing.watch(record)
            if self._watches[name].follow(hold, flagged=not free):
                self._witness.begin(self._watches[name], state)
        if unwatched:
            # As of now: where nothing was held, no check has looked.
            self._witness.tick(self._watches.values(), state)

    def _judge(self, watch: Watch, step: int) -> list[Violation]:
        found = watch.channels()
        new = self._book.new(watch.record.text.id, found)
        cause = self._witness.cause(watch, new, self._masks()) if new.size else ""
        return self._book.enter(watch.record.text.id, found, step, cause)

    def _note_bypass(self) -> None:
        for name in self._witness.bypassed(self._masks()):
            self._notes.setdefault(
                f"Could not hold {name!r} in a training step: expected one that was traced after "
                f"its first mask, got one traced before, which goes around it. Make the "
                f"tf.function of the step anew."
            )

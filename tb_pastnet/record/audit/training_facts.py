"""What a framework's room reads of a training and its optimizer, so that causes can be found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from tb_pastnet.record.audit.causes import Array
from tb_pastnet.record.audit.freeze_audit import Held
from tb_pastnet.record.audit.open_violations import Ints
from tb_pastnet.record.masks.mask_table import MaskTable


class Applied(NamedTuple):
    """Updates that an optimizer has made, and those that went through its hook.

    Attributes:
        updates: all of them.
        loaded: how often that count was set by hand.
        hooked: updates through the hook.
        generation: of the masks, that the last of them knew.
    """

    updates: int = 0
    loaded: int = 0
    hooked: int = 0
    generation: int = 0


class Average(NamedTuple):
    """An optimizer's moving average of a variable.

    Attributes:
        values_at: gives some of its elements.
        overwrites_every: updates from one overwriting of the weights to the next; None: only when
            training ends.
        momentum: of the average.
    """

    values_at: Callable[[Ints], Array]
    overwrites_every: int | None
    momentum: float


H_contra = TypeVar("H_contra", bound=Held, contravariant=True)


class OptimizerFacts(Protocol[H_contra]):
    """What can be read of an optimizer now."""

    optimizer: Any

    @property
    def updates(self) -> int:
        """How many it has made."""

    @property
    def rate(self) -> float:
        """The learning rate, NaN where it follows a schedule or isn't known."""

    @property
    def schedule(self) -> Callable[[int], float] | None:
        """Gives the learning rate of an update; None where it follows none."""

    @property
    def applied(self) -> Applied | None:
        """Its updates; None where it has no hook."""

    @property
    def betas(self) -> Sequence[float]:
        """The factors by which slots decay."""

    def decay(self, held: H_contra) -> float:
        """The weight decay of a variable."""

    def trains(self, held: H_contra) -> bool:
        """Whether the variable is among those that the optimizer was built for."""

    def average(self, held: H_contra) -> Average | None:
        """Its moving average of a variable."""

    def slots(self, held: H_contra, positions: Ints) -> dict[str, Array]:
        """Some elements of all its slots of a variable."""


class TrainingFacts(Protocol[H_contra]):
    """What is read of a training besides its optimizer."""

    def optimizer(self, masks: MaskTable | None) -> OptimizerFacts[H_contra] | None:
        """The one that trains, None where none is known."""

    def step(self) -> Any:
        """The compiled step; another object once it is compiled anew."""

    def assigned(self, held: H_contra) -> int:
        """How often the variable was set by hand since this was asked first."""

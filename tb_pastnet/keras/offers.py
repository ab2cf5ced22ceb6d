"""Makes the records: all that is measured at one step."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.statistics import KEPT, TRAINABLE
from tb_pastnet.keras.cost.meter import COPIES, PROBE, RECORDS, Meter
from tb_pastnet.keras.feed import Feed
from tb_pastnet.keras.graphs.reason import class_and_reason
from tb_pastnet.keras.log.batch import Offer, Span
from tb_pastnet.keras.log.notes import Notes
from tb_pastnet.keras.measure.channel_pass import ChannelPass
from tb_pastnet.keras.measure.rates import Rate
from tb_pastnet.keras.measure.schedule import Action
from tb_pastnet.keras.model.switches import Flags, Switches
from tb_pastnet.keras.model.variables import Network
from tb_pastnet.keras.probe.probe import Probe


class Offers:
    """Measures a network against its past copies.

    Args:
        network: what is recorded.
        statistics: measures it, and holds its past copies.
        rate: gives the learning rate.
        feed: follows the masks.
        probe: how far the outputs moved; None for none.
        notes: failures are counted here.
        meter: times it.
    """

    def __init__(
        self,
        network: Network,
        statistics: ChannelPass,
        rate: Rate,
        feed: Feed,
        probe: Probe | None,
        notes: Notes,
        meter: Meter,
    ) -> None:
        self._records = network.variables
        self._pass = statistics
        self._widths = [record.axis.channels for record in self._records]
        self._switches = Switches([record.found for record in self._records])
        self._flags: Flags | None = None
        self._free: npt.NDArray[np.bool_] = np.ones(0, bool)
        self._rate = rate
        self._feed = feed
        self._probe = probe
        self._failures: dict[type[Exception], str] = {}
        self._notes = notes
        self._meter = meter

    def spans(self) -> list[Span]:
        """Where the channels of each variable lie in a record."""
        return [
            Span(record.text.id, start, stop, record.text.role == "kernel")
            for record, (start, stop) in zip(self._records, self._pass.spans(), strict=True)
        ]

    def copy(self, number: int) -> None:
        """Takes the current values as a past copy.

        Args:
            number: which of the copies.
        """
        with self._meter.part(COPIES):
            self._pass.copy(number)

    def make(self, sequence: int, step: int, action: Action) -> Offer:
        """Measures one record, and makes the current values the past where the same copy is due.

        Args:
            sequence: its number.
            step: the step that it shows.
            action: what the schedule says of it; its past step is known.
        """
        # Before the past values are replaced.
        with self._meter.part(PROBE):
            function = self._function(action.compare)
        with self._meter.part(RECORDS):
            return self._measured(sequence, step, action, function)

    def _measured(
        self, sequence: int, step: int, action: Action, function: npt.NDArray[np.float32] | None
    ) -> Offer:
        values = self._pass.statistics(action.compare, replace=action.copy == action.compare)
        values[KEPT], through = self._feed.shares()
        values[TRAINABLE] = through * self._trainable()
        rate = self._learning_rate(step)
        past_step = step if action.past_step is None else action.past_step
        return Offer(sequence, step, past_step, time.time(), rate, values, function)

    def _trainable(self) -> npt.NDArray[np.bool_]:
        """Of each channel, whether its variable is."""
        flags = self._switches.read()
        if flags != self._flags:
            self._free = np.repeat(self._switches.of(flags), self._widths)
            self._flags = flags
        return self._free

    def _function(self, number: int) -> npt.NDArray[np.float32] | None:
        if self._probe is None:
            return None
        try:
            return self._probe.values(self._pass.past(number))
        except Exception as error:
            # By class: the reason may show values, which are others each time.
            text = self._failures.setdefault(type(error), class_and_reason(error))
            self._notes.add(f"Could not evaluate the probe: {text}")
            return None

    def _learning_rate(self, step: int) -> float:
        try:
            return self._rate(step)
        except Exception as error:
            self._notes.add("Could not read the learning rate", error)
            return float("nan")

"""What findings are made from, their kinds, and their form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tb_pastnet.core.account import Account
from tb_pastnet.core.channel_states import Lasting
from tb_pastnet.core.expected import Outcome
from tb_pastnet.core.following import FollowRecords
from tb_pastnet.core.run_changes import RunChanges
from tb_pastnet.core.travel import Verdict

HARM, CHANGE, FACT = "harm", "change", "fact"


class FindingKind(NamedTuple):
    """A kind of findings."""

    severity: str  # `HARM`, `CHANGE` or `FACT`
    meaning: str  # as in the tables of the docs


KINDS: Mapping[str, FindingKind] = {
    "violations": FindingKind(
        HARM, "frozen or pruned channels changed; one finding per likely cause"
    ),
    "contradictions": FindingKind(
        HARM, "what `expect=` declares doesn't hold; one finding per kind of expectation"
    ),
    "nonfinite": FindingKind(HARM, "channels have NaN or infinity"),
    "statistics": FindingKind(
        HARM, "statistics, such as BatchNorm's, moved though all weights of their layer are frozen"
    ),
    "unreadable": FindingKind(HARM, "runs, or some of their records, can't be read"),
    "dropped": FindingKind(HARM, "records were dropped before they were written"),
    "never_stepped": FindingKind(HARM, "`record` was called, but no optimizer made a step"),
    "silent": FindingKind(HARM, "layers whose records end before those of their run"),
    "stalled": FindingKind(
        HARM,
        "channels that an optimizer could train were idle at the last 20 records or more, over "
        "at least half of the steps; and their cause shows that they don't learn, or training has "
        "ended",
    ),
    "follows": FindingKind(
        HARM,
        "weights declared with `follows=` don't follow their sources: they never move, move away, "
        "take over all in each step, or differed at the start; one finding per cause",
    ),
    "unfrozen": FindingKind(CHANGE, "channels that were frozen no longer are"),
    "refrozen": FindingKind(CHANGE, "channels are frozen again"),
    "reactivated": FindingKind(CHANGE, "channels that were pruned no longer are"),
    "masks": FindingKind(CHANGE, "masks changed after the first record"),
    "learning_rate": FindingKind(
        CHANGE,
        "the learning rate jumped: by a tenth or more between two records, and four times as fast "
        "as before and after",
    ),
    "resumed": FindingKind(CHANGE, "training was resumed, or went back to an earlier step"),
    "frozen": FindingKind(CHANGE, "channels are frozen"),
    "pruned": FindingKind(CHANGE, "channels are pruned"),
    "unchanged": FindingKind(
        FACT,
        "channels that an optimizer could train were idle at all records, or at the last 20 or "
        "more, and aren't stalled",
    ),
    "settled": FindingKind(
        FACT,
        "layers that move in place or have arrived, by distances in the last half of the steps",
    ),
    "rows": FindingKind(
        FACT, "rows of an embedding that were unchanged at all records, while others changed"
    ),
}
"""Kinds of findings, what does most harm first. The docs, the routes and the page have them, too:
tests/unit/test_copied_tables.py compares."""

SHOWN = 12
"""Findings that `report` and the tab show; the others are counted."""


class LayerFacts(NamedTuple):
    """The facts of a layer of a run."""

    id: str
    channels: int
    first_step: int | None  # of its records, as the next; None without any
    last_step: int | None
    # since when channels are as they are at the newest record, by kind
    lasting: Mapping[str, Lasting] = {}
    # why it is idle, "" if unknown, and whether that has shown for long enough that it doesn't
    # learn
    cause: str = ""
    proven: bool = False
    verdict: Verdict | None = None
    variables: Sequence[str] = ()  # their ids
    damaged: Account = Account()  # of its main variable's records, if some can't be read


class Violated(NamedTuple):
    """A channel that changed while it was held, with the steps of its first and last record.

    The cause is a key of `CAUSES`, or one of a later version.
    """

    layer: str
    variable: str
    channel: int
    first_step: int
    last_step: int
    cause: str


class MovedStatistics(NamedTuple):
    """Statistics of a layer that moved while all its weights were frozen.

    So many of their channels did, from the first to the last of these steps.
    """

    layer: str
    channels: int
    first_step: int
    last_step: int
    variable: str | None = None  # the first of them that moved


class RunFacts(NamedTuple):
    """The facts of a run: its newest step, layers in forward order, violations, account."""

    name: str
    last_step: int | None
    layers: Sequence[LayerFacts]
    violated: Sequence[Violated] = ()
    account: Account = Account()
    problem: str = ""  # why it could not be read
    closed: bool = False  # whether training has ended, as far as the writer knew
    followed: Sequence[FollowRecords] = ()  # weights that follow others
    changes: RunChanges = RunChanges()
    stepless_calls: int = 0  # of `record`, if no optimizer ever made a step
    statistics: Sequence[MovedStatistics] = ()
    contradicted: Sequence[Outcome] = ()  # what `expect=` declares, and doesn't hold


@dataclass(frozen=True)
class Finding:
    """Something worth knowing about some runs.

    Attributes:
        kind: a key of `KINDS`.
        cause: why, where that is known: "weight_decay", "no_gradient", …; "unknown" for violations
            and stalled channels of which it isn't; else None.
        runs: the names of all runs that it concerns.
        layers: ids of all layers that it concerns.
        channels: how many it concerns, None if it isn't about channels.
        first_step: of the first record at which it held for any channel; None if there is none.
        numbers: the other numbers of its text, by name.
        text: the sentence.
        view: the view of the tab that shows it: "network" or "layer".
        shown_run: the run to look at.
        layer: the layer to look at, None for all.
        channel: the channel to look at, None for all.
        variable: the variable of the layer to look at, None for the one that represents it.

    Example:
        >>> finding = Finding("frozen", None, ("a",), ("dense",), 3, 50, {}, "dense: frozen …")
        >>> finding.layers, finding.first_step, finding.severity
        (('dense',), 50, 'change')
    """

    kind: str
    cause: str | None
    runs: tuple[str, ...]
    layers: tuple[str, ...]
    channels: int | None
    first_step: int | None
    numbers: Mapping[str, int] = field(hash=False)
    text: str
    view: str = "network"
    shown_run: str | None = None
    layer: str | None = None
    channel: int | None = None
    variable: str | None = None

    @property
    def severity(self) -> str:
        """How much it matters: "harm", "change" or "fact"."""
        return KINDS[self.kind].severity

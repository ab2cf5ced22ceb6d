"""What should happen in a training, and whether it did: for `expect=` and `pastnet verify`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from tb_pastnet.core.compared import BY_FINGERPRINT, Compared, HeldSpan
from tb_pastnet.core.counted import counted, named
from tb_pastnet.core.log_names import LogNames
from tb_pastnet.core.verified import ComparedLineage, RecordedWeight, standing_lineages
from tb_pastnet.core.violation import between
from tb_pastnet.errors import InvalidArgument, UnknownName

FROZEN, TRAINS, SPARSITY, STATISTICS = "frozen", "trains", "sparsity", "statistics"

HOLDS, FAILS, NO_ANSWER, OPEN = "holds", "fails", "no answer", "open"
"""An expectation holds, or doesn't; nothing proves it; or that shows only at the end."""

_ANY = "any:"
_LONGEST = 1000
_SPARSITY = re.compile(r"(?P<before>.*?)\s*>=\s*(?P<least>[0-9.]+)")


class Expectation(NamedTuple):
    """What should happen to the weights that a pattern matches.

    Attributes:
        kind: `FROZEN`, `TRAINS`, `SPARSITY` or `STATISTICS`.
        pattern: of their names in the log; "" for statistics.
        least: the least sparsity.
        one: whether a single one of them has to train.
    """

    kind: str
    pattern: str
    least: float = 0.0
    one: bool = False

    @property
    def words(self) -> tuple[str, str]:
        """The pattern, and the words for it in `expect=`."""
        words = f"{SPARSITY} >= {self.least!r}" if self.kind == SPARSITY else self.kind
        return f"{_ANY * self.one}{self.pattern}", words

    @property
    def text(self) -> str:
        """The expectation in words."""
        if self.kind == STATISTICS:
            return "statistics still"
        if self.kind == SPARSITY:
            return f"sparsity of {self.pattern} >= {self.least:g}"
        return f"{self.kind} {_ANY * self.one}{self.pattern}"


class Outcome(NamedTuple):
    """What became of an expectation.

    Attributes:
        expectation: that it is about.
        result: `HOLDS`, `FAILS`, `NO_ANSWER` or `OPEN`.
        text: a sentence that says which weights, at which records.
        weights: ids of the weights that decided it.
        first_step: the step at which it was first seen to fail; None if that isn't known.
    """

    expectation: Expectation
    result: str
    text: str
    weights: tuple[str, ...] = ()
    first_step: int | None = None


Expect = Mapping[str, str] | None
"""By patterns of names in the log: "frozen", "trains" or "sparsity >= 0.8"."""


def words_of(expect: Expect) -> tuple[tuple[str, str], ...]:
    """Patterns, and the words for each, as a log has them; raises as `declared` does."""
    return tuple(each.words for each in declared(expect))


def declared(expect: Expect) -> tuple[Expectation, ...]:
    """Reads `expect=`; raises InvalidArgument for a word that isn't one of its.

    Example:
        >>> declared({"base.*": "frozen", "*/kernel": "sparsity >= 0.8"})[1].least
        0.8
    """
    if not isinstance(expect, Mapping | None):
        raise InvalidArgument(
            f"Could not read expect=: expected a mapping from patterns of names, got "
            f"{expect!r:.60}. Write expect={{'base.*': 'frozen'}}."
        )
    return tuple(_declared(pattern, words) for pattern, words in (expect or {}).items())


def _declared(pattern: object, words: object) -> Expectation:
    if isinstance(pattern, str) and isinstance(words, str) and 0 < len(pattern) <= _LONGEST:
        if words.strip() == FROZEN:
            return Expectation(FROZEN, pattern)
        if words.strip() == TRAINS:
            return trains(pattern)
        match = _SPARSITY.fullmatch(words.strip())
        if match and match["before"] == SPARSITY and _is_share(match["least"]):
            return Expectation(SPARSITY, pattern, float(match["least"]))
    raise InvalidArgument(
        f"Could not read expect=: expected 'frozen', 'trains' or 'sparsity >= 0.8' for a "
        f"pattern of names, got {words!r:.60} for {pattern!r:.60}. Correct it, or leave it out."
    )


def trains(pattern: str) -> Expectation:
    """That every weight which matches trains; with "any:" before the pattern, one of them."""
    return Expectation(TRAINS, pattern.removeprefix(_ANY), one=pattern.startswith(_ANY))


def sparsity(text: str) -> Expectation:
    """Reads "PATTERN>=0.8"; raises InvalidArgument.

    Example:
        >>> sparsity("*/kernel >= 0.8").pattern
        '*/kernel'
    """
    match = _SPARSITY.fullmatch(text)
    if not (match and match["before"] and _is_share(match["least"])):
        raise InvalidArgument(
            f"Could not read a sparsity: expected a pattern, >= and a share from 0 to 1, got "
            f"{text!r:.60}. Write '*/kernel>=0.8'."
        )
    return Expectation(SPARSITY, match["before"], float(match["least"]))


def _is_share(text: str) -> bool:
    try:
        return 0 <= float(text) <= 1
    except ValueError:
        return False


def check_declared(expectations: Sequence[Expectation], names: Mapping[str, Iterable[str]]) -> None:
    """Checks expectations about recorded weights of these names, see `LogNames`.

    Raises UnknownName if one matches none of them, and InvalidArgument if a weight should both be
    frozen and train.
    """
    log_names = LogNames(names)
    matched: dict[str, set[str]] = {}
    for each in expectations:
        matched.setdefault(each.kind, set()).update(log_names.all(each.pattern))
    contradicted = matched.get(FROZEN, set()) & matched.get(TRAINS, set())
    if contradicted:
        raise InvalidArgument(
            f"Could not read expect=: expected each weight to be frozen or to train, got both for "
            f"{named(sorted(contradicted), 'weight')}. Write patterns that don't overlap."
        )


def evaluate(
    expectations: Sequence[Expectation],
    lineages: Sequence[ComparedLineage],
    *,
    at_end: bool = False,
    ended: bool = True,
) -> list[Outcome]:
    """Whether expectations hold in a run, each with a sentence.

    Args:
        expectations: what should have happened.
        lineages: of the run, in order.
        at_end: whether only the last of them counts.
        ended: whether training has ended: before, some show only later.
    """
    standing = standing_lineages(lineages)
    evidence = _Evidence(standing[-1:] if at_end else standing, ended=ended)
    problem = evidence.problem
    asked = [each.pattern for each in expectations if each.kind == FROZEN]
    overlap = _Overlap(evidence, expectations)
    outcomes = []
    for each in expectations:
        try:
            reason = problem or overlap.problem(each)
            outcome = _Answer(NO_ANSWER, reason) if reason else _answer(each, evidence, asked)
        except UnknownName as error:
            outcome = _Answer(NO_ANSWER, str(error))
        text = f"{each.text}: {outcome.text}"
        outcomes.append(Outcome(each, outcome.result, text, outcome.weights, outcome.first_step))
    return outcomes


class _Answer(NamedTuple):
    result: str
    text: str
    weights: tuple[str, ...] = ()
    first_step: int | None = None


class _Place(NamedTuple):
    """A weight in a lineage."""

    number: int
    compared: Compared


class _Evidence:
    """What some lineages, all of which count, say about their weights."""

    def __init__(self, lineages: Sequence[ComparedLineage], *, ended: bool) -> None:
        self.ended = ended
        self._lineages = lineages
        self._compared = [each.compared for each in lineages if each.compared is not None]
        self.places: dict[str, list[_Place]] = {}
        self.weights: dict[str, RecordedWeight] = {}
        for lineage in lineages:
            for number, weight in enumerate(lineage.weights):
                self.weights[weight.id] = weight
                place = _Place(number, lineage.compared or Compared())
                self.places.setdefault(weight.id, []).append(place)

    @property
    def problem(self) -> str:
        """Why nothing can be said; "" if something can."""
        compared = [lineage.compared for lineage in self._lineages]
        if not compared:
            return "there is no record"
        counted_ones = [each for each in compared if each is not None]
        if len(counted_ones) < len(compared):
            return "nothing about comparisons is in the log: it is of an earlier version"
        if not sum(each.records for each in counted_ones):
            return "there is no record"
        if failed := sum(each.failed for each in counted_ones):
            records = failed + sum(each.records for each in counted_ones)
            return (
                f"the weights could not be compared at {failed:,} of {counted(records, 'record')}"
            )
        return ""

    @property
    def is_audited(self) -> bool:
        return all(lineage.audited for lineage in self._lineages)

    @cached_property
    def names(self) -> LogNames:
        return LogNames({name: weight.also for name, weight in self.weights.items()})

    def trained(self, pattern: str) -> list[str]:
        """The weights that a pattern matches, without statistics; raises UnknownName."""
        matching = self.names.all(pattern)
        own = [name for name in matching if not self.weights[name].statistic]
        if not own:
            raise UnknownName(
                f"Could not find weights by {pattern!r}: expected some besides statistics, got "
                f"{named(matching, 'weight')}. Statistics are for --statistics."
            )
        return own

    def first_move(self, name: str) -> int | None:
        """The step of the first record that shows that a weight has changed."""
        steps = [place.compared.moved.get(place.number) for place in self.places[name]]
        return next((step for step in steps if step is not None), None)

    @property
    def records(self) -> int:
        """How many records were looked at, whether they have all weights or not."""
        return sum(each.records for each in self._compared)

    @property
    def start(self) -> int:
        """The step of the first of them."""
        return min(each.first_step or 0 for each in self._compared if each.records)

    @property
    def seen(self) -> str:
        """These records, for a sentence."""
        last = max(each.last_step or 0 for each in self._compared)
        return f"{counted(self.records, 'record')} {between(self.start, last)}"

    def is_computed(self, name: str) -> bool:
        """Whether a weight is computed from others wherever it is recorded."""
        return all(place.number in place.compared.computed for place in self.places[name])


class _Overlap:
    """Weights that are expected both to be frozen and to train."""

    def __init__(self, evidence: _Evidence, expectations: Sequence[Expectation]) -> None:
        self._matched: dict[Expectation, set[str]] = {}
        for each in expectations:
            if each.kind in (FROZEN, TRAINS):
                try:
                    self._matched[each] = set(evidence.trained(each.pattern))
                except UnknownName:
                    continue

    def problem(self, expectation: Expectation) -> str:
        """Which weights of an expectation another one contradicts; "": none."""
        own = self._matched.get(expectation, set())
        rivals = (names for each, names in self._matched.items() if each.kind != expectation.kind)
        shared = sorted(own & set().union(*rivals))
        return f"{named(shared, 'weight')}: expected to be frozen and to train" if shared else ""


def _answer(expectation: Expectation, evidence: _Evidence, asked: Sequence[str]) -> _Answer:
    if expectation.kind == FROZEN:
        return _frozen(evidence, evidence.trained(expectation.pattern))
    if expectation.kind == TRAINS:
        return _trains(evidence, evidence.trained(expectation.pattern), one=expectation.one)
    if expectation.kind == SPARSITY:
        return _sparsity(evidence, evidence.trained(expectation.pattern), expectation.least)
    return _statistics(evidence, asked)


def _frozen(evidence: _Evidence, names: Sequence[str]) -> _Answer:
    if not evidence.is_audited:
        return _Answer(NO_ANSWER, "nothing was compared: audit=False")
    own = [name for name in names if not evidence.is_computed(name)]
    if not own:
        return _Answer(NO_ANSWER, f"{named(names, 'weight')}: computed from other weights")
    wrong: dict[str, list[str]] = {}
    steps = []
    for name in names:
        if reason := _why_not_frozen(evidence, name):
            wrong.setdefault(reason[0], []).append(name)
            steps.append(reason[1])
    if wrong:
        text = "; ".join(f"{named(group, 'weight')}: {why}" for why, group in wrong.items())
        return _Answer(FAILS, text, tuple(n for group in wrong.values() for n in group), min(steps))
    values = sum(evidence.weights[name].size for name in own)
    text = (
        f"{counted(values, 'value')} in {counted(len(own), 'weight')} ({named(own, 'weight')}), "
        f"held and unchanged at {evidence.seen}"
    )
    return _Answer(HOLDS, text, tuple(own))


def _why_not_frozen(evidence: _Evidence, name: str) -> tuple[str, int] | None:
    """Why a weight wasn't frozen, and since which step; None if it was."""
    if evidence.is_computed(name):
        step = evidence.first_move(name)
        text = f"changed, first seen at step {step or 0:,}, with the weights it is computed from"
        return None if step is None else (text, step)
    owns = [place.compared.held.get(place.number) for place in evidence.places[name]]
    changed = [own for own in owns if own is not None and own.changed_at is not None]
    if changed:
        first, most = changed[0].changed_at or 0, max(own.changed for own in changed)
        size = counted(evidence.weights[name].size, "value")
        # A fingerprint shows that a channel has changed, not how many of its values.
        least = "at least " if any(own.by == BY_FINGERPRINT for own in changed) else ""
        return f"{least}{most:,} of {size} changed, first seen at step {first:,}", first
    spans = [span for own in owns if own is not None for span in own.spans]
    held_whole = [span for span in spans if span.whole]
    held = sum(span.records for span in held_whole)
    if held == evidence.records:
        return None
    first, seen = _first_gap(evidence.start, held_whole), evidence.seen
    if not spans:
        return f"held at 0 of {seen}", first
    if not held_whole:
        return f"only some of its values were held, at {_times(spans)}; looked at {seen}", first
    text = f"held at {held:,} of {seen}: {', '.join(_span(span) for span in held_whole[:3])}"
    return text + (", …" if len(held_whole) > 3 else ""), first


def _first_gap(start: int, held_whole: Sequence[HeldSpan]) -> int:
    """The step from which on a weight isn't proven to be held, of records from `start` on."""
    begins = [span for span in held_whole if span.first_step == start]
    return begins[0].last_step + 1 if begins else start


def _times(spans: Sequence[HeldSpan]) -> str:
    return counted(sum(span.records for span in spans), "record")


def _span(span: HeldSpan) -> str:
    return between(span.first_step, span.last_step)


def _trains(evidence: _Evidence, names: Sequence[str], *, one: bool) -> _Answer:
    if not any(place.compared.known for name in names for place in evidence.places[name]):
        return _Answer(NO_ANSWER, "no record shows whether weights changed")
    moved = {name: evidence.first_move(name) for name in names}
    still = [name for name, step in moved.items() if step is None]
    trained = [name for name in names if moved[name] is not None]
    if not still or (one and trained):
        first = max(moved[name] or 0 for name in trained)
        return _Answer(HOLDS, f"{named(trained, 'weight')}: changed by step {first:,}", (*trained,))
    held = [name for name in still if _is_held(evidence, name)]
    if not evidence.ended and not (held and (not one or len(held) == len(names))):
        return _Answer(OPEN, f"{named(still, 'weight')}: unchanged so far")
    text = f"{named(still, 'weight')}: unchanged at {evidence.seen}"
    if held:
        text += " (frozen)" if held == still else f" ({named(held, 'weight')} frozen)"
    starts = [place.compared.first_step or 0 for name in still for place in evidence.places[name]]
    return _Answer(FAILS, text, tuple(still), min(starts))


def _is_held(evidence: _Evidence, name: str) -> bool:
    """Whether all of a weight was held at the last record."""
    place = evidence.places[name][-1]
    own = place.compared.held.get(place.number)
    last = own.spans[-1] if own is not None and own.spans else None
    return last is not None and last.whole and last.last_step == place.compared.last_step


def _sparsity(evidence: _Evidence, matched: Sequence[str], least: float) -> _Answer:
    names = [name for name in matched if _counts(evidence, name)] or matched
    pruned, sizes, changes = [], [evidence.weights[name].size for name in names], []
    for name in names:
        place = evidence.places[name][-1]
        own = place.compared.held.get(place.number)
        pruned.append(place.compared.pruned.get(place.number, 0))
        changes.append(own.changed if own is not None else 0)
    size, changed = sum(sizes), sum(changes)
    sparse = max(sum(pruned) - changed, 0)
    last = max(evidence.places[name][-1].compared.last_step or 0 for name in names)
    text = (
        f"{sparse / size:.1%} of {counted(size, 'value')} in {named(names, 'weight')} are pruned "
        f"at step {last:,}"
    )
    if changed:
        text += f"; {changed:,} held ones changed, and don't count"
    # Pruning rounds to whole values: in all weights together, or in each.
    each = zip(pruned, changes, sizes, strict=True)
    if sparse >= _whole(least * size) or all(p - c >= _whole(least * s) for p, c, s in each):
        return _Answer(HOLDS, text, tuple(names))
    return _Answer(FAILS if evidence.ended else OPEN, text, tuple(names), last)


def _whole(values: float) -> int:
    """As `pruning_rules` rounds; a share above zero of a small weight isn't nothing."""
    return max(round(values), math.ceil(min(values, 1)))


def _counts(evidence: _Evidence, name: str) -> bool:
    """Whether a weight counts for a sparsity, as in a report: kernels, and what is pruned."""
    place = evidence.places[name][-1]
    return evidence.weights[name].kernel or place.compared.pruned.get(place.number, 0) > 0


def _statistics(evidence: _Evidence, asked: Sequence[str]) -> _Answer:
    names = _statistics_of(evidence, asked)
    if not names:
        where = " in the layers of --frozen" if asked else ""
        return _Answer(NO_ANSWER, f"there are no statistics{where}")
    if not any(place.compared.known for name in names for place in evidence.places[name]):
        return _Answer(NO_ANSWER, "no record shows whether they changed")
    moved = {name: step for name in names if (step := evidence.first_move(name)) is not None}
    if moved:
        first = min(moved.values())
        text = f"{named(moved, 'statistic')}: changed, first seen at step {first:,}"
        return _Answer(FAILS, text, tuple(moved), first)
    text = f"{named(names, 'statistic')}: unchanged at {evidence.seen}"
    return _Answer(HOLDS, text, tuple(names))


def _statistics_of(evidence: _Evidence, asked: Sequence[str]) -> list[str]:
    """All statistics; if patterns name what should be frozen, those of its layers."""
    statistics = [name for name, weight in evidence.weights.items() if weight.statistic]
    if not asked:
        return statistics
    matched = {name for pattern in asked for name in _or_none(evidence.names.all, pattern)}
    layers = {evidence.weights[name].layer for name in matched}
    return [n for n in statistics if n in matched or evidence.weights[n].layer in layers]


def _or_none(find: Callable[[str], list[str]], pattern: str) -> Iterator[str]:
    try:
        yield from find(pattern)
    except UnknownName:
        return

"""What was compared in a run, and whether what should happen did: as its writers recorded it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tb_pastnet.core.counted import counted
from tb_pastnet.core.expected import (
    FAILS,
    FROZEN,
    NO_ANSWER,
    STATISTICS,
    Expectation,
    Outcome,
    declared,
    evaluate,
)
from tb_pastnet.core.verified import ComparedLineage, RecordedWeight, Verified, verified
from tb_pastnet.core.violation import CAUSES
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.reader import notes
from tb_pastnet.reader.lineage_heads import LineageHead
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.runs import SINK, CatalogRun
from tb_pastnet.reader.state_series import KERNEL, STATISTIC
from tb_pastnet.reader.store import RunReader

_PARTIAL = (
    notes.FOREIGN,
    notes.NEWER,
    notes.DAMAGED,
    notes.WITHHELD,
    notes.IN_PART,
    notes.NO_DESCRIPTION,
)
"""Notes of a run of which a part can't be read."""


def compared_in(run: CatalogRun) -> list[ComparedLineage]:
    """What each lineage of a run recorded and compared, in order."""
    lineages = []
    for head in run.lineages:
        described = head.description
        weights = [
            RecordedWeight(
                each.id,
                each.layer,
                each.channels * each.elements,
                each.role == STATISTIC,
                each.role == KERNEL,
                each.also,
            )
            for each in (described.variables if described else ())
        ]
        audited = described is None or described.audited
        steps = head.timeline.steps.tolist()
        lineages.append(ComparedLineage(weights, head.compared, head.start, steps, audited))
    return lineages


def verified_in(run: CatalogRun) -> Verified:
    """What the comparisons in a run prove."""
    return verified(compared_in(run))


def outcomes_of(
    reader: RunReader, expectations: Sequence[Expectation], *, at_end: bool = False
) -> list[Outcome]:
    """Whether expectations hold in a run; while it is live, or can't be read, nothing does.

    What was declared is asked, too, unless they say what weights should do.
    """
    run = reader.run
    if all(each.kind == STATISTICS for each in expectations):  # `expect=` has no word for these
        expectations = [*declared_in(run), *expectations]
    if problem := unverifiable(run):
        return [Outcome(each, NO_ANSWER, f"{each.text}: {problem}") for each in expectations]
    found = evaluate(expectations, compared_in(run), at_end=at_end)
    return [_with_causes(reader, each) for each in found]


def declared_in(run: CatalogRun) -> tuple[Expectation, ...]:
    """What the newest writer of a run declared with `expect=`."""
    described = [head.description for head in run.lineages if head.description is not None]
    try:
        return declared(dict(described[-1].expect)) if described else ()
    except InvalidArgument:  # words of a later version
        return ()


def contradictions_in(run: CatalogRun) -> list[Outcome]:
    """What contradicts `expect=` so far."""
    expectations = declared_in(run)
    if not expectations:
        return []
    found = evaluate(expectations, compared_in(run), ended=run.closed)
    return [each for each in found if each.result == FAILS]


def unverifiable(run: CatalogRun) -> str:
    """Why nothing can be said about a whole run; "" if something can."""
    return next(_problems(run), "")


def _problems(run: CatalogRun) -> Iterator[str]:
    if run.problem:
        yield run.problem
    if run.source != SINK:
        yield "it was written by tf.summary, so nothing was compared"
    if run.account.unreadable:
        yield f"{run.account.unreadable:,} of {run.account.offered:,} records can't be read"
    if not len(run.axis.steps):
        yield "there is no record"
    if run.stepless_calls:
        yield f"{counted(run.stepless_calls, 'call')} of record, 0 optimizer steps"
    if not run.closed:
        yield "training continues, or did not end normally"
    yield from (text for text in _PARTIAL if run.notes[text])
    if any(map(_lacks_comparisons, run.lineages)):
        yield "what was compared at its last records can't be read"


def _lacks_comparisons(head: LineageHead) -> bool:
    """Whether it has records that are newer than what is said about comparisons."""
    compared, sequence = head.compared, head.timeline.sequence
    if compared is None or not len(sequence):
        return False
    # A record may be written just before it is compared: then training is killed.
    return bool(sequence[-1] > compared.records + compared.failed)


def _with_causes(reader: RunReader, outcome: Outcome) -> Outcome:
    """The same with why held weights changed, as far as the audit knows."""
    if outcome.result != FAILS or outcome.expectation.kind != FROZEN:
        return outcome
    causes = dict.fromkeys(_causes(reader, set(outcome.weights)))
    if not causes:
        return outcome
    return outcome._replace(text=f"{outcome.text}. Likely cause: {'; '.join(causes)}")


def _causes(reader: RunReader, weights: set[str]) -> Iterator[str]:
    lost: Notes = Notes()
    for violation in reader.list_violations(lost)[1]:
        if violation.variable in weights:
            yield CAUSES.get(violation.cause, violation.cause)

"""What there is to know of runs, from facts made by hand: the sentences, word by word."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_pastnet.core import channel_states
from tb_pastnet.core.account import Account
from tb_pastnet.core.expected import FAILS, Expectation, Outcome
from tb_pastnet.core.finding_kinds import (
    Finding,
    LayerFacts,
    MovedStatistics,
    RunFacts,
    Violated,
)
from tb_pastnet.core.findings import findings
from tb_pastnet.core.run_changes import MaskSteps, RateJump, RunChanges

CHANNELS = 4


def layer(name: str, **at: list[int]) -> LayerFacts:
    """A layer of four channels, a record each ten steps: so many are in each state at each record."""
    records = len(next(iter(at.values()), []))
    steps = 10 * np.arange(1, records + 1)
    flags = {kind: np.arange(CHANNELS) < np.array(own)[:, None] for kind, own in at.items()}
    each = {kind: channel_states.lasting(own, steps) for kind, own in flags.items()}
    lasting = {kind: own for kind, own in each.items() if own is not None}
    first, last = (int(steps[0]), int(steps[-1])) if records else (None, None)
    return LayerFacts(name, CHANNELS, first, last, lasting)


def run(*layers: LayerFacts, name: str = "a", last: int = 40, closed: bool = True) -> RunFacts:
    return RunFacts(name, last, layers, closed=closed)


def texts(*runs: RunFacts) -> list[str]:
    return [finding.text for finding in findings(runs)]


def test_a_whole_layer_is_frozen_since_the_first_record_at_which_it_is() -> None:
    (found,) = findings([run(layer("conv1", frozen=[0, 0, 4, 4]))])
    assert (found.kind, found.cause, found.severity) == ("frozen", None, "change")
    assert (found.runs, found.layers, found.first_step, found.channels) == (
        ("a",), ("conv1",), 30, 4,
    )  # fmt: skip
    assert found.numbers == {"of": 4, "since": 30, "records": 2}
    assert found.text == "conv1: frozen since step 30"
    assert (found.view, found.shown_run, found.layer) == ("layer", "a", "conv1")


@pytest.mark.parametrize(
    ("at", "text"),
    [
        ([0, 0, 3, 3], "3 of 4 channels of conv1: pruned since step 30"),
        (
            [0, 1, 3, 3],
            "conv1: channels first pruned at step 20 (channel 0); 3 of 4 channels since step 30",
        ),
        (
            [2, 0, 4, 4],
            "conv1: channels first pruned at step 10 (2 channels); all 4 channels since step 30",
        ),
        ([0, 3, 2, 2], "2 of 4 channels of conv1: pruned since step 20"),
        (
            [0, 3, 2, 3],
            "conv1: channels first pruned at step 20 (3 channels); 3 of 4 channels since step 40",
        ),
        ([0, 3, 2, 0], None),
    ],
)
def test_the_step_is_the_first_at_which_it_held_and_the_sentence_says_when_for_how_many(
    at: list[int], text: str | None
) -> None:
    found = findings([run(layer("conv1", pruned=at))])
    assert [one.text for one in found] == ([] if text is None else [text])
    for one in found:
        assert one.first_step == 10 * (np.flatnonzero(at)[0] + 1)
        assert one.channels == at[-1]


def test_layers_and_runs_are_one_sentence() -> None:
    names = ["a1", "a2", "a3", "a4", "a5"]
    (found,) = findings([run(*(layer(name, frozen=[0, 0, 4, 4]) for name in names))])
    assert found.text == "a1, a2, a3 and 2 more layers: frozen since step 30"
    assert (found.layers, found.channels, found.layer) == (tuple(names), 20, None)
    assert found.view == "network"
    runs = [run(layer("dense", frozen=[0] * at + [4] * (4 - at)), name=f"r{at}") for at in (2, 1)]
    (found,) = findings([*runs, run(layer("dense"), name="free", last=40)._replace(layers=())])
    assert found.text == (
        "r2 and r1: channels first frozen at step 20 in r1 (dense) and at step 30 in r2 (dense); "
        "all 8 channels since step 30"
    )
    assert (found.runs, found.layers, found.layer) == (("r2", "r1"), ("dense",), "dense")
    assert found.shown_run == "r1"  # where it was first


def test_of_several_layers_the_most_changes_of_masks_are_the_most() -> None:
    a, b = MaskSteps(3, 10, 40), MaskSteps(1, 20, 20)
    for masks, times in (({"a": a, "b": b}, "up to 3 times"), ({"a": a, "b": a}, "3 times")):
        changed = run(layer("a"), layer("b"))._replace(changes=RunChanges(masks=masks))
        assert f"a and b: masks changed {times}, from step 10 to 40" in texts(changed)


def test_of_several_runs_a_jump_is_said_of_the_one_that_made_it() -> None:
    jumps = {"a": RateJump(30, 0.1, 0.01), "b": RateJump(20, 0.5, 0.25)}
    runs = [
        run(name=name)._replace(changes=RunChanges(rates=[jump])) for name, jump in jumps.items()
    ]
    (text,) = texts(*runs)
    assert text.endswith("jumped from 0.5 to 0.25 at step 20 in b, and 1 more time up to step 30")
    assert text.startswith("a and b: ")
    assert texts(runs[0]) == ["The learning rate jumped from 0.1 to 0.01 at step 30"]


def test_of_several_runs_a_failed_expectation_is_said_of_its_own() -> None:
    failed = [
        Outcome(Expectation("frozen", name), FAILS, f"frozen {name}: held at {n} of 9 records")
        for n, name in enumerate(("b", "a", "b"))
    ]
    one, two = (
        run()._replace(contradicted=failed[:1]),
        run(name="b")._replace(contradicted=failed[1:]),
    )
    assert texts(one) == ["Expected frozen b: held at 0 of 9 records"]
    assert texts(two) == ["Expected frozen a: held at 1 of 9 records. 1 more expectation failed"]
    assert texts(two, one) == [
        "b: Expected frozen a: held at 1 of 9 records. 2 more expectations failed, in b and a"
    ]


def test_a_jump_of_the_rate_of_some_layers_names_them() -> None:
    jumps = [RateJump(20, 0.1, 0.01, ("a", "b")), RateJump(30, 1e-4, 1e-5)]
    (text,) = texts(run()._replace(changes=RunChanges(rates=jumps)))
    assert text.startswith("The learning rate of a and b jumped from 0.1 to 0.01 at step 20, and ")


def test_layers_that_lack_more_records_than_their_run_are_said() -> None:
    lost = Account(40, shown=24, unreadable=16)
    each = {"a": lost, "b": Account(40, 40)}
    damaged = [layer(name, frozen=[0] * 4)._replace(damaged=own) for name, own in each.items()]
    assert texts(run(*damaged)._replace(account=Account(40, 40))) == [
        "16 of 40 records of a can't be read"
    ]
    assert texts(run(*damaged)._replace(account=lost)) == ["16 of 40 records can't be read"]


@given(st.sets(st.tuples(st.sampled_from("uvwx"), st.sampled_from("abc")), min_size=1))
def test_a_sentence_names_no_layer_of_a_run_that_it_is_not_about(
    said: set[tuple[str, str]],
) -> None:
    runs = [
        run(
            *(layer(name, pruned=[0, 4]) for name in "abc" if (own, name) in said),
            name=own,
            last=20,
        )
        for own in sorted({own for own, _ in said} | {"free"})
    ]
    (text,) = texts(*runs)
    where = text.removesuffix(": pruned since step 20")
    if "(" not in where:
        where = "{1} ({0})".format(*where.split(" in "))
    parts = re.findall(r"([u-x, and]+?) \(([^)]*)\)", where)
    listed = [
        (re.findall(r"\b[u-x]\b", own), re.findall(r"\b[a-c]\b", these)) for own, these in parts
    ]
    assert {(own, name) for owns, names in listed for own in owns for name in names} == said


def test_of_several_that_begin_at_one_record_none_is_named_as_the_first() -> None:
    begin = {"a": [0, 1, 4], "b": [0, 2, 4], "c": [0, 0, 4]}
    both, *_ = findings([run(*(layer(name, nonfinite=begin[name]) for name in "ab"))])
    assert both.text == (
        "a and b: channels first NaN or infinite at step 20 (all of them at once); "
        "all 8 channels since step 30"
    )
    some, *_ = findings([run(*(layer(name, nonfinite=begin[name]) for name in "abc"))])
    assert "first NaN or infinite at step 20 (a and b)" in some.text


def test_violations_are_told_by_cause_and_a_channel_counts_once() -> None:
    kernel = Violated("conv1", "conv1/kernel", 2, 506, 600, "weight_decay")
    some = [
        kernel,
        kernel._replace(first_step=700, last_step=1000),
        kernel._replace(variable="conv1/bias"),
        Violated("conv2", "conv2/kernel", 1, 610, 610, "weight_decay"),
        Violated("conv2", "conv2/kernel", 3, 300, 900, "of a later version"),
    ]
    found = findings([RunFacts("a", 1000, [], some)])
    assert [one.text for one in found] == [
        (
            "1 channel of conv2 changed while frozen or pruned, from step 300 to 900. "
            "Likely cause: of a later version"
        ),
        (
            "2 channels of conv1 and conv2 changed while frozen or pruned, since step 506. "
            "Likely cause: weight decay"
        ),
    ]
    assert [one.cause for one in found] == ["of a later version", "weight_decay"]
    assert (found[1].layer, found[1].channel, found[1].first_step) == ("conv1", 2, 506)
    both = findings([RunFacts(name, 1000, [], some[:1]) for name in ("a", "b")])
    assert [(one.runs, one.channels) for one in both] == [(("a", "b"), 2)]
    assert both[0].text.startswith("2 channels of conv1 in a and b changed")


def test_lost_records_and_layers_without_records() -> None:
    silent, never = layer("gone", frozen=[0, 0]), layer("never")
    account = Account(100, shown=90, dropped=7, unreadable=3)
    full = layer("conv1", frozen=[0, 0, 0, 0])
    lossy = RunFacts("a", 40, [full, silent], account=account)
    assert texts(lossy) == [
        "3 of 100 records can't be read",
        "7 of 100 records were dropped before they were written",
        "gone: no record after step 20; the run is at 40",
    ]
    assert texts(lossy, lossy._replace(name="b")) == [
        "6 of 200 records of a and b can't be read",
        "14 of 200 records of a and b were dropped before they were written",
        "gone in a and b: no record after step 20; the runs are at 40",
    ]
    assert texts(run(silent, never)) == [
        "gone and never: no record, or none after step 20; the run is at 40"
    ]
    assert texts(run(never)) == ["never: no record; the run is at 40"]
    assert texts(run(silent, layer("early", frozen=[0]))) == [
        "gone and early: no record after step 10 (first); the run is at 40"
    ]
    assert texts(RunFacts("a", None, [never])) == []
    assert texts() == []


def test_runs_that_could_not_be_read() -> None:
    bad = RunFacts("bad", None, [], problem="The run could not be read: KeyError")
    assert texts(bad) == ["The run could not be read: KeyError"]
    assert texts(bad, run(), bad._replace(name="worse")) == [
        "bad and worse: The run could not be read: KeyError"
    ]
    other = RunFacts("other", None, [], problem="The run could not be read: OverflowError")
    assert texts(bad, other) == [
        "bad and other: The run could not be read: KeyError, and 1 other problem"
    ]


def test_harm_comes_before_changes_and_facts() -> None:
    still = layer("dense", stalled=[0, 3, 3, 3])
    late = layer("late", unchanged=[1, 1, 1, 1])
    broken = layer("conv1", frozen=[1, 1, 1, 1], nonfinite=[0, 0, 2, 2])
    found = findings([run(still, late, broken)])
    assert [(one.severity, one.text) for one in found] == [
        ("harm", "2 of 4 channels of conv1: NaN or infinite since step 30"),
        (
            "harm",
            "3 of 4 channels of dense: stalled, unchanged at the last 3 records, from step 20 on. Cause unknown",
        ),
        ("change", "1 of 4 channels of conv1: frozen since step 10"),
        ("fact", "1 of 4 channels of late: unchanged at all 4 records"),
    ]
    assert [one.cause for one in found] == [None, "unknown", None, None]


@pytest.mark.parametrize(
    ("cause", "proven", "closed", "kind", "text"),
    [
        ("", False, True, "stalled", "a: stalled, unchanged at all 4 records. Cause unknown"),
        ("", False, False, "unchanged", "a: unchanged at all 4 records"),
        ("unknown", False, False, "unchanged", "a: unchanged at all 4 records"),
        (
            "zero_gradient", False, False, "unchanged",
            "a: unchanged at all 4 records. Cause: their gradient is exactly zero",
        ),
        (
            "no_optimizer", True, False, "stalled",
            ("a: stalled, unchanged at all 4 records. Cause: no optimizer that makes steps has them. "
            "Add them to the optimizer's parameters, or freeze them if that is meant"),
        ),
        (
            "weight_decay", True, False, "stalled",
            ("a: stalled, idle at all 4 records. Cause: only weight decay moves them: their "
            "gradient is exactly zero"),
        ),
        (
            "of a later version", False, True, "stalled",
            "a: stalled, unchanged at all 4 records. Cause: of a later version",
        ),
    ],
)  # fmt: skip
def test_the_cause_of_standing_still_is_in_the_sentence(
    cause: str, proven: bool, closed: bool, kind: str, text: str
) -> None:
    still = layer("a", stalled=[4, 4, 4, 4])._replace(cause=cause, proven=proven)
    (found,) = findings([run(still, closed=closed)])
    assert (found.kind, found.text) == (kind, text)
    assert (
        found.cause == (cause or ("unknown" if kind == "stalled" else None)) or cause == "unknown"
    )


def test_each_cause_of_standing_still_is_a_finding() -> None:
    causes = {"a": "rounded", "b": "no_gradient", "c": "rounded"}
    layers = [layer(name, stalled=[4] * 4)._replace(cause=c) for name, c in causes.items()]
    found = findings([run(*layers)])
    assert {each.cause: each.layers for each in found} == {
        "rounded": ("a", "c"), "no_gradient": ("b",),
    }  # fmt: skip


def test_statistics_of_frozen_layers_are_one_sentence() -> None:
    moved = [MovedStatistics("n1", 4, 20, 30), MovedStatistics("n2", 2, 10, 40, "n2/mean")]
    (found,) = findings([run(layer("n1"), last=40)._replace(layers=(), statistics=moved)])
    assert (found.kind, found.severity, found.channels, found.first_step) == (
        "statistics", "harm", 6, 10,
    )  # fmt: skip
    assert (found.layer, found.variable) == ("n2", "n2/mean")
    assert found.text == (
        "n1 and n2: statistics moved while the weights were frozen, since step 10. Call frozen layers "
        "in inference mode: training=False, or eval() in PyTorch"
    )


def test_while_training_goes_on_nothing_is_stalled() -> None:
    still, rest = layer("dense", stalled=[4, 4, 4, 4]), layer("new", unchanged=[2, 2])
    (found,) = findings([run(still, rest, last=40, closed=False)])[1:]
    assert (found.kind, found.severity, found.channels) == ("unchanged", "fact", 6)
    assert found.text == "6 of 8 channels of dense and new: unchanged at all 2 to 4 records"
    mixed = layer("mixed", stalled=[0, 2, 2, 2], unchanged=[0, 0, 1, 1])
    (found,) = findings([run(mixed, closed=False)])
    assert (found.channels, found.numbers["of"]) == (3, 4)
    assert found.text == (
        "3 of 4 channels of mixed: unchanged at the last 2 records, from step 30 on, some from step 20 on"
    )


def test_rows_of_an_embedding_that_never_changed_are_a_fact_of_their_own() -> None:
    (found,) = findings([run(layer("tokens", rows=[3, 3, 3, 3]))])
    assert (found.kind, found.severity) == ("rows", "fact")
    assert found.text == "3 of 4 rows of tokens: unchanged at all 4 records"
    assert (found.layer, found.channel) == ("tokens", 0)  # others move
    (found,) = findings([run(*(layer(name, rows=[3] * 4) for name in ("tokens", "places")))])
    assert (found.layer, found.channel) == (None, None)


def test_a_finding_cant_be_changed() -> None:
    finding = Finding("frozen", None, ("a",), ("dense",), 3, 50, {"of": 4}, "dense: frozen")
    with pytest.raises(FrozenInstanceError):
        finding.kind = "pruned"  # type: ignore[misc]
    assert len({finding, replace(finding), replace(finding, first_step=60)}) == 2

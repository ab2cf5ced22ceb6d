"""What there is to know of runs, from facts made by hand."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_pastnet.core import channel_states
from tb_pastnet.core.account import Account
from tb_pastnet.core.findings import KINDS, Finding, LayerFacts, RunFacts, Violated, findings

CHANNELS = 4


def layer(name: str, **at: list[int]) -> LayerFacts:
    """A layer of four channels, a record each ten steps; the channels left over are moving.

    The first channels are in the first state that is given, those after them in the next one.
    """
    records = len(next(iter(at.values())))
    state = np.full((records, CHANNELS), channel_states.MOVING)
    for record in range(records):
        named = [s for s, numbers in at.items() if s != "stalled" for _ in range(numbers[record])]
        state[record, : len(named)] = [channel_states.NAMES.index(name) for name in named]
    return of_states(name, state, np.array(at.get("stalled", [0] * records)))


def of_states(name: str, state: np.ndarray, stalled: np.ndarray) -> LayerFacts:
    """Facts of channels in some states, (records, channels), the first of which stand still."""
    steps = 10 * np.arange(1, len(state) + 1)
    codes = range(len(channel_states.NAMES))
    counts = np.stack([(state == code).sum(axis=1) for code in codes], axis=1).astype(np.uint32)
    moving = np.where(counts[:, channel_states.MOVING] > 0, 0.5, np.nan).astype(np.float32)
    flags = {
        kind: state == channel_states.NAMES.index(kind)
        for kind in ("nonfinite", "frozen", "pruned")
    } | {"stalled": np.arange(state.shape[1]) < stalled[:, None]}
    each = {kind: channel_states.lasting(own, steps) for kind, own in flags.items()}
    lasting = {kind: own for kind, own in each.items() if own is not None}
    return LayerFacts(name, state.shape[1], steps, counts, moving, lasting)


def run(*layers: LayerFacts, name: str = "a", last: int = 40) -> RunFacts:
    return RunFacts(name, last, layers)


def kinds(found: list[Finding]) -> list[str]:
    return [one.kind for one in found]


def test_a_whole_layer_is_frozen_since_the_first_record_at_which_it_is() -> None:
    (found,) = findings([run(layer("conv1", frozen=[0, 0, 4, 4]))])
    assert (found.kind, found.run, found.layers) == ("frozen", "a", ("conv1",))
    assert (found.step, found.channels) == (30, 4)
    assert found.text == "conv1 frozen since step 30"
    assert (found.view, found.shown_run, found.layer) == ("layer", "a", "conv1")


@pytest.mark.parametrize(
    ("at", "text"),
    [
        ([0, 0, 3, 3], "3 of 4 channels of conv1 pruned since step 30"),
        ([0, 1, 3, 3], "conv1: first pruned at step 20 (channel 0); 3 of 4 channels since step 30"),
        ([2, 0, 4, 4], "conv1: first pruned at step 10 (2 channels); all 4 channels since step 30"),
        ([0, 3, 2, 2], "2 of 4 channels of conv1 pruned since step 20"),
        (
            [0, 3, 2, 3],
            "conv1: first pruned at step 20 (3 channels); 3 of 4 channels since step 40",
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
        assert one.step == 10 * (np.flatnonzero(at)[0] + 1)
        assert one.channels == at[-1]


def test_what_began_together_is_one_finding() -> None:
    names = ["a1", "a2", "a3", "a4", "a5"]
    (found,) = findings([run(*(layer(name, frozen=[0, 0, 4, 4]) for name in names))])
    assert found.text == "a1, a2, a3 and 2 more layers frozen since step 30"
    assert (found.layers, found.channels, found.layer) == (tuple(names), 20, None)
    assert found.view == "network"


def test_settled_layers_are_one_finding_that_says_when_each_did() -> None:
    some = [
        layer("late", quiet=[0, 0, 4, 4]),
        layer("mixed", quiet=[0, 1, 1, 1], frozen=[0, 3, 3, 3]),
        layer("moving", quiet=[3, 3, 3, 3]),
        layer("held", frozen=[4, 4, 4, 4]),
    ]
    found = {one.kind: one for one in findings([run(*some)])}
    assert found["quiet"].text == (
        "All channels quiet, frozen or pruned: mixed since step 20 and late since step 30"
    )
    assert found["quiet"].layers == ("mixed", "late")
    assert found["quiet"].step == 20


def test_a_stalled_layer_isnt_settled_too() -> None:
    still = layer("dead", quiet=[4, 4, 4, 4], stalled=[0, 2, 2, 2])
    slow = layer("slow", quiet=[4, 4, 4, 4])
    assert {one.kind: one.layers for one in findings([run(still, slow)])} == {
        "stalled": ("dead",),
        "quiet": ("slow",),
    }


def test_no_channel_with_nan_is_settled() -> None:
    (found,) = findings([run(layer("conv1", quiet=[4, 4, 3, 3], nonfinite=[0, 0, 1, 1]))])
    assert found.kind == "nonfinite"


def test_a_layer_that_is_reactivated_at_last_is_neither_frozen_nor_settled() -> None:
    assert findings([run(layer("conv1", frozen=[4, 4, 4, 0], reactivated=[0, 0, 0, 4]))]) == []


def test_a_channel_counts_once_however_many_of_its_variables_changed() -> None:
    kernel = Violated("conv1", "conv1/kernel", 2, 506, 600, "weight_decay")
    others = [kernel._replace(variable="conv1/bias"), kernel._replace(layer="conv2")]
    (found,) = findings([RunFacts("a", 600, [], [kernel, *others])])
    assert found.channels == 2


def test_violations_are_grouped_by_cause() -> None:
    some = [
        Violated("conv1", "conv1/kernel", 2, 506, 600, "weight_decay"),
        Violated("conv1", "conv1/kernel", 2, 700, 1000, "weight_decay"),
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
    assert (found[1].layer, found[1].channel, found[1].step) == ("conv1", 2, 506)


def test_lost_records_and_layers_without_records_are_named() -> None:
    silent = layer("gone", frozen=[0, 0])
    never = layer("never", frozen=[])
    account = Account(100, shown=90, dropped=7, unreadable=3)
    full = layer("conv1", frozen=[0, 0, 0, 0])
    found = findings([RunFacts("a", 40, [full, silent, never], account=account)])
    assert [(one.kind, one.text) for one in found if one.kind != "moves_most"] == [
        ("unreadable", "3 of 100 records can't be read"),
        ("dropped", "7 of 100 records were dropped before they were written"),
        ("silent", "gone: no record after step 20; the run is at 40"),
        ("silent", "never: no record; the run is at 40"),
    ]


def test_a_run_without_records_has_none() -> None:
    assert findings([RunFacts("a", None, [layer("never", frozen=[])])]) == []
    assert findings([]) == []


def test_stalled_and_non_finite_channels_come_before_what_was_meant() -> None:
    still = layer("dense", stalled=[0, 3, 3, 3])
    late = layer("late", stalled=[0, 1, 1, 4])
    broken = layer("conv1", frozen=[1, 1, 1, 1], nonfinite=[0, 0, 2, 2])
    found = [one for one in findings([run(still, late, broken)]) if one.kind != "moves_most"]
    assert [one.text for one in found] == [
        "2 of 4 channels of conv1 NaN or infinite since step 30",
        (
            "3 of 4 channels of dense stalled since step 20: trainable, but unchanged at 3 recorded "
            "steps"
        ),
        (
            "late: first stalled at step 20 (channel 0); all 4 channels since step 40: trainable, but "
            "unchanged at 1 recorded step"
        ),
        "1 of 4 channels of conv1 frozen since step 10",
    ]


def test_the_layer_that_moves_most_is_named_where_there_are_several() -> None:
    calm = layer("calm", frozen=[0, 0])
    wild = calm._replace(id="wild", mean_delta=np.array([0.1, 0.75], np.float32))
    assert findings([run(wild, last=20)]) == []
    (found,) = findings([run(calm, wild, last=20)])
    assert (found.layers, found.value, found.step) == (("wild",), 0.75, 20)
    assert found.text == "wild moves the most at step 20: mean relative delta 0.75"


def test_the_run_that_freezes_first_is_named_where_several_freeze() -> None:
    early = run(layer("conv1", frozen=[0, 4, 0, 0]), name="early")
    late = run(layer("conv1", frozen=[0, 0, 4, 4]), name="late")
    never = run(layer("conv1", frozen=[0, 0, 0, 0]), name="never")
    assert "freezes_first" not in kinds(findings([early, never]))
    found = [one for one in findings([late, never, early]) if one.run is None]
    assert [one.text for one in found] == [
        "early freezes first: conv1 at step 20; the next at step 30"
    ]
    assert found[0].shown_run == "early"


@given(st.data())
def test_all_that_is_said_of_a_layer_can_be_read_off_its_channels(data: st.DataObject) -> None:
    codes = st.integers(0, len(channel_states.NAMES) - 1)
    records, channels = data.draw(st.tuples(st.integers(1, 6), st.integers(1, 5)))
    state = np.array(data.draw(st.lists(codes, min_size=records * channels, max_size=99)))
    state = state[: records * channels].reshape(records, channels)
    found = findings([run(of_states("conv1", state, np.zeros(records)), last=10 * records)])
    for kind in ("frozen", "pruned", "nonfinite"):
        told = [one for one in found if one.kind == kind]
        rows = (state == channel_states.NAMES.index(kind)).tolist()
        assert len(told) == any(rows[-1])
        for one in told:
            first = next(10 * at for at, row in enumerate(rows, 1) if any(row))
            now = [channel for channel in range(channels) if rows[-1][channel]]
            since = next(
                10 * at
                for at in range(1, records + 1)
                if all(row[channel] for row in rows[at - 1 :] for channel in now)
            )
            assert (one.step, one.channels) == (first, len(now))
            assert f"since step {since}" in one.text
            assert ("first" in one.text) == (first < since)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_rank(kind: str) -> None:
    assert KINDS.count(kind) == 1


def test_a_finding_cant_be_changed() -> None:
    finding = Finding("quiet", "a", ("dense",), 50, 3, None, "Quiet since step 50")
    with pytest.raises(FrozenInstanceError):
        finding.kind = "frozen"  # type: ignore[misc]
    assert len({finding, replace(finding), replace(finding, step=60)}) == 2

"""Exact figures of all layers, against plain loops over the records that were written."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorboard import errors

from tb_pastnet.core import channel_states
from tb_pastnet.core import statistics as s
from tb_pastnet.core.quantize import NAN, ZERO
from tb_pastnet.format.tags import channels_tag
from tb_pastnet.reader import notes
from tb_pastnet.reader.figures import Figures, StepSpan, figures_of, newest
from tb_pastnet.reader.overview import overview_csv
from tb_pastnet.reader.run_summary import RunSummary, summary_of, tallies_of
from tb_pastnet.reader.store import Store
from tests import event_files as files
from tests.providers import CALLER, MemoryProvider, memory_run
from tests.slow_states import slow_states

LAYERS = {"narrow": 4, "block/wide": 6, "late": 3}
STEPS = [*range(2, 40, 2), *range(40, 60, 5)]
RECORDS = len(STEPS)
TWELVE = {f"layer{at}": 50 for at in range(12)}


def known(codes: np.ndarray, steps: list[int], threshold: float) -> list[dict[str, object]]:
    """What there is to tell of each record of a kernel."""
    at = np.array(steps)
    told = slow_states(codes, at, at - 1, kernel=True, threshold=threshold)
    found = []
    for t in range(len(steps)):
        moving = [
            c
            for c in range(codes.shape[2])
            if told[t, c] & channel_states.STATE == channel_states.MOVING
        ]
        deltas = [
            2.0 ** (min(int(codes[s.DELTA_NORM, t, c]) - int(codes[s.PAST_NORM, t, c]), 0) / 16)
            for c in moving
        ]
        counts = [0] * len(channel_states.NAMES)
        for one in told[t]:
            counts[one & channel_states.STATE] += 1
        found.append(
            {
                "counts": counts,
                "violated": sum(bool(one & channel_states.VIOLATED) for one in told[t]),
                "mean_delta": float(np.mean(deltas)) if deltas else np.nan,
            }
        )
    return found


@dataclass
class Written:
    """A run whose layers have records at different steps."""

    provider: MemoryProvider = field(default_factory=MemoryProvider)
    codes: dict[str, np.ndarray] = field(default_factory=dict)
    steps: dict[str, list[int]] = field(default_factory=dict)

    def figures(self, threshold: float = 1e-4) -> Figures:
        store = Store(self.provider)
        return figures_of(store.reader(CALLER, store.catalog(CALLER).runs["a"]), threshold)

    def shown(self, layer: str) -> list[int]:
        """The steps of a layer's records that have past values, or NaN or infinity."""
        has_state = self.codes[layer][s.PAST_NORM] != NAN
        has_state |= self.codes[layer][s.NONFINITE] != ZERO
        return np.array(self.steps[layer])[has_state.any(axis=1)].tolist()

    def at(self, layer: str, step: int, threshold: float) -> tuple[dict[str, object], int]:
        """What is known of a layer at its newest record at or before a step, and its age."""
        past = [one for one in self.shown(layer) if one <= step]
        if not past:
            counts = [LAYERS[layer], *[0] * (len(channel_states.NAMES) - 1)]
            none = {"counts": counts, "violated": 0, "mean_delta": np.nan}
            return none, 0
        record = self.steps[layer].index(past[-1])
        return known(self.codes[layer], self.steps[layer], threshold)[record], step - past[-1]


@pytest.fixture(params=[0, 1, 2])
def written(request: pytest.FixtureRequest) -> Written:
    """Every layer lacks some records; the last one begins late."""
    rng = np.random.default_rng(request.param)
    made = Written()
    writer = memory_run(made.provider, "a", range(0), layers=LAYERS, block=1)
    kernels = {layer: files.codes(STEPS, width) for layer, width in LAYERS.items()}
    files.freeze(kernels["narrow"], slice(6, 12), slice(0, 2))
    kernels["narrow"][s.CHANGED, 9, 1] = 0
    files.prune(kernels["block/wide"], slice(9, None), slice(1, 4))
    files.poison(kernels["block/wide"], slice(3, 6), slice(5, 6))
    kernels["late"][s.DELTA_NORM, 5:15, 0] = ZERO
    for at in (8, 9, RECORDS - 1):  # without past values
        kernels["late"][s.OF_PAST, at] = NAN
    writer.records(STEPS, {f"{layer}/kernel": codes for layer, codes in kernels.items()})
    for layer, lost in (("narrow", []), ("block/wide", [0, 1]), ("late", list(range(7)))):
        missing = set(lost) | set(rng.choice(np.arange(2, RECORDS), 5, replace=False).tolist())
        keep = [at for at in range(RECORDS) if at not in missing]
        if layer == "narrow":
            keep = [at for at in range(RECORDS) if at != 4]
        events = made.provider.tree[writer.tb_run][channels_tag(f"{layer}/kernel")]
        events[:] = [events[at] for at in keep]
        made.codes[layer] = kernels[layer][:, keep]
        made.steps[layer] = [STEPS[at] for at in keep]
    return made


@pytest.mark.parametrize("threshold", [1e-4, 0.03, 0.0])
def test_a_block_tells_of_each_layer_its_newest_record_and_its_age(
    written: Written, threshold: float
) -> None:
    figures = written.figures(threshold)
    header, arrays, _ = figures.block(STEPS[-1], 64)
    assert header["layers"] == list(LAYERS)
    assert header["channels"] == list(LAYERS.values())
    assert (header["run"], header["threshold"], header["past"]) == ("a", threshold, "previous")
    assert arrays["steps"].tolist() == STEPS
    assert arrays["age"].any()
    for row, layer in enumerate(LAYERS):
        for at, step in enumerate(STEPS):
            right, age = written.at(layer, step, threshold)
            where = f"{layer} at {step}"
            assert arrays["age"][row, at] == age, where
            assert arrays["counts"][row, at].tolist() == right["counts"], where
            assert arrays["violated"][row, at] == right["violated"], where
            np.testing.assert_allclose(
                arrays["mean_delta"][row, at], right["mean_delta"], rtol=1e-6, err_msg=where
            )


def test_its_own_rows_have_no_data_where_a_layer_lacks_the_record(written: Written) -> None:
    figures = written.figures()
    marks = figures.states.violated
    rows = zip(figures.states.counts, figures.states.mean_delta, marks, LAYERS.items(), strict=True)
    for counts, mean_delta, marked, (layer, width) in rows:
        own = np.isin(STEPS, written.shown(layer))
        assert (counts[:, channel_states.NO_DATA] == np.where(own, 0, width)).all()
        assert (counts.sum(axis=1) == width).all()
        assert np.isnan(mean_delta[~own]).all()
        assert not marked[~own].any()
    assert figures.states.counts.dtype == np.uint32


def test_a_block_holds_the_record_in_force_and_blocks_are_those_of_the_whole(
    written: Written,
) -> None:
    figures = written.figures()
    _, whole, _ = figures.block(0, 64)
    for count in (1, 3, 8, 64):
        for step in (-5, 0, 2, 3, 17, 18, 39, 44, 55, 10**15):
            _, arrays, _ = figures.block(step, count)
            record = max(sum(one <= step for one in STEPS) - 1, 0)
            first = record - record % count
            assert arrays["steps"].tolist() == STEPS[first : first + count]
            for name in ("age", "counts", "violated", "mean_delta", "pruned"):
                part = whole[name][:, first : first + count]
                np.testing.assert_array_equal(arrays[name], part, f"{name} at {step}")


def test_wall_times_and_learning_rates_are_nan_where_the_timeline_is_lost() -> None:
    provider = MemoryProvider()
    writer = memory_run(provider, "a", range(1, 33))
    provider.tree[writer.tb_run]["timeline"].pop()
    _, arrays, _ = Written(provider).figures().block(32, 64)
    assert arrays["steps"].tolist() == list(range(1, 33))
    times, rates = arrays["wall_times"], arrays["learning_rates"]
    assert times[:16].tolist() == [files.CREATED + step for step in range(1, 17)]
    np.testing.assert_allclose(rates[:16], 0.1, rtol=1e-6)
    assert np.isnan(times[16:]).all()
    assert np.isnan(rates[16:]).all()


def test_an_age_may_be_as_large_as_steps_are() -> None:
    provider = MemoryProvider()
    writer = memory_run(provider, "a", range(0), block=1)
    writer.records([1, 10**12])
    provider.tree[writer.tb_run][channels_tag("block/conv2/kernel")].pop()
    _, arrays, _ = Written(provider).figures().block(10**12, 64)
    assert arrays["age"].tolist() == [[0, 0], [0, 10**12 - 1]]


def test_counts_come_in_the_smallest_type_that_holds_them() -> None:
    provider = MemoryProvider()
    memory_run(provider, "a", range(1, 5), layers={"narrow": 3, "wide": 300})
    _, arrays, _ = Written(provider).figures().block(4, 64)
    names = ("age", "counts", "violated", "pruned")
    assert [arrays[name].dtype.str for name in names] == ["|u1", "<u2", "|u1", "|u1"]
    assert arrays["counts"][:, 0, channel_states.MOVING].tolist() == [3, 300]


def test_a_run_without_layers_and_one_without_records() -> None:
    provider = MemoryProvider()
    memory_run(provider, "a", range(1, 5), layers={})
    figures = Written(provider).figures()
    _, arrays, _ = figures.block(2, 64)
    assert (arrays["counts"].shape, arrays["age"].shape) == ((0, 4, 8), (0, 4))
    assert "".join(overview_csv(figures)).count("\n") == 1
    provider = MemoryProvider()
    memory_run(provider, "a", range(0))
    _, arrays, _ = Written(provider).figures().block(2, 64)
    assert (arrays["counts"].shape, arrays["steps"].shape) == ((2, 0, 8), (0,))


def test_a_part_is_of_the_steps_from_one_to_another() -> None:
    steps = np.array([0, 2, 4, 6])
    for part, right in (
        (StepSpan(), [0, 2, 4, 6]),
        (StepSpan(first=1), [2, 4, 6]),
        (StepSpan(last=4), [0, 2, 4]),
        (StepSpan(2, 4), [2, 4]),
        (StepSpan(3, 3), []),
        (StepSpan(first=-9, last=99), [0, 2, 4, 6]),
        (StepSpan(first=7), []),
    ):
        assert steps[part.of(steps)].tolist() == right


@pytest.fixture
def provider() -> MemoryProvider:
    provider = MemoryProvider()
    memory_run(provider, "a", range(1, 101), layers=TWELVE)
    return provider


def test_another_threshold_reads_nothing_where_no_records_fit_into_the_cache() -> None:
    provider = MemoryProvider()
    memory_run(provider, "a", range(1, 101), layers=dict.fromkeys(TWELVE, 200))
    records = 100 * 200 * len(TWELVE) * 3  # bytes of their states and relative deltas
    # Three fifths are for records.
    store = Store(provider, ceiling=records * 3 // 2, fresh_for=0)
    run = store.catalog(CALLER).runs["a"]
    first = figures_of(store.reader(CALLER, run), 1e-4)
    count = len(provider.reads)
    quiet = [
        int(figures.states.counts[:, :, 3].sum())
        for figures in (first, *(figures_of(store.reader(CALLER, run), th) for th in (0.07, 1.0)))
    ]
    assert quiet[0] == 0
    assert quiet[0] < quiet[1] < quiet[2]
    assert len(provider.reads) == count


def test_it_is_made_anew_when_the_run_grew() -> None:
    provider = MemoryProvider()
    writer = memory_run(provider, "a", range(1, 33))
    store = Store(provider, fresh_for=0)

    def of() -> RunSummary:
        return summary_of(store.reader(CALLER, store.catalog(CALLER).runs["a"]))

    assert of() is of()
    assert of().steps.tolist() == list(range(1, 33))
    writer.records(range(33, 65))
    assert of().steps.tolist() == list(range(1, 65))


def test_places_tell_the_record_of_each_layer_at_each_step() -> None:
    provider = MemoryProvider()
    writer = memory_run(provider, "a", range(1, 33))
    del provider.tree[writer.tb_run]["channels/block/conv2/kernel"][0]
    store = Store(provider)
    reader = store.reader(CALLER, store.catalog(CALLER).runs["a"])
    found = summary_of(reader)
    assert [one.tolist() for one in found.rows] == [
        list(range(32)),
        [-1] * 16 + list(range(16)),
    ]
    tallies = {own.layers.tolist()[0]: own.tally.records for own in tallies_of(reader).tallies}
    assert tallies == {0: 32, 1: 16}


def test_every_variable_is_read_once(provider: MemoryProvider) -> None:
    store = Store(provider, fresh_for=0)
    run = store.catalog(CALLER).runs["a"]
    before = len(provider.reads)
    summary_of(store.reader(CALLER, run))
    asked = [tag for _, tags, _ in provider.reads[before:] for tag in tags]
    assert sorted(asked) == sorted(channels_tag(f"{layer}/kernel") for layer in TWELVE)


def test_what_was_withheld_is_asked_for_again(provider: MemoryProvider) -> None:
    store = Store(provider, fresh_for=0)
    run = store.catalog(CALLER).runs["a"]
    (tb_run,) = run.tb_runs
    provider.broken = {f"{tb_run}/{channels_tag('layer3/kernel')}"}
    broken = summary_of(store.reader(CALLER, run))
    assert broken.notes == {notes.WITHHELD: 1}
    provider.broken = set()
    whole = summary_of(store.reader(CALLER, run))
    assert not whole.notes
    assert figures_of(store.reader(CALLER, run), 1e-4).states.counts[3, :, 1].sum() > 0


def test_the_size_of_tallies_is_what_they_hold(provider: MemoryProvider) -> None:
    store = Store(provider, fresh_for=0)
    found = tallies_of(store.reader(CALLER, store.catalog(CALLER).runs["a"]))
    records, channels = len(found.summary.steps), sum(TWELVE.values())
    held = 2 * 2 * records * channels + 9 * records * len(TWELVE)  # limits, deltas; counts
    assert held < found.size < 2 * held + 4096 * len(TWELVE)
    assert store.large.held >= found.size > store.small.held


def test_figures_stay_at_hand_where_the_tallies_of_no_run_fit() -> None:
    provider = MemoryProvider()
    memory_run(provider, "a", range(1, 301), layers=dict.fromkeys(TWELVE, 200))
    store = Store(provider, fresh_for=0)
    run = store.catalog(CALLER).runs["a"]
    tallies = tallies_of(store.reader(CALLER, run)).size
    store = Store(provider, ceiling=tallies, fresh_for=0)  # three fifths are for what is large
    first = figures_of(store.reader(CALLER, run), 1e-4)
    count = len(provider.reads)
    second = figures_of(store.reader(CALLER, run), 1e-4)
    assert len(provider.reads) == count
    assert (first.states.counts == second.states.counts).all()
    assert store.small.held < tallies / 5


def test_a_refusal_of_tensorboard_reaches_the_caller(
    provider: MemoryProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(provider, fresh_for=0)
    run = store.catalog(CALLER).runs["a"]

    def refuse(*_: object, **__: object) -> None:
        raise errors.PermissionDeniedError("no")

    with monkeypatch.context() as patch:
        patch.setattr(provider, "read_tensors", refuse)
        with pytest.raises(errors.PermissionDeniedError):
            summary_of(store.reader(CALLER, run))
    assert len(summary_of(store.reader(CALLER, run)).steps) == 100


@given(st.data(), st.integers(1, 3), st.integers(1, 9))
def test_the_newest_record_with_a_flag_is_that_of_a_search_backwards(data, layers, records):
    size = layers * records
    drawn = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    flags = np.array(drawn).reshape(layers, records)
    first = data.draw(st.integers(0, records - 1))
    part = slice(first, data.draw(st.integers(first + 1, records)))
    expected = [
        [max((at for at in range(record + 1) if own[at]), default=record)
         for record in range(part.start, part.stop)]
        for own in flags
    ]  # fmt: skip
    assert newest(lambda some: flags[:, some], part).tolist() == expected

"""Messages of a probe joined: lineages, retries, places that come and go, and bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from tb_pastnet.format.function_change import (
    FunctionChange,
    Input,
    Place,
    encode_function_change,
)
from tb_pastnet.format.tags import TAG_FUNCTION
from tb_pastnet.reader import function_series as function
from tb_pastnet.reader import notes
from tb_pastnet.reader.function_series import FunctionSeries, make_function
from tb_pastnet.reader.series_source import ALL, SeriesVersion, StoredMessage, most_events
from tests import probed
from tests.unit.reader.test_runs import lineage

HEAD, OTHER = Place("output", "head", 3), Place("layer", "other", 7)


def message(change: FunctionChange, writer: int = 1) -> StoredMessage:
    step = int(change.steps[-1])
    return StoredMessage(
        step,
        0.0,
        encode_function_change(change, tag=TAG_FUNCTION, step=step, lineage=writer),
    )


def make(*changes: FunctionChange, **more: object) -> FunctionSeries:
    """Of one lineage of 40 steps."""
    return make_all({1: (range(40), changes)}, **more)


def make_all(
    written: Mapping[int, tuple[range, tuple[FunctionChange, ...]]], **more: object
) -> FunctionSeries:
    """Of lineages by ordinal, each of some steps."""
    lineages = [lineage(ordinal, steps, {"x": 2}) for ordinal, (steps, _) in written.items()]
    readings = {
        (f"r{ordinal}", TAG_FUNCTION): [message(one, ordinal) for one in changes]
        for ordinal, (_, changes) in written.items()
    }
    return make_function(lineages, readings, **more)  # type: ignore[arg-type]


def values_at(series: FunctionSeries, step: int) -> np.ndarray:
    """(4, places) of one record."""
    return series.values[:, :, series.steps.tolist().index(step)]


def test_messages_are_joined_in_order() -> None:
    found = make(probed.change(range(16)), probed.change(range(16, 20), 16))
    assert (found.places, found.probe) == (probed.PLACES, probed.PROBE)
    assert found.steps.tolist() == list(range(20))
    assert found.past_steps.tolist() == list(range(-1, 19))
    np.testing.assert_array_equal(found.values, probed.values(range(20)).transpose(0, 2, 1))
    assert (found.values.dtype, found.values.shape) == (np.float32, (4, 3, 20))
    assert (found.changed, found.notes) == ((), {})


def test_without_a_message_there_is_nothing() -> None:
    found = make()
    assert (found.probe, found.places, found.values.shape) == ((), (), (4, 0, 0))
    assert (len(found.steps), found.changed, found.notes) == (0, (), {})
    assert make_function([], {}).values.shape == (4, 0, 0)


def test_a_message_that_was_written_twice_counts_once() -> None:
    first, second = probed.change(range(4)), probed.change(range(4, 6), 4)
    assert make(first, second, first, second).steps.tolist() == list(range(6))


def test_steps_that_go_back_inside_a_lineage_are_left_out() -> None:
    found = make(probed.change([5, 9]), probed.change([7, 12], 2))
    assert found.steps.tolist() == [5, 9, 12]
    np.testing.assert_array_equal(values_at(found, 12), probed.values([12])[:, 0])


def test_a_later_lineage_replaces_records_from_its_first_step_on() -> None:
    one, two = probed.change(range(40)), probed.change(range(30, 50), seed=5)
    found = make_all({1: (range(40), (one,)), 2: (range(30, 50), (two,))})
    assert found.steps.tolist() == list(range(50))
    np.testing.assert_array_equal(values_at(found, 29), probed.values([29])[:, 0])
    np.testing.assert_array_equal(values_at(found, 30), probed.values([30], seed=5)[:, 0])


def test_a_later_lineage_without_a_probe_replaces_as_well() -> None:
    found = make_all({1: (range(40), (probed.change(range(40)),)), 2: (range(30, 50), ())})
    assert found.steps.tolist() == list(range(30))


def test_a_later_lineage_whose_timeline_is_lost_replaces_from_where_it_says_that_it_begins() -> (
    None
):
    readings = {("r1", TAG_FUNCTION): [message(probed.change(range(40)))]}
    first = lineage(1, range(40), {"x": 2})
    for stored in (("x/kernel",), ()):
        second = lineage(2, range(30, 30), {"x": 2}, stored=stored)
        found = make_function([first, second], readings)
        assert found.steps.tolist() == list(range(30))


def test_places_are_joined_by_kind_and_name_in_the_order_of_first_sight() -> None:
    grown = replace(probed.PLACES[1], elements=999)
    swapped = (OTHER, HEAD, grown)
    one, two = probed.change(range(10)), probed.change(range(10, 12), places=swapped, seed=2)
    found = make_all({1: (range(10), (one,)), 2: (range(10, 12), (two,))})
    assert found.places == (probed.PLACES[0], grown, probed.PLACES[2], OTHER, HEAD)
    np.testing.assert_array_equal(values_at(found, 9)[:, :3], probed.values([9])[:, 0])
    assert np.isnan(values_at(found, 9)[:, 3:]).all()
    new = values_at(found, 11)
    np.testing.assert_array_equal(new[:, [3, 4, 1]], probed.values([11], seed=2)[:, 0])
    assert np.isnan(new[:, [0, 2]]).all()


def test_a_layer_and_an_output_of_one_name_are_two_places() -> None:
    places = (Place("layer", "head", 3), HEAD)
    assert make(probed.change([3], places=places)).places == places


def test_a_place_of_superseded_records_alone_is_no_place() -> None:
    one = probed.change(range(20, 30), 20, places=(OTHER,))
    two = probed.change(range(15, 25))
    found = make_all({1: (range(30), (one,)), 2: (range(15, 25), (two,))})
    assert found.places == probed.PLACES


def test_changes_of_the_probe_are_told() -> None:
    # The same but for its values.
    wide = (replace(probed.PROBE[0], digest="5a0d"),)
    found = make_all(
        {
            1: (range(10), (probed.change(range(10)),)),
            2: (range(6, 20), (probed.change(range(6, 14), probe=wide),
                               probed.change(range(14, 16), 8, probe=wide),
                               probed.change(range(16, 20), 10))),
        }
    )  # fmt: skip
    assert (found.changed, found.probe) == ((6, 16), probed.PROBE)


def test_changes_of_the_probe_are_told_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function, "MOST_CHANGES", 3)
    probes = [(Input("", (n + 1,), "int8"),) for n in range(9)]
    found = make(*(probed.change([n], n, probe=one) for n, one in enumerate(probes)))
    assert (found.changed, found.probe) == ((1, 2, 3), probes[-1])


def test_what_cant_be_read_is_counted_by_its_cause() -> None:
    good = message(probed.change([1, 2]))
    assert good.data is not None
    newer = good._replace(data=good.data[:4] + b"\x09" + good.data[5:])
    moved, foreign = good._replace(step=3), good._replace(data=b"not ours")
    readings = {("r1", TAG_FUNCTION): [moved, newer, good, foreign, good._replace(data=None)]}
    found = make_function([lineage(1, range(5))], readings)
    assert found.steps.tolist() == [1, 2]
    assert found.notes == {notes.DAMAGED: 1, notes.NEWER: 1, notes.FOREIGN: 2}


def test_a_message_of_another_writer_is_damaged() -> None:
    readings = {("r1", TAG_FUNCTION): [message(probed.change([1]), writer=2)]}
    assert make_function([lineage(1, range(5))], readings).notes == {notes.DAMAGED: 1}


def test_records_that_lack_values_are_counted_where_there_was_a_probe() -> None:
    one = replace(lineage(1, range(20)), versions={TAG_FUNCTION: SeriesVersion(0, "", b"")})
    two = lineage(2, range(10, 30))
    readings = {("r1", TAG_FUNCTION): [message(probed.change([0, 1, 2]))]}
    # From step 10 on the other lineage stands, which had none.
    assert make_function([one, two], readings).notes == {notes.FUNCTION_MISSING: 7}
    assert make_function([one], readings).notes == {notes.FUNCTION_MISSING: 17}
    assert make_function([one], {}, withheld=["r1"]).notes == {notes.WITHHELD: 1}
    assert make_function([one], {}, sampled=True).notes == {notes.FUNCTION_TOO_MANY: 1}


def test_what_was_withheld_is_noted() -> None:
    assert make(withheld=["r1", "r2"]).notes == {notes.WITHHELD: 2}


def test_of_too_many_records_every_second_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function, "MOST_CELLS", 30)
    changes = [probed.change(range(at, at + 8), at) for at in range(0, 32, 8)]
    for some in (changes, changes[::-1]):
        found = make(*some)
        assert found.steps.tolist() == list(range(0, 32, 4))
        assert found.notes == {notes.FUNCTION_TOO_MANY: 24}
        np.testing.assert_array_equal(found.values[:, :, 1], probed.values([4])[:, 0])
    assert not make(probed.change(range(10))).notes


def test_records_that_all_have_one_number_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function, "MOST_CELLS", 12)
    found = make_all({n: (range(n, n + 1), (probed.change([n]),)) for n in range(1, 100)})
    assert 0 < len(found.steps) <= 4
    assert found.notes[notes.FUNCTION_TOO_MANY] == 99 - len(found.steps)


def test_places_without_end_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function, "MOST_PLACES", 4)
    strangers = [Place("layer", f"x{n}", 1) for n in range(2)]
    found = make(
        probed.change([1, 2]),
        probed.change([3, 4], 2, places=strangers),
        probed.change([5], 4, places=[OTHER]),
    )
    assert found.steps.tolist() == [1, 2, 5]
    assert found.places == (*probed.PLACES, OTHER)
    assert found.notes == {notes.FUNCTION_TOO_MANY: 2}


def test_how_much_one_call_can_carry() -> None:
    cells = function.MOST_CELLS
    assert most_events(1000, 1000, cells) == ALL
    assert most_events(2 * cells // 500, 500, cells) == ALL
    # 16 records an event.
    assert most_events(8_000, 10_000, cells) == 2 * cells // 160_000
    assert most_events(1, 1 << 60, cells) == 1
    assert make(sampled=True).notes == {notes.FUNCTION_TOO_MANY: 1}


def test_its_size_counts_what_it_holds() -> None:
    found = make(probed.change(range(20)))
    assert found.size == 4 * 4 * 3 * 20 + 2 * 8 * 20 + 512 * 3

"""Which pairs are compared, over which layers, and why not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tb_pastnet.format.block import Block, encode_block
from tb_pastnet.format.description import Series, encode_series
from tb_pastnet.format.tags import TAG_MASKS, TAG_TIMELINE, mask_tag
from tb_pastnet.reader import notes
from tb_pastnet.reader.catalog import Catalog
from tb_pastnet.reader.overlap_views import MaskComparison, overlap_layers_view, overlap_view
from tb_pastnet.reader.store import Store
from tests import event_files as files
from tests.providers import CALLER, MemoryProvider, MemoryWriter, memory_run

LAYERS = {"c": 4, "d": 2}
EVERY = np.arange(36)
UNITS = ["weights", "channels"]


def ask(
    store: Store, *names: str, step: int | None = None, catalog: Catalog | None = None, **more: Any
) -> dict[str, Any]:
    runs = (catalog or store.catalog(CALLER)).runs
    readers = [store.reader(CALLER, runs[name]) for name in names]
    unit, mask = more.pop("unit", "weights"), more.pop("mask", "kept")
    body, lost = overlap_view(MaskComparison(readers, unit, mask, **more), step)
    assert (notes.WITHHELD in lost) == (notes.WITHHELD in str(body["notes"]))
    return body


def over_steps(
    store: Store, one: str, other: str, most: int = 64, *, step: int | None = None, **more: Any
) -> Any:
    runs = store.catalog(CALLER).runs
    readers = [store.reader(CALLER, runs[name]) for name in (one, other)]
    unit, mask = more.pop("unit", "weights"), more.pop("mask", "kept")
    return overlap_layers_view(MaskComparison(readers, unit, mask), most, step)[:2]


def three(provider: MemoryProvider) -> list[MemoryWriter]:
    """Runs of which every second, third and fourth weight of one layer is kept from step 4 on."""
    made = []
    for at, name in enumerate("abc"):
        writer = memory_run(provider, name, range(1, 11), lineage=at + 1, layers=LAYERS)
        writer.masks(4, {("kept", "c/kernel"): EVERY % (at + 2) == 0})
        made.append(writer)
    return made


def flipped(array: np.ndarray) -> np.ndarray:
    """The same with one bit of its last byte changed."""
    return np.frombuffer(array.tobytes()[:-1] + bytes([array[-1] ^ 1]), np.uint8)


def reasons(body: dict[str, Any]) -> list[str | None]:
    assert all(pair["comparable"] == (pair["reason"] is None) for pair in body["pairs"])
    assert all((pair["overlap"] is None) != pair["comparable"] for pair in body["pairs"])
    return [pair["reason"] for pair in body["pairs"]]


def test_a_damaged_log_leaves_the_other_pairs_as_they_are() -> None:
    provider = MemoryProvider()
    three(provider)
    whole = ask(Store(provider), "a", "b", "c")
    assert [(p["intersection"], p["union"]) for p in whole["pairs"]] == [
        (6 + 18, 24 + 18), (9 + 18, 18 + 18), (3 + 18, 18 + 18),
    ]  # fmt: skip
    (tag,) = (run for run in provider.tree if run.startswith("a/"))
    step, wall, array, content = provider.tree[tag][TAG_MASKS][0]
    provider.tree[tag][TAG_MASKS][0] = (step, wall, flipped(array), content)
    body = ask(Store(provider), "a", "b", "c")
    assert reasons(body) == ["unknown", "unknown", None]
    assert body["pairs"][2] == whole["pairs"][2]
    assert [run["kept"] for run in body["runs"]] == [None, 12 + 18, 9 + 18]
    assert notes.DAMAGED in {one["text"] for one in body["notes"]}


def test_bits_that_are_lost_leave_the_size_known() -> None:
    provider = MemoryProvider()
    writers = three(provider)
    provider.tree[writers[1].tb_run][mask_tag("kept", "c/kernel")].clear()
    body = ask(Store(provider), "a", "b", "c")
    assert reasons(body) == ["unknown", None, "unknown"]
    assert [run["kept"] for run in body["runs"]] == [36, 30, 27]
    # Before the masks changed there is nothing to read.
    assert reasons(ask(Store(provider), "a", "b", "c", step=3)) == [None] * 3
    header, arrays = over_steps(Store(provider), "a", "b")
    assert header["comparable"]
    assert arrays["both"][0].tolist()[:3] == [36] * 3
    for name in ("both", "overlap", "chance"):
        assert np.isnan(arrays[name][0, 3:]).all()
        assert not np.isnan(arrays[name][1]).any()
    assert arrays["other_kept"][0].tolist() == [36] * 3 + [12] * 7
    provider.tree[writers[2].tb_run][mask_tag("kept", "c/kernel")].clear()
    assert reasons(ask(Store(provider), "a", "b", "c")) == ["unknown"] * 3


def test_what_was_withheld_is_asked_for_again() -> None:
    provider = MemoryProvider()
    writers = three(provider)
    store = Store(provider)
    whole = ask(Store(provider), "a", "b")
    provider.broken = {f"{writers[0].tb_run}/{mask_tag('kept', 'c/kernel')}"}
    assert reasons(ask(store, "a", "b")) == ["unknown"]
    provider.broken = set()
    assert ask(store, "a", "b") == whole


def test_between_two_changes_nothing_is_read_again() -> None:
    provider = MemoryProvider()
    writers = three(provider)
    store = Store(provider, fresh_for=0)
    first = ask(store, "a", "b", "c", step=5)
    tags = {mask_tag("kept", "c/kernel")}
    count = sum(bool(tags & set(read)) for _, read, _ in provider.reads)
    assert count == 1
    for step in (4, 7, 10):
        body = ask(store, "a", "b", "c", step=step)
        assert body["pairs"] == first["pairs"]
        assert [run["step"] for run in body["runs"]] == [step] * 3
    writers[0].records(range(11, 15))
    assert ask(store, "a", "b", "c", step=10)["pairs"] == first["pairs"]
    assert sum(bool(tags & set(read)) for _, read, _ in provider.reads) == count
    writers[0].masks(12, {("kept", "c/kernel"): EVERY < 3})
    assert ask(store, "a", "b", "c", step=5) == first
    assert sum(bool(tags & set(read)) for _, read, _ in provider.reads) == count + 1


@pytest.mark.parametrize("unit", UNITS)
def test_a_run_is_there_from_its_first_record_on(unit: str) -> None:
    provider = MemoryProvider()
    memory_run(provider, "a", range(1, 31), layers=LAYERS)
    memory_run(provider, "b", range(5, 16, 5), layers=LAYERS)
    memory_run(provider, "c", range(0), layers=LAYERS)
    store = Store(provider)
    told = {step: ask(store, "a", "b", step=step, unit=unit) for step in (4, 5, 9, 15, 19, 20)}
    steps = {step: body["runs"][1]["step"] for step, body in told.items()}
    assert steps == {4: None, 5: 5, 9: 5, 15: 15, 19: 15, 20: 15}
    for step, body in told.items():
        assert reasons(body) == ["no record" if steps[step] is None else None]
        assert (body["runs"][1]["kept"] is None) == (steps[step] is None)
        assert body["runs"][1]["elements"] == (54 if unit == "weights" else 6)
    # Without a step each is at its own last record.
    body = ask(store, "a", "b", "c", unit=unit)
    assert [run["step"] for run in body["runs"]] == [30, 15, None]
    assert reasons(body) == [None, "no record", "no record"]


@pytest.mark.parametrize(("step", "at"), [(0, [0, None]), (3, [3, 3]), (9, [4, 4])])
def test_each_runs_record_at_a_step_is_named(step: int, at: list[int | None]) -> None:
    provider = MemoryProvider()
    memory_run(provider, "a", range(5), layers=LAYERS)
    memory_run(provider, "b", range(1, 5), layers=LAYERS, lineage=2)
    header, _ = over_steps(Store(provider), "a", "b", step=step)
    assert header["at"] == at


@pytest.mark.parametrize("unit", UNITS)
def test_runs_without_an_origin_or_a_layer_in_common_are_told_apart(unit: str) -> None:
    provider = MemoryProvider()
    memory_run(provider, "a", range(1, 4), layers=LAYERS)
    memory_run(provider, "b", range(1, 4), layers=LAYERS, origin="")
    memory_run(provider, "c", range(1, 4), layers={"x": 4})
    memory_run(provider, "d", range(1, 4), layers={"c": 5, "d": 2})
    body = ask(Store(provider), "a", "b", "c", "d", unit=unit)
    assert reasons(body) == ["origin", "layers", None, "origin", "origin", "layers"]
    counts = [(pair["layers"], pair["unmatched"]) for pair in body["pairs"]]
    assert counts == [(2, 0), (0, 3), (1, 1), (0, 3), (1, 1), (0, 3)]
    header, _ = over_steps(Store(provider), "a", "d", unit=unit)
    assert (header["layers"], header["unmatched"]) == (["d"], ["c"])
    header, arrays = over_steps(Store(provider), "a", "b", unit=unit)
    assert (header["comparable"], header["reason"]) == (False, "origin")
    assert np.isnan(arrays["both"]).all()
    assert not np.isnan(arrays["kept"]).any()
    header, arrays = over_steps(Store(provider), "c", "a", unit=unit)
    assert (header["reason"], header["unmatched"]) == ("layers", ["x", "c", "d"])
    assert arrays["overlap"].shape == (0, 3)


def test_of_runs_that_share_no_origin_no_masks_are_read() -> None:
    provider = MemoryProvider()
    for at, name in enumerate("ab"):
        writer = memory_run(provider, name, range(1, 11), layers=LAYERS, origin=name)
        writer.masks(4, {("kept", "c/kernel"): EVERY % (at + 2) == 0})
    body = ask(Store(provider), "a", "b")
    over_steps(Store(provider), "a", "b")
    assert [run["kept"] for run in body["runs"]] == [36, 30]
    assert not [tags for _, tags, _ in provider.reads if mask_tag("kept", "c/kernel") in tags]


def test_only_what_can_be_pruned_counts_in_weights() -> None:
    """Layers that are drawn by their bias: those that were ever pruned count, a pair at a time."""
    provider = MemoryProvider()
    bias = {("kept", "d/bias"): np.array([True, False])}
    for name in "abc":
        writer = memory_run(provider, name, range(1, 6), layers=LAYERS)
        if name == "b":
            writer.masks(3, bias)
    store = Store(provider)
    runs = store.catalog(CALLER).runs
    drawn = {
        name: replace(
            run, layers=(run.layers[0], replace(run.layers[1], main="d/bias"))
        )
        for name, run in runs.items()
    }  # fmt: skip
    body = ask(store, "a", "b", "c", catalog=Catalog(drawn, ()))
    assert [run["elements"] for run in body["runs"]] == [36, 38, 36]
    assert [pair["layers"] for pair in body["pairs"]] == [2, 1, 2]
    assert [(p["intersection"], p["union"]) for p in body["pairs"]] == [
        (37, 38),
        (36, 36),
        (37, 38),
    ]
    body = ask(store, "a", "c", catalog=Catalog(drawn, ()), unit="channels")
    assert [run["elements"] for run in body["runs"]] == [6, 6]


@pytest.mark.parametrize("unit", UNITS)
def test_a_variable_that_two_layers_share_counts_once(unit: str) -> None:
    provider = MemoryProvider()
    three(provider)
    store = Store(provider)
    runs = {
        name: replace(run, layers=(*run.layers, replace(run.layers[0], id="again")))
        for name, run in store.catalog(CALLER).runs.items()
    }
    shared = Catalog(runs, ())
    once = ask(Store(provider), "a", "b", unit=unit)
    assert ask(store, "a", "b", unit=unit, catalog=shared) == once
    again, first = (
        ask(store, "a", "b", unit=unit, catalog=shared, layer=id_) for id_ in ("again", "c")
    )
    assert again == {**first, "layer": "again"}


@pytest.mark.parametrize("unit", UNITS)
def test_a_layer_that_a_run_was_resumed_without_is_no_longer_there(unit: str) -> None:
    provider = MemoryProvider()
    memory_run(provider, "a", range(1, 21), layers=LAYERS)
    memory_run(provider, "b", range(1, 11), layers=LAYERS)
    memory_run(
        provider, "b", range(11, 21), layers={"c": 4}, ordinal=2, lineage=7, first_step=11
    )  # fmt: skip
    store = Store(provider)
    for step, layers, unmatched in ((10, 2, 0), (11, 1, 1)):
        body = ask(store, "a", "b", step=step, unit=unit)
        assert reasons(body) == [None]
        (pair,) = body["pairs"]
        assert (pair["layers"], pair["unmatched"]) == (layers, unmatched)
        assert pair["union"] == body["runs"][1]["kept"] == body["runs"][1]["elements"]
    _, arrays = over_steps(store, "a", "b", unit=unit)
    assert np.isnan(arrays["other_kept"][1]).tolist() == [False] * 10 + [True] * 10
    assert not np.isnan(arrays["kept"]).any()


@pytest.mark.parametrize("unit", UNITS)
def test_where_the_timeline_is_lost_records_tell_the_steps(unit: str) -> None:
    provider = MemoryProvider()
    writers = three(provider)
    right = ask(Store(provider), "a", "b", unit=unit)
    provider.tree[writers[0].tb_run][TAG_TIMELINE] = [(10, 0.0, np.zeros(3, np.uint8), b"")]
    body = ask(Store(provider), "a", "b", unit=unit)
    assert {**body, "notes": []} == right
    assert body["notes"]


@pytest.mark.parametrize("unit", UNITS)
def test_of_a_users_own_writer_nothing_is_known_of_single_weights(unit: str) -> None:
    provider = MemoryProvider()
    for name in "ab":
        for step in (1, 2):
            at = np.array([step])
            codes = files.prune(files.codes([step], 3), slice(None), slice(0, 1))
            data = encode_block(Block(at, at, at, codes), tag="l/kernel", lineage=0)
            provider.add(name, "l/kernel", step, data, encode_series(Series((2, 3), "-1", 3)))
    body = ask(Store(provider), "a", "b", unit=unit)
    assert [run["step"] for run in body["runs"]] == [2, 2]
    assert [run["kept"] for run in body["runs"]] == [None if unit == "weights" else 2] * 2
    assert reasons(body) == ["origin"]


@pytest.mark.parametrize("unit", UNITS)
def test_runs_without_any_record_have_no_columns(unit: str) -> None:
    provider = MemoryProvider()
    for name in "ab":
        memory_run(provider, name, range(0), layers=LAYERS)
    header, arrays = over_steps(Store(provider), "a", "b", unit=unit)
    assert header["comparable"]
    assert arrays["overlap"].shape == (2, 0)
    assert arrays["steps"].shape == (0,)

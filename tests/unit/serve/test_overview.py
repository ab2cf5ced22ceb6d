from __future__ import annotations

import numpy as np

from tb_pastnet.core.states import MOVING, NO_DATA
from tb_pastnet.serve.http.container import unpack
from tb_pastnet.serve.store.store import Store
from tb_pastnet.serve.views.digest import Part
from tb_pastnet.serve.views.index import index_of
from tb_pastnet.serve.views.overview import Overview, make_overview
from tb_pastnet.serve.views.rows import Row, stack, total
from tests.providers import CALLER, MemoryProvider, memory_run


def overview(provider: MemoryProvider, most: int | None, run: str = "a") -> Overview:
    store = Store(provider)
    return make_overview(store, CALLER, store.catalog(CALLER).runs[run], 1e-4, Part(most))


def test_each_record_is_a_column_where_there_is_room() -> None:
    provider = MemoryProvider()
    memory_run(provider, "a", range(1, 21))
    found = overview(provider, 64)
    assert found.digest.first_steps.tolist() == found.digest.steps.tolist() == list(range(1, 21))
    assert [row.counts[:, MOVING].tolist() for row in found.rows] == [[4] * 20, [6] * 20]


def test_columns_are_even_ranges_of_steps() -> None:
    provider = MemoryProvider()
    memory_run(provider, "a", range(100))
    found = overview(provider, 4)
    assert found.digest.first_steps.tolist() == [0, 25, 50, 75]
    assert found.digest.steps.tolist() == [24, 49, 74, 99]
    header, arrays = unpack(found.container())
    assert arrays["wall_times"].tolist() == [arrays["wall_times"][0] + 25 * n for n in range(4)]
    assert header["layers"] == ["conv1", "block/conv2"]


def test_a_part_of_the_steps_is_split_as_the_whole_is() -> None:
    provider = MemoryProvider()
    memory_run(provider, "a", range(0, 200, 2))
    store = Store(provider)
    run = store.catalog(CALLER).runs["a"]
    found = make_overview(store, CALLER, run, 1e-4, Part(4, first=41, last=80))
    # Of the steps 42 to 80, in quarters.
    assert found.digest.first_steps.tolist() == [42, 52, 62, 72]
    assert found.digest.steps.tolist() == [50, 60, 70, 80]
    assert found.rows[0].counts.sum(axis=1).tolist() == [4, 4, 4, 4]
    for part in (Part(4, last=6), Part(4, first=-9, last=6)):
        first = make_overview(store, CALLER, run, 1e-4, part)
        assert first.digest.steps.tolist() == [0, 2, 4, 6]
    nowhere = make_overview(store, CALLER, run, 1e-4, Part(4, first=1000))
    assert nowhere.digest.steps.tolist() == []
    assert [row.counts.shape for row in nowhere.rows] == [(0, 6), (0, 6)]


def test_a_layer_without_a_record_has_no_data_there() -> None:
    provider = MemoryProvider()
    writer = memory_run(provider, "a", range(1, 33))
    del provider.tree[writer.tb_run]["channels/block/conv2/kernel"][0]
    found = overview(provider, 64)
    assert found.rows[1].counts[:, NO_DATA].tolist() == [6] * 16 + [0] * 16
    assert found.digest.accounts[1].unreadable == 16


def test_where_the_timeline_ends_early_the_first_layer_knows_the_steps() -> None:
    provider = MemoryProvider()
    writer = memory_run(provider, "a", range(1, 33))
    provider.tree[writer.tb_run]["timeline"].pop()
    found = overview(provider, 64)
    assert found.digest.steps.tolist() == list(range(1, 33))
    assert np.isnan(unpack(found.container())[1]["wall_times"][16:]).all()


def test_counts_come_in_the_smallest_type_that_holds_them() -> None:
    provider = MemoryProvider()
    memory_run(provider, "a", range(1, 5), layers={"narrow": 3, "wide": 300})
    _, arrays = unpack(overview(provider, 64).container())
    assert [arrays[name].dtype.str for name in ("counts", "violated", "pruned")] == [
        "<u2",
        "|u1",
        "|u1",
    ]
    assert arrays["counts"][:, 0, MOVING].tolist() == [3, 300]


def test_a_run_without_layers_is_an_empty_picture() -> None:
    provider = MemoryProvider()
    memory_run(provider, "a", range(1, 5), layers={})
    found = overview(provider, 64)
    _, arrays = unpack(found.container())
    assert arrays["counts"].shape == (0, 4, 6)
    assert found.table().count("\n") == 1


def test_a_run_of_which_only_the_description_is_there_is_in_the_index() -> None:
    provider = MemoryProvider()
    memory_run(provider, "a", range(0))
    (run,) = index_of(Store(provider).catalog(CALLER))["runs"]
    assert (run["records"], run["first_step"], run["last_step"]) == (0, None, None)
    assert run["wall_time"] == [None, None]
    _, arrays = unpack(overview(provider, 64).container())
    assert arrays["counts"].shape == (2, 0, 6)


def test_all_layers_are_added_up() -> None:
    provider = MemoryProvider()
    memory_run(provider, "a", range(1, 5), layers={"narrow": 3, "wide": 300})
    _, arrays = unpack(overview(provider, 64).container())
    for name in ("counts", "violated", "nonfinite", "pruned"):
        assert np.array_equal(arrays[f"total_{name}"], arrays[name].sum(axis=0)), name
    # Weighted by the channels that move.
    deltas, moving = arrays["mean_delta"].astype(np.float64), arrays["counts"][..., MOVING]
    assert moving[:, 0].tolist() == [3, 300]
    expected = (3 * deltas[0] + 300 * deltas[1]) / 303
    assert np.allclose(arrays["total_mean_delta"], expected, rtol=1e-6)


def test_where_nothing_moves_there_is_no_mean() -> None:
    counts = np.zeros((2, 6), np.uint32)
    counts[1, MOVING] = 4
    none = np.zeros(2, np.uint32)
    rows = [Row(counts, none, none, np.array([np.nan, delta], np.float32)) for delta in (0.5, 0.25)]
    assert total(stack(rows, 2))["mean_delta"].tolist()[1] == 0.375
    assert np.isnan(total(stack(rows, 2))["mean_delta"][0])
    assert np.isnan(total(stack([], 2))["mean_delta"]).all()

"""Masks in both loaders: exact counts, restarts, and a log that was damaged."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard import context

from tb_pastnet.format.envelope import Kind, seal
from tb_pastnet.format.tags import TAG_MASKS, mask_tag
from tb_pastnet.reader import notes
from tb_pastnet.reader.figures import figures_of
from tb_pastnet.reader.series_source import RequestContext
from tb_pastnet.reader.store import Store
from tests import event_files as files
from tests.both_loaders import in_both
from tests.masks_in_force import masks_in_force
from tests.tensorboards import LOADERS, Board, board

CALLER = RequestContext(context.RequestContext(), "")
LAYERS = {"conv1": 4, "block/conv2": 6}
STEPS = range(1, 41)
Masks = dict[tuple[str, str], np.ndarray]


def size(variable: str) -> int:
    channels = LAYERS[variable.rpartition("/")[0]]
    return 9 * channels if variable.endswith("kernel") else channels


def schedule(seed: int) -> Iterator[tuple[int, str, str, np.ndarray]]:
    """Random changes of random masks, several of them at one step."""
    rng = np.random.default_rng(seed)
    variables = ["conv1/kernel", "conv1/bias", "block/conv2/kernel"]
    for step in sorted(rng.integers(0, 41, 60).tolist()):
        variable = str(rng.choice(variables))
        mask = "kept" if rng.random() < 0.7 else "trainable"
        yield step, mask, variable, rng.random(size(variable)) < rng.random()


def replayed(changes: list[tuple[int, str, str, np.ndarray]], step: int) -> Masks:
    """The masks in force at a step."""
    found: Masks = {}
    for at, mask, variable, array in changes:
        if at <= step:
            found[mask, variable] = array
    return found


def write(writer: files.LineageWriter, changes: list[tuple[int, str, str, np.ndarray]]) -> None:
    """Records 1 to 40 with the shares of these masks, and the masks among them."""
    writer.describe(0)
    values = {}
    for variable in ("conv1/kernel", "block/conv2/kernel"):
        channels = LAYERS[variable.rpartition("/")[0]]
        values[variable] = files.codes(STEPS, channels)
        for step in STEPS:
            kept = replayed(changes, step).get(("kept", variable), np.ones(9 * channels, bool))
            files.hold(values[variable], slice(step - 1, step), kept.reshape(9, channels))
    for step, mask, variable, array in changes:
        writer.masks(step, {(mask, variable): array})
    writer.records(STEPS, values)


def pruned_layers(masks: Masks) -> list[int]:
    return [
        sum(int((~m).sum()) for (mask, v), m in masks.items() if mask == "kept" and layer in v)
        for layer in LAYERS
    ]


def test_pruned_weights_are_those_of_an_independent_count(tmp_path: Path) -> None:
    changes = list(schedule(1))
    write(files.LineageWriter(tmp_path, layers=LAYERS), changes)

    def look(here: Board) -> Any:
        header, drawn = here.arrays("/overview", run="a")
        assert header["notes"] == []
        _, arrays = here.arrays("/records", run="a")
        of = np.array([40, 54])
        np.testing.assert_allclose(drawn["pruned"].T, arrays["pruned"].T / of, rtol=1e-6)
        table = here.get("/export.csv", run="a").get_data(as_text=True)
        rows = list(csv.DictReader(table.splitlines()))
        cells = [(int(row["pruned_weights"]), int(row["prunable_weights"])) for row in rows]
        return header["prunable"], arrays["pruned"].T.tolist(), cells

    prunable, pruned, cells = in_both(tmp_path, look)
    right = [pruned_layers(replayed(changes, step)) for step in STEPS]
    # The bias of conv1 was pruned at some time.
    assert prunable == [36 + 4, 54]
    assert pruned == right
    assert cells == [(n, of) for row in right for n, of in zip(row, prunable, strict=True)]


def test_every_mask_is_read_back_bit_by_bit(tmp_path: Path) -> None:
    changes = list(schedule(2))
    write(files.LineageWriter(tmp_path, layers=LAYERS), changes)

    def look(here: Board) -> Any:
        store = Store(here.provider)
        run = store.catalog(CALLER).runs["a"]
        for step in range(0, 42, 4):
            right = replayed(changes, step)
            for variable in run.variables:
                found = masks_in_force(store.reader(CALLER, run), variable, step)
                assert found.unknown == ()
                for mask, flags in (("kept", found.kept), ("trainable", found.trainable)):
                    expected = right.get((mask, variable), np.ones(1, bool))
                    if expected.all():
                        assert flags is None
                    else:
                        np.testing.assert_array_equal(flags, expected)

    in_both(tmp_path, look)


def test_events_tell_each_change_at_its_step(tmp_path: Path) -> None:
    changes = list(schedule(3))
    write(files.LineageWriter(tmp_path, layers=LAYERS), changes)

    def look(here: Board) -> Any:
        header, _ = here.arrays("/layer", run="a", layer="conv1")
        return header["events"]

    assert sorted((one["step"], one["kind"], one["text"]) for one in in_both(tmp_path, look)) == (
        sorted(
            (step, mask, f"{mask} {array.sum()} of 36 weights")
            for step, mask, variable, array in changes
            if variable == "conv1/kernel"
        )
    )


def test_a_restart_takes_the_masks_of_the_later_lineage(tmp_path: Path) -> None:
    half, tenth = np.arange(36) >= 18, np.arange(36) >= 4
    kernel = "conv1/kernel"
    one = files.LineageWriter(tmp_path, ordinal=1, lineage=9)
    one.describe(0)
    one.masks(5, {("kept", kernel): tenth})
    one.masks(32, {("kept", kernel): half})
    values = files.hold(files.codes(STEPS, 4), slice(4, None), tenth.reshape(9, 4))
    one.records(STEPS, {kernel: files.hold(values, slice(31, None), half.reshape(9, 4))})
    two = files.LineageWriter(tmp_path, ordinal=2, lineage=4, first_step=31)
    two.describe(30)
    two.masks(30, {("kept", kernel): tenth})
    again = files.hold(files.codes(range(31, 51), 4), slice(0, None), tenth.reshape(9, 4))
    two.records(range(31, 51), {kernel: again})

    def look(here: Board) -> Any:
        header, _ = here.arrays("/overview", run="a")
        _, arrays = here.arrays("/records", run="a")
        layer, _ = here.arrays("/layer", run="a", layer="conv1")
        kinds = [(event["step"], event["kind"]) for event in layer["events"]]
        return arrays["steps"].tolist(), arrays["pruned"][0].tolist(), header["notes"], kinds

    steps, pruned, said, kinds = in_both(tmp_path, look)
    assert steps == list(range(1, 51))
    assert pruned == [0] * 4 + [4] * 46
    assert (said, kinds) == ([], [(5, "kept"), (31, "restart")])


@pytest.mark.parametrize(
    ("spoil", "note"),
    [
        (lambda message: message[:-1] + bytes([message[-1] ^ 1]), notes.DAMAGED),
        (lambda message: message[:4] + b"\x02" + message[5:], notes.NEWER),
        (lambda _: b"not ours", notes.FOREIGN),
        (lambda _: seal(b"\xff" * 9, Kind.MASKS, tag=TAG_MASKS, step=20, lineage=0x3F9A2C1B),
         notes.DAMAGED),
    ],
    ids=["flipped", "future", "foreign", "sealed nonsense"],
)  # fmt: skip
def test_a_change_that_cant_be_read_is_counted_and_never_guessed(
    tmp_path: Path, spoil: Any, note: str
) -> None:
    kept = np.arange(36) >= 7
    writer = files.LineageWriter(tmp_path)
    writer.describe(0)
    writer.masks(0, {("kept", "conv1/kernel"): np.ones(36, bool)})
    written = writer.put

    def put(tag: str, step: int, message: Any, **more: Any) -> None:
        written(tag, step, spoil(message) if tag == TAG_MASKS else message, **more)

    writer.put = put  # type: ignore[method-assign]
    writer.masks(20, {("kept", "conv1/kernel"): kept})
    writer.put = written  # type: ignore[method-assign]
    codes = files.hold(files.codes(STEPS, 4), slice(19, None), kept.reshape(9, 4))
    writer.records(STEPS, {"conv1/kernel": codes})

    def look(here: Board) -> Any:
        header, _ = here.arrays("/overview", run="a")
        _, arrays = here.arrays("/records", run="a")
        layer, _ = here.arrays("/layer", run="a", layer="conv1")
        assert here.get("/violations", run="a").status_code == 200
        said = {one["text"]: one["count"] for one in header["notes"]}
        kinds = [(event["step"], event["kind"]) for event in layer["events"]]
        return said, arrays["pruned"][0].tolist(), kinds

    said, pruned, kinds = in_both(tmp_path, look)
    assert said == {note: 1}
    # The shares of channels of nine weights are exact.
    assert pruned == [0] * 19 + [7] * 21
    assert kinds == [(20, "trainable")]


BITS = {"kept": np.arange(18) % 3 > 0, "trainable": np.arange(18) % 2 > 0}


def small(logdir: Path) -> tuple[files.LineageWriter, list[range]]:
    """Six records of two channels, pruned and frozen in part, and where masks are in the file."""
    writer = files.LineageWriter(logdir, layers={"c": 2}, block=3)
    writer.describe(0)
    spans = []

    def masks(step: int, found: Masks) -> None:
        start = writer.path.stat().st_size
        writer.masks(step, found)
        spans.append(range(start, writer.path.stat().st_size))

    kept, trainable = BITS["kept"].reshape(9, 2), BITS["trainable"].reshape(9, 2)
    codes = files.hold(files.codes(range(1, 7), 2), slice(1, None), kept, trainable)
    masks(0, {("kept", "c/kernel"): np.ones(18, bool), ("kept", "c/bias"): np.ones(2, bool)})
    masks(2, {(mask, "c/kernel"): BITS[mask] for mask in BITS})
    writer.records(range(1, 4), {"c/kernel": codes})
    half = np.array([True, False])
    masks(4, {("kept", "c/bias"): half})
    bias = files.hold(files.codes(range(4, 7), 2), slice(None), half.reshape(1, 2))
    writer.records(range(4, 7), {"c/kernel": codes[:, 3:], "c/bias": bias})
    writer.close(6)
    return writer, spans


@pytest.mark.parametrize(
    ("bit", "loader", "stride"),
    [
        # Each third byte, and so each bit; the slow loader reads less: it ends a file where a checksum is wrong.
        (0, "fast", 3),
        *(pytest.param(n, one, 1, marks=pytest.mark.prove) for n in range(8) for one in LOADERS),
    ],
)
def test_one_bit_flipped_in_a_mask_never_draws_a_wrong_count(
    tmp_path: Path, loader: str, bit: int, stride: int
) -> None:
    writer, spans = small(tmp_path / "whole")
    data, place = writer.path.read_bytes(), writer.path.relative_to(tmp_path / "whole" / "a")
    for at in (at for span in spans for at in span[::stride]):
        flipped = bytearray(data)
        flipped[at] ^= 1 << ((at + bit) % 8)
        path = tmp_path / "flips" / str(at) / place
        path.parent.mkdir(parents=True)
        path.write_bytes(flipped)
    with board(tmp_path / "flips", loader) as here:
        store = Store(here.provider, fresh_for=3600)
        runs = store.catalog(CALLER).runs
        with ThreadPoolExecutor(8) as threads:
            said = list(threads.map(lambda name: check(store, runs[name], name), runs))
    assert len(said) > 900 // stride
    # The slow loader ends a file at the first wrong checksum, the fast one reads on.
    assert (
        said.count("6 records, noted" if loader == "fast" else "3 records, noted") > 100 // stride
    )


def check(store: Store, run: Any, name: str) -> str:
    """Whatever is drawn of a damaged run is right."""
    found = figures_of(store.reader(CALLER, run), 1e-4)
    if not found.summary.prunable:
        return "nothing"
    right = np.array([0, 6, 6, 7, 7, 7])
    np.testing.assert_array_equal(found.pruned[0], right[found.steps - 1], name)
    if 3 in found.steps:
        check_bits(store, run, name)
    return f"{len(found.steps)} records, {'noted' if found.summary.notes else 'fine'}"


def check_bits(store: Store, run: Any, name: str) -> None:
    found = masks_in_force(store.reader(CALLER, run), "c/kernel", 3)
    for mask, flags in (("kept", found.kept), ("trainable", found.trainable)):
        if mask in found.unknown:
            assert flags is None, name
        else:
            np.testing.assert_array_equal(flags, BITS[mask], name)


def test_the_names_of_masks_are_the_tags(tmp_path: Path) -> None:
    """What the tests above write is what a reader of the format looks for."""
    writer, _ = small(tmp_path)
    with board(tmp_path, "slow") as here:
        tags = Store(here.provider).catalog(CALLER).runs["a"].lineages[0].versions
    assert {TAG_MASKS, mask_tag("kept", "c/kernel"), mask_tag("kept", "c/bias")} <= set(tags)
    assert writer.changes == 5

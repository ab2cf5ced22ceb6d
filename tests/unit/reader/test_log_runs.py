"""A run as a whole, against counts made here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.core.violation import Violation
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.reader.lineage_heads import Lineage
from tests import event_files as files
from tests import probed
from tests.contract.test_own_writer import write_own
from tests.unit.reader.test_records import CODES, KEPT, STEPS

KERNEL = "conv1/kernel"


def test_what_is_known_of_a_run(tmp_path: Path) -> None:
    first = files.LineageWriter(tmp_path, lineage=0xA, past="epoch", every=2)
    first.describe(0)
    first.records(range(1, 11), notes={"slow disk": 2, "full": 3})
    files.write_run(tmp_path, steps=range(6, 16), ordinal=2, lineage=0xB, past="7")
    run = pastnet.read(tmp_path).runs["a"]
    assert (run.name, run.source, run.origin, run.past, run.every) == ("a", "sink", "9c1e", "7", 1)
    assert run.closed is True
    assert run.lineages == (
        Lineage("0000000a", 1, 1, 10, False),
        Lineage("0000000b", 2, 6, 15, True),
    )
    assert run.steps.tolist() == list(range(1, 16))
    times = [files.CREATED + step + files.LATER * (step > 5) for step in run.steps]
    assert run.wall_times.tolist() == times
    assert run.learning_rates.tolist() == [0.1] * 15
    assert (run.account.offered, run.account.shown, run.account.superseded) == (20, 15, 5)
    assert list(run.notes.items()) == [("full", 3), ("slow disk", 2)]
    assert run.skipped == {"count": "dtype int32"}
    assert list(run.layers) == ["conv1", "block/conv2"]
    assert list(run.variables)[:2] == ["conv1/kernel", "conv1/bias"]
    assert run.layers["conv2"].type == "Conv2D"
    assert run.variables["conv2/bias"].layer == "block/conv2"
    assert (run.layers["conv2"].group, run.layers["conv2"].name) == ("block", "conv2")
    assert repr(run) == "Run('a', 15 records, steps 1 to 15, 2 layers)"


def test_the_overview_counts_channels(tmp_path: Path) -> None:
    writer = files.LineageWriter(tmp_path)
    writer.describe(0)
    writer.masks(6, {("kept", KERNEL): KEPT})
    writer.records(STEPS, {KERNEL: CODES})
    run = pastnet.read(tmp_path).runs["a"]
    made = run.overview(threshold=0)
    assert (made.layers, made.threshold) == (("conv1", "block/conv2"), 0)
    assert made.steps.tolist() == list(STEPS)
    assert made.channels.tolist() == [4, 6]
    states = run.layers["conv1"].states(threshold=0)
    for name in ("moving", "reactivated", "quiet", "frozen", "pruned"):
        found = getattr(made, name)
        assert (found.dtype, found.shape) == (np.int64, (30, 2))
        np.testing.assert_array_equal(found[:, 0], (states == name).sum(axis=1), name)
    assert made.moving[:, 1].tolist() == [6] * 30
    assert made.nonfinite[:, 0].tolist() == [0, 0, 1, 1] + [0] * 16 + [1, 1] + [0] * 8
    delta = np.minimum(run.layers["conv1"].relative_delta, 1)
    right = [row[names == "moving"].mean() for row, names in zip(delta, states, strict=True)]
    np.testing.assert_allclose(made.mean_delta[:, 0], right, rtol=1e-6)
    # One of four channels of 36 weights; the other layer has 54.
    assert made.pruned_weights[:, 0].tolist() == [0] * 5 + [9] * 25
    assert made.prunable_weights.tolist() == [36, 54]
    np.testing.assert_array_equal(run.sparsity, [0] * 5 + [9 / 90] * 25)
    assert repr(made) == "Overview(30 records of 2 layers)"


def test_sparsity_goes_with_the_steps_where_the_timeline_is_lost(tmp_path: Path) -> None:
    writer = files.LineageWriter(tmp_path)
    writer.describe(0)
    writer.records(range(1, 33))
    # The last timeline is torn off, the records before it are whole.
    writer.path.write_bytes(writer.path.read_bytes()[:-7])
    run = pastnet.read(tmp_path).runs["a"]
    assert len(run.overview().steps) == 32
    assert len(run.sparsity) == len(run.steps) == 16


def test_without_a_weight_that_can_be_pruned_sparsity_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = files.network

    def biases(layers: dict[str, int]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        made, variables = network(layers)
        bare = tuple(
            replace(one, variables=one.variables[1:], main=one.variables[1]) for one in made
        )
        return bare, tuple(one for one in variables if one.role == "bias")

    monkeypatch.setattr(files, "network", biases)
    files.write_run(tmp_path, steps=range(1, 4))
    run = pastnet.read(tmp_path).runs["a"]
    assert run.overview().prunable_weights.tolist() == [0, 0]
    assert np.isnan(run.sparsity).tolist() == [True] * 3


def test_violations_come_in_order_and_all_of_them(tmp_path: Path) -> None:
    writer = files.LineageWriter(tmp_path, layers={"wide": 5000})
    writer.describe(0, audited=True)
    moved = [Violation("wide/kernel", at, 3, 3, 1, 9, 0.5, "ema") for at in range(5000)]
    late = Violation("wide/bias", 7, 2, 4, 1, 1, float("inf"), "not known yet")
    writer.violations(4, [*moved, late])
    writer.records(range(1, 5))
    found = pastnet.read(tmp_path).runs["a"].violations
    assert [one.channel for one in found] == [7, *range(5000)]
    assert (found[0].variable, found[0].largest, found[0].cause) == (
        "wide/bias",
        float("inf"),
        "not known yet",
    )


@pytest.mark.parametrize("records", [1, 8])
def test_the_function_is_what_was_written(tmp_path: Path, records: int) -> None:
    steps = range(1, records + 1)
    writer = files.LineageWriter(tmp_path)
    writer.describe(0)
    probed.written(writer, steps)
    writer.records(steps)
    made = pastnet.read(tmp_path).runs["a"].function
    right = probed.values(steps)
    for name, values in zip(("relative", "cosine", "divergence", "decisions"), right, strict=True):
        found = getattr(made, name)
        assert (found.dtype, found.shape) == (np.float32, (records, 3))
        np.testing.assert_array_equal(found, values)
        found[...] = 7
        np.testing.assert_array_equal(getattr(made, name), values)
    assert (made.steps.tolist(), made.past_steps.tolist()) == (list(steps), list(range(records)))
    assert (made.places, made.probe, made.changed) == (probed.PLACES, probed.PROBE, ())
    assert repr(made) == f"Function({records} records of 3 places)"


def test_a_run_without_a_probe_has_no_places(tmp_path: Path) -> None:
    files.write_run(tmp_path)
    made = pastnet.read(tmp_path).runs["a"].function
    assert (made.places, made.probe, made.relative.shape) == ((), (), (0, 0))


def test_a_users_own_writer_is_a_run(tmp_path: Path) -> None:
    write_own(tmp_path, "mine", [1, 2, 3])
    run = pastnet.read(tmp_path).runs["mine"]
    assert (run.source, run.every, run.origin, run.closed) == ("summary", None, "", False)
    assert (run.lineages, dict(run.skipped)) == ((), {})
    layer = run.layers["dense0"]
    assert (layer.id, layer.steps.tolist()) == ("train/dense0", [1, 2, 3])
    masks = layer.masks(2)
    assert (masks.kept, masks.trainable) == (None, None)


@pytest.mark.parametrize("elements", [1 << 20, 1 << 40])
def test_a_hostile_shape_allocates_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elements: int
) -> None:
    from tb_pastnet.format import description

    encode = description.asdict

    def grown(told: description.Description) -> dict[str, object]:
        made = encode(told)
        for one in made["variables"]:
            one["shape"] = [elements, one["channels"]]
        return made

    monkeypatch.setattr(description, "asdict", grown)
    files.write_run(tmp_path, steps=range(1, 5))
    layer = pastnet.read(tmp_path).runs["a"].layers["conv1"]
    assert layer.shape == (elements, 4)
    kept = layer.masks(2).kept
    assert kept is None if elements > 1 << 28 else kept is not None and kept.all()


def test_an_overview_of_the_latest_records_needs_some(tmp_path: Path) -> None:
    files.write_run(tmp_path, steps=range(1, 31))
    run = pastnet.read(tmp_path).runs["a"]
    assert run.overview(latest=2).steps.tolist() == [29, 30]
    assert repr(run.overview(latest=99)) == "Overview(30 records of 2 layers)"
    with pytest.raises(
        InvalidArgument,
        match=r"Could not make an overview of 'a': expected latest= a whole number from 1 on, got 0\. "
        r"Leave it out for all records\.",
    ):
        run.overview(latest=0)
    for latest in (2.0, "3", True):
        with pytest.raises(InvalidArgument, match="expected latest= a whole number"):
            run.overview(latest=latest)  # type: ignore[arg-type]

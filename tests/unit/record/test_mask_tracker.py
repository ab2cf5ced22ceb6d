"""Masks in a record: each change when it happens, complete, and the shares of each channel."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tb_pastnet import Masks, PastNetCallback, Recorder
from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.statistics import KEPT, TRAINABLE
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.layers.masked import MaskedDense
from tb_pastnet.record.mask_tracker import _share
from tests.recorded import read_lineages, read_one

KERNEL = "dense/kernel"


def variables():
    return {KERNEL: tf.Variable(np.arange(1.0, 9.0, dtype=np.float32).reshape(4, 2))}


def masked(log):
    """Step, variable, mask and bits of each change."""
    return [
        (change.step, change.variable, change.mask, log.masks[number].flags.tolist())
        for number, change in sorted(log.changes.items())
    ]


def test_a_change_is_written_with_the_first_step_that_has_it(tmp_path):
    model = variables()
    masks = Masks(model, enforce=False)
    kept = np.array([[1, 1], [0, 1], [1, 0], [1, 1]])
    with Recorder(tmp_path, model, every=10, masks=masks, initial_step=0) as recorder:
        for step in range(1, 21):
            if step == 4:
                masks.prune(KERNEL, kept=kept)
            if step == 7:
                masks.freeze(KERNEL, channels=[1])
            recorder.record(step)
    log = read_one(tmp_path)
    trainable = (np.array([[1, 0]] * 4) | (1 - kept)).astype(bool)
    assert masked(log) == [
        (4, KERNEL, "kept", kept.astype(bool).ravel().tolist()),
        (7, KERNEL, "trainable", trainable.ravel().tolist()),
    ]
    values = log.values(KERNEL)
    np.testing.assert_allclose(values[:, KEPT], [[1, 1], *[[0.75, 0.75]] * 2], rtol=0.022)
    np.testing.assert_allclose(values[:, TRAINABLE], [[1, 1], *[[0.75, 0]] * 2], rtol=0.022)


def test_shares_count_flags_and_masks_together(tmp_path):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2), keras.layers.Dense(2)])
    masks = Masks(model, enforce=False)
    masks.freeze(KERNEL, trainable=np.array([[0, 1]] * 2 + [[1, 1]] * 2))
    model.layers[1].trainable = False
    with Recorder(tmp_path, model, every=1, initial_step=0) as recorder:
        recorder.record(1)
    log = read_one(tmp_path)
    np.testing.assert_allclose(log.values(KERNEL)[0, TRAINABLE], [0.5, 1], rtol=0.022)
    assert log.values(KERNEL)[0, TRAINABLE, 1] == 1
    assert log.values("dense_1/kernel")[0, TRAINABLE].tolist() == [0, 0]
    assert log.values(KERNEL)[0, KEPT].tolist() == [1, 1]


def test_masks_that_come_while_it_is_recorded(tmp_path):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    with Recorder(tmp_path, model, every=1, initial_step=0) as recorder:
        recorder.record(1)
        masks = Masks(model, enforce=False)
        masks.prune(KERNEL, channels=[0])
        recorder.record(2)
    log = read_one(tmp_path)
    assert [(step, mask) for step, _, mask, _ in masked(log)] == [(2, "kept")]
    assert log.values(KERNEL)[:, KEPT].tolist() == [[1, 1], [0, 1]]
    assert masks.state.origin == log.description.origin


def test_a_change_after_the_last_step_counts_from_the_next_one(tmp_path):
    model = variables()
    masks = Masks(model, enforce=False)
    with Recorder(tmp_path, model, every=1, masks=masks, initial_step=0) as recorder:
        recorder.record(1)
        masks.prune(KERNEL, channels=[0])
        assert recorder.flush()
        masks.regrow(KERNEL)
    log = read_one(tmp_path)
    assert [(step, sum(bits)) for step, _, _, bits in masked(log)] == [(2, 4), (2, 8)]


def test_a_new_lineage_begins_with_all_masks(tmp_path):
    model = variables()
    masks = Masks(model, enforce=False)
    masks.prune(KERNEL, channels=[0])
    with Recorder(tmp_path, model, every=1, masks=masks, initial_step=0) as recorder:
        recorder.record(5)
        recorder.restart(2)
        recorder.record(3)
    first, second = read_lineages(tmp_path)
    assert [(step, mask) for step, _, mask, _ in masked(first)] == [(5, "kept")]
    assert [(step, mask) for step, _, mask, _ in masked(second)] == [(3, "kept")]


def test_what_changed_back_is_told_as_well(tmp_path):
    model = variables()
    masks = Masks(model, enforce=False)
    with Recorder(tmp_path, model, every=1, masks=masks, initial_step=0) as recorder:
        masks.freeze(KERNEL)
        recorder.record(1)
        masks.thaw(KERNEL)
        recorder.record(2)
        masks.thaw(KERNEL)
        recorder.record(3)
    log = read_one(tmp_path)
    assert [(step, sum(bits)) for step, _, _, bits in masked(log)] == [(1, 0), (2, 8)]


@pytest.mark.parametrize("every", [1, 3])
def test_in_fit_a_schedule_is_recorded_at_its_own_steps(tmp_path, every):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8)])
    model.compile("adam", "mse")
    masks = Masks(model)
    sparsities = {}

    class Prune(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch in (1, 4):
                masks.prune_smallest(0.25 * batch**0.5)
                sparsities[batch + 1] = int(masks.kept[KERNEL].sum())

    record = PastNetCallback(tmp_path, every=every)
    x = np.ones((12, 4), np.float32)
    model.fit(x, x[:, :1], batch_size=2, verbose=0, shuffle=False, callbacks=[Prune(), record])
    record.close()
    log = read_one(tmp_path)
    assert {step: sum(bits) for step, _, _, bits in masked(log)} == sparsities


def test_runs_of_one_model_share_their_origin_through_pruning_and_rewinding(tmp_path):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    with Recorder(tmp_path / "dense", model, initial_step=0, every=1) as recorder:
        recorder.record(1)
    masks = Masks(model)
    snapshot = masks.snapshot()
    x = np.ones((2, 4), np.float32)
    model.fit(x, x[:, :2], verbose=0)
    masks.prune_smallest(0.5)
    masks.rewind(snapshot)
    with Recorder(tmp_path / "round", model, initial_step=0, every=1) as recorder:
        recorder.record(1)
    other = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    with Recorder(tmp_path / "other", other, initial_step=0, every=1) as recorder:
        recorder.record(1)
    dense, again, fresh = (
        read_one(tmp_path / run).description.origin for run in ("dense", "round", "other")
    )
    assert dense == again != fresh


def test_layers_that_own_their_masks(tmp_path):
    model = keras.Sequential([keras.Input((4,)), MaskedDense(2)])
    layer = model.layers[0]
    kernel = "masked_dense/kernel"
    with Recorder(tmp_path / "a", model, every=2, initial_step=0) as recorder:
        recorder.record(1)
        layer.prune_kernel([[1, 0]] * 3 + [[1, 1]])
        layer.freeze_bias([0, 1])
        recorder.record(2)
        recorder.record(3)
        saved = model.get_weights()
        layer.prune_kernel([[1, 1]] * 3 + [[0, 1]])
        recorder.record(5)
        model.set_weights(saved)
        recorder.record(6)
    log = read_one(tmp_path / "a")
    assert [(step, name, mask, sum(bits)) for step, name, mask, bits in masked(log)] == [
        (2, kernel, "kept", 5),
        (2, "masked_dense/bias", "trainable", 1),
        (5, kernel, "kept", 4),
        (6, kernel, "kept", 5),
    ]
    np.testing.assert_allclose(log.values(kernel)[:, KEPT, 1], [1, *[0.25] * 3], rtol=0.022)
    masks = Masks(model, enforce=False)
    assert masks.sparsity() == masks.sparsity("kernel") == 3 / 8
    with pytest.raises(
        InvalidArgument, match=r"expected a weight without masks, got one of a layer"
    ):
        masks.prune("kernel", channels=[0])


def test_a_violation_that_goes_on_is_told_ever_less_often_and_at_the_end(tmp_path, monkeypatch):
    model = variables()
    masks = Masks(model, enforce=False)
    masks.freeze(KERNEL, channels=[1])
    told = []
    with Recorder(tmp_path, model, every=1, masks=masks, initial_step=0) as recorder:
        recorder.record(1)
        sink = recorder._sink
        original = sink.violations
        monkeypatch.setattr(
            sink,
            "violations",
            lambda step, found: (told.append((step, found)), original(step, found)),
        )
        for step in range(2, 41):
            model[KERNEL].assign_add([[0.0, 0.0], [0.0, 1e-3], [0.0, 0.0], [0.0, 0.0]])
            recorder.record(step)
    steps = [step for step, found in told if found]
    assert steps[:4] == [2, 3, 5, 9]
    assert len(steps) < 10
    [violation] = read_one(tmp_path).violations.values()
    assert (violation.variable, violation.channel) == (KERNEL, 1)
    assert (violation.first_step, violation.last_step) == (2, 40)
    assert (violation.elements, violation.held) == (1, 4)
    assert violation.largest == pytest.approx(39e-3, rel=1e-3)


def test_no_audit_where_none_is_asked_for(tmp_path):
    model = variables()
    masks = Masks(model, enforce=False)
    masks.freeze(KERNEL)
    with Recorder(tmp_path, model, every=1, masks=masks, audit=False, initial_step=0) as recorder:
        model[KERNEL].assign_add(np.ones((4, 2)))
        recorder.record(1)
    log = read_one(tmp_path)
    assert not log.violations
    assert not log.description.audited


def test_a_failing_audit_costs_no_record(tmp_path, monkeypatch, caplog):
    model = variables()
    with Recorder(tmp_path, model, every=1, initial_step=0) as recorder:
        for name in ("check", "observe"):
            monkeypatch.setattr(
                f"tb_pastnet.record.audit.freeze_audit.Audit.{name}", lambda *_: 1 // 0
            )
        recorder.record(1)
        recorder.record(2)
    log = read_one(tmp_path)
    assert log.record_steps() == [1, 2]
    assert sum("Could not audit held weights" in text for text in log.last.notes) == 1
    assert caplog.text.count("Could not look at held weights") == 1


def test_a_share_of_one_means_all():
    through = np.ones((2, 1 << 25), bool)
    through[0, 7] = False
    share = _share(through, explicit_axis(0, through.shape, "a"))
    assert share.dtype == np.float32
    assert share[0] < 1 == share[1]

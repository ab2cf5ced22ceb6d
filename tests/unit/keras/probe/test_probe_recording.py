"""What a recorder stores of a probe, for each kind of past, against the weights of then."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet import Masks, PastNetCallback, Recorder
from tb_pastnet.core import thinning
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format.function_change import RELATIVE
from tb_pastnet.keras.probe.probe import Probe
from tests import probing
from tests.recorded import read_lineages, read_one

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 2)).astype("f")
STEPS = 12


class Line(tf.Module):
    """y = w x, whose relative change is known from w alone."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable([[1.0], [2.0]])

    def __call__(self, x):
        return x @ self.w


@pytest.fixture
def model():
    return Line()


def advance(model, recorder, steps):
    """Trains on; returns the weights after each step."""
    weights = []
    for step in steps:
        model.w.assign(model.w * [[1.1], [0.9]])
        recorder.record(step)
        weights.append(model.w.numpy())
    return weights


def stored(log):
    """Steps, past steps, and the measures (4, records, places)."""
    messages = log.functions
    parts = [[getattr(one, name) for one in messages] for name in ("steps", "past_steps", "values")]
    return (*(np.concatenate(part).tolist() for part in parts[:2]), np.concatenate(parts[2], 1))


def expected(weights, steps, past_steps):
    pairs = zip(steps, past_steps, strict=True)
    return np.transpose([probing.change(X @ weights[a], X @ weights[b]) for a, b in pairs])


@pytest.mark.parametrize("every", [1, 2, 10])
@pytest.mark.parametrize("past", ["previous", "record", "epoch", "initial", 1, 3])
def test_each_kind_of_past(tmp_path, model, past, every):
    weights = [model.w.numpy()]
    with Recorder(tmp_path, model, every=every, past=past, initial_step=0, probe=X) as recorder:
        for start in range(1, STEPS + 1, 4):
            weights += advance(model, recorder, range(start, start + 4))
            recorder.sync() if past == "epoch" else None
    log = read_one(tmp_path)
    steps, past_steps, values = stored(log)
    first = set() if past == 3 else {1}
    due = sorted({*range(every, STEPS + 1, every), *first, STEPS})
    assert log.record_steps() == due
    # The record of the end has no past if the newest copy is of its step.
    is_apart = [step != past for step, past in zip(due, log.record_past_steps(), strict=True)]
    assert all(is_apart[:-1])
    assert steps == [step for step, apart in zip(due, is_apart, strict=True) if apart]
    assert past_steps == log.record_past_steps()[: len(steps)]
    np.testing.assert_allclose(values[:2, :, 0], expected(weights, steps, past_steps), rtol=1e-5)
    assert log.last.notes == {}


def test_without_a_probe_there_is_no_message(tmp_path, model):
    with Recorder(tmp_path, model, every=1, initial_step=0) as recorder:
        advance(model, recorder, range(1, 4))
    assert read_one(tmp_path).functions == []


def test_the_message_names_the_probe_and_its_places(tmp_path, model):
    with Recorder(tmp_path, model, every=1, initial_step=0, probe=X) as recorder:
        advance(model, recorder, [1])
    (message,) = read_one(tmp_path).functions
    (given,), (place,) = message.inputs, message.places
    assert (given.name, given.shape, given.dtype) == ("", (5, 2), "float32")
    assert (place.kind, place.name, place.elements) == ("output", "output", 1)


def test_masks_do_not_disturb_it(tmp_path):
    model = keras.Sequential([keras.Input((2,)), layers.Dense(3, name="dense")])
    model.compile("sgd", "mse")
    masks = Masks(model)
    kernels = [model.layers[0].kernel.numpy()]
    with Recorder(tmp_path, model, every=1, initial_step=0, probe=X) as recorder:
        for step in (1, 2):
            masks.prune("dense/kernel", channels=[step])
            kernels.append(model.layers[0].kernel.numpy())
            recorder.record(step)
    _, _, values = stored(read_one(tmp_path))
    for at in (0, 1):
        want = probing.change(X @ kernels[at + 1], X @ kernels[at])
        np.testing.assert_allclose(values[:2, at, 0], want, rtol=1e-5)


def test_records_that_are_thinned_take_theirs_along(tmp_path, model, monkeypatch):
    monkeypatch.setattr(thinning, "CAPACITY", 4)
    weights = [model.w.numpy()]
    with Recorder(tmp_path, model, every=1, initial_step=0, probe=X) as recorder:
        weights += advance(model, recorder, range(1, 26))
    log = read_one(tmp_path)
    assert log.last.thinned > 10
    steps, past_steps, values = stored(log)
    assert steps == log.record_steps()
    assert steps[-1] == 25
    np.testing.assert_allclose(values[:2, :, 0], expected(weights, steps, past_steps), rtol=1e-5)


def test_a_new_lineage_goes_on_with_it(tmp_path, model):
    weights = [model.w.numpy()]
    with Recorder(tmp_path, model, every=1, initial_step=0, probe=X) as recorder:
        weights += advance(model, recorder, range(1, 6))
        model.w.assign(weights[2])
        recorder.restart(2)
        advance(model, recorder, range(3, 5))
    first, second = read_lineages(tmp_path)
    assert stored(first)[0] == [1, 2, 3, 4, 5]
    steps, past_steps, values = stored(second)
    assert (steps, past_steps) == ([3, 4], [2, 3])
    np.testing.assert_allclose(values[:2, :, 0], expected(weights, steps, past_steps), rtol=1e-5)
    assert first.functions[0].places == second.functions[0].places


def test_another_recorder_goes_on_with_the_same_places(tmp_path):
    for start in (0, 3):
        model = keras.Sequential([keras.Input((2,)), layers.Dense(3), layers.Dense(1)])
        with Recorder(tmp_path, model, every=1, initial_step=start, probe=X) as recorder:
            for step in range(start + 1, start + 4):
                recorder.record(step)
    first, second = read_lineages(tmp_path)
    names = [place.name for place in first.functions[0].places]
    assert names == ["dense", "dense_1", "dense_1"]
    assert first.functions[0].places == second.functions[0].places


class Fails(Line):
    """Raises in its kernels while the sign of w is wrong."""

    def __call__(self, x):
        with tf.control_dependencies([tf.debugging.assert_positive(self.w, "no such w")]):
            return x @ self.w


def test_a_probe_that_fails_costs_its_own_values_and_is_noted_once(tmp_path, caplog):
    model = Fails()
    with Recorder(tmp_path, model, every=1, initial_step=0, probe=X) as recorder:
        for step in range(1, 7):
            model.w.assign([[-1.0 if step in (3, 4) else 1.0 + step], [2.0]])
            recorder.record(step)
    log = read_one(tmp_path)
    assert log.record_steps() == [1, 2, 3, 4, 5, 6]
    # Step 5 has no past that can be evaluated.
    assert stored(log)[0] == [1, 2, 6]
    ((text, count),) = log.last.notes.items()
    assert text.startswith("Could not evaluate the probe: InvalidArgumentError: ")
    assert "\n" not in text
    assert count == 3
    assert len(caplog.records) == 1


def test_a_probe_that_never_works_again_leaves_the_records(tmp_path, model, monkeypatch):
    recorder = Recorder(tmp_path, model, every=1, initial_step=0, probe=X)
    monkeypatch.setattr(Probe, "values", lambda *_: 1 / 0)
    advance(model, recorder, range(1, 4))
    recorder.close()
    log = read_one(tmp_path)
    assert log.functions == []
    assert log.record_steps() == [1, 2, 3]
    assert log.last.notes == {
        "Could not evaluate the probe: ZeroDivisionError: division by zero": 3
    }


def test_a_bad_probe_is_refused_before_a_log_is_begun(tmp_path, model):
    with pytest.raises(InvalidArgument, match="Could not use the probe: expected samples along"):
        Recorder(tmp_path / "run", model, probe=X[:0])
    with pytest.raises(InvalidArgument, match="Could not .* module 'Line': expected "):
        Recorder(tmp_path / "run", model, probe=X[:, :1])
    with pytest.raises(InvalidArgument, match="is an argument: pass probe=x, without labels"):
        Recorder(tmp_path / "run", model, probe=(X, X[:, 0]))
    with pytest.raises(InvalidArgument, match="Could not probe a dict: expected a model that can"):
        Recorder(tmp_path / "run", {"w": model.w}, probe=X)
    assert not (tmp_path / "run").exists()


def test_a_callback_refuses_it_when_fit_begins(tmp_path):
    model = keras.Sequential([keras.Input((2,)), layers.Dense(1)], name="two")
    model.compile("sgd", "mse")
    callback = PastNetCallback(tmp_path, probe=X[:, :1])
    with pytest.raises(InvalidArgument, match="Could not .* model 'two': expected "):
        model.fit(X, X[:, 0], verbose=0, callbacks=[callback])


def test_a_model_that_is_built_by_its_first_batch_is_probed_from_then_on(tmp_path):
    model = keras.Sequential([layers.Dense(3), layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    callback = PastNetCallback(tmp_path, every=1, probe=X)
    model.fit(X, X[:, :1], batch_size=1, verbose=0, shuffle=False, callbacks=[callback])
    callback.close()
    log = read_one(tmp_path)
    steps, _, values = stored(log)
    assert steps == log.record_steps() == [2, 3, 4, 5]
    assert (values[RELATIVE] > 0).all()

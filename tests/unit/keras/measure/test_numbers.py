"""What is stored against an independent computation over the weights saved at each step.

Values are read back from the event files.
"""

from __future__ import annotations

import keras
import numpy as np
import pytest

from tb_pastnet.core.statistics import MOVED
from tests.families import (
    MODELS,
    STEPS,
    channel_of,
    expected,
    expected_by_column,
    mobilenet,
    train,
)
from tests.recorded import read_one


@pytest.mark.parametrize("case", MODELS)
def test_numbers_are_those_of_the_weights(case, tmp_path):
    keras.utils.set_random_seed(0)
    make, inputs = MODELS[case]
    saved = train(tmp_path, make(), inputs)
    log = read_one(tmp_path)
    assert log.record_steps() == list(range(1, STEPS + 1))
    assert set(log.codes) == set(saved[0])
    for name in saved[0]:
        rule = channel_of(case, name)
        for step, found in enumerate(log.values(name)[:, :MOVED], start=1):
            right = expected(saved[step][name], saved[step - 1][name], rule)
            np.testing.assert_array_equal(found == 0, right == 0, err_msg=name)
            np.testing.assert_allclose(found, right, rtol=0.045, err_msg=name)
    assert any((log.values(name)[:, 2] > 0).any() for name in saved[0])


def test_a_row_of_an_embedding_that_is_not_looked_up_does_not_move(tmp_path):
    make, inputs = MODELS["Embedding"]
    train(tmp_path, make(), inputs)
    delta = read_one(tmp_path).values("embedding/embeddings")[:, 2]
    used = np.isin(np.arange(9), inputs)
    assert ((delta > 0) == used).all()


@pytest.mark.prove
def test_numbers_of_mobilenet(tmp_path):
    saved = train(tmp_path, *mobilenet(), steps=2)
    log = read_one(tmp_path)
    assert len(log.codes) == 262
    for text in log.description.variables:
        for step, found in enumerate(log.values(text.id), start=1):
            now, before = saved[step][text.id], saved[step - 1][text.id]
            right = expected_by_column(now, before, text.axis)
            np.testing.assert_array_equal(found[:5] == 0, right == 0, err_msg=text.id)
            np.testing.assert_allclose(found[:5], right, rtol=0.045, err_msg=text.id)

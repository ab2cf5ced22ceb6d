from __future__ import annotations

import pickle

import pytest
import tensorflow as tf

from tb_pastnet import errors

CLASSES = [getattr(errors, name) for name in errors.__all__]


@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_stays_what_it_is_in_a_function_that_autograph_converts(kind):
    def refuse():
        raise kind("Could not do it.")

    @tf.function
    def step(x):
        if x > 0:
            refuse()
        return x

    with pytest.raises(kind, match=r"Could not do it\."):
        step(tf.constant(1.0))


@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_prints_its_text_alone_and_travels(kind):
    text = "Could not do it: expected 'a', got 'b'."
    assert str(kind(text)) == text
    back = pickle.loads(pickle.dumps(kind(text)))
    assert type(back) is kind
    assert str(back) == text

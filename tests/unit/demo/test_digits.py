from __future__ import annotations

import sys

import numpy as np
import pytest

from demo.digits import BATCH, STEPS_PER_EPOCH, Digits, digits


def test_the_digits_are_split_into_full_batches_and_a_rest():
    data = digits()
    assert data.train[0].shape == (BATCH * STEPS_PER_EPOCH, 8, 8, 1)
    assert data.train[0].dtype == np.float32
    assert (data.train[0].min(), data.train[0].max()) == (0, 1)
    assert len(data.train[0]) + len(data.test[0]) == 1797
    assert set(data.test[1]) == set(range(10))


def test_without_scikit_learn_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ModuleNotFoundError, match="Run: pip install scikit-learn"):
        digits()


def numbered(images):
    """Data whose images and labels are their own numbers."""
    numbers = np.arange(images)
    return Digits((numbers.astype(np.float32), numbers), (numbers[:4], np.array([2, 0, 1, 1])))


def test_an_epoch_has_each_image_once_beside_its_label():
    batches = list(numbered(3 * BATCH).batches(0, 0))
    for images, labels in batches:
        np.testing.assert_array_equal(images, labels)
    assert [len(labels) for _, labels in batches] == [BATCH] * 3
    assert sorted(np.concatenate([labels for _, labels in batches])) == list(range(3 * BATCH))


def test_the_order_depends_on_seed_and_epoch_alone():
    def order(seed, epoch):
        return tuple(np.concatenate([labels for _, labels in data.batches(seed, epoch)]))

    data = numbered(2 * BATCH)
    assert order(0, 0) == order(0, 0)
    assert len({order(seed, epoch) for seed in (0, 1) for epoch in (0, 1)}) == 4


def test_the_share_that_is_right():
    logits = np.eye(3, dtype=np.float32)[[2, 0, 0, 2]]
    assert numbered(BATCH).share_right(logits) == 0.5

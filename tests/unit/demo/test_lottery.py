from __future__ import annotations

import keras
import numpy as np
import pytest

from demo import lottery
from demo.digits import BATCH, Digits, digits
from demo.lottery import KEEP, RandomTicket, network, winning_tickets

ROUNDS = 3
BIASES = slice(1, None, 2)


@pytest.fixture(scope="module")
def data():
    """Few images: what is tested here doesn't depend on how well they are learned."""
    whole = digits()
    return Digits(
        tuple(part[: 4 * BATCH] for part in whole.train), tuple(part[:64] for part in whole.test)
    )


@pytest.fixture(scope="module")
def story(data):
    """What each round begins and ends with, and the weights at the step that is rewound to."""
    seen = {"begin": [], "end": [], "kept": [], "sparsity": [], "steps": []}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lottery, "EPOCHS", 3)
        original = lottery.fit

        def fit(model, data, seed, start, end, callbacks=()):
            seen["begin"].append(model.get_weights())
            seen["steps"].append([int(model.optimizer.iterations)])
            original(model, data, seed, start, end, callbacks)
            seen["steps"][-1].append(int(model.optimizer.iterations))

        patch.setattr(lottery, "fit", fit)
        for model, masks in winning_tickets(data, 0, ROUNDS):
            seen["end"].append(model.get_weights())
            seen["kept"].append([masks.kept[name] for name in masks.kept])
            seen["sparsity"].append(masks.sparsity())
    return seen


def kernels(weights):
    return weights[::2]


def test_training_is_rewound_to_the_end_of_the_first_epoch(story):
    assert story["steps"] == [[0, 4], *[[4, 12]] * (1 + ROUNDS)]


def test_what_survives_begins_bitwise_as_the_snapshot_and_the_rest_is_zero(story):
    snapshot, *rewound = story["begin"][1:]
    assert len(rewound) == ROUNDS
    for weights, kept in zip(rewound, story["kept"][1:], strict=True):
        for value, then, mask in zip(weights, snapshot, kept, strict=True):
            assert value[mask].tobytes() == then[mask].tobytes()
            assert not value[~mask].any()


def test_each_rounds_sparsity_is_the_one_that_is_counted_in_its_weights(story):
    for number, (weights, sparsity) in enumerate(zip(story["end"], story["sparsity"], strict=True)):
        total = sum(kernel.size for kernel in kernels(weights))
        zeros = sum(np.count_nonzero(kernel == 0) for kernel in kernels(weights))
        assert zeros == round((1 - KEEP**number) * total)
        assert sparsity == zeros / total


def test_the_smallest_of_all_layers_together_go_and_biases_stay(story):
    for before, kept, last in zip(story["end"], story["kept"][1:], story["kept"], strict=False):
        sizes = np.concatenate([abs(kernel).ravel() for kernel in kernels(before)])
        stay = np.concatenate([mask.ravel() for mask in kernels(kept)])
        stayed = np.concatenate([mask.ravel() for mask in kernels(last)])
        assert sizes[stay].min() >= sizes[stayed & ~stay].max()
        assert all(mask.all() for mask in kept[BIASES])


def test_a_random_ticket_has_the_same_masks_and_other_weights(story, data, monkeypatch):
    monkeypatch.setattr(lottery, "EPOCHS", 2)
    begun = []
    original = lottery.fit
    monkeypatch.setattr(
        lottery,
        "fit",
        lambda model, *rest: (begun.append(model.get_weights()), original(model, *rest)),
    )
    random = RandomTicket(data, 0)
    names = list(random.masks.kept)
    dense = network(0 + lottery.ANOTHER).get_weights()
    for masks in story["kept"][1:]:
        kept = dict(zip(names, masks, strict=True))
        begun.clear()
        assert random.train(kept) is random.model
        assert int(random.model.optimizer.iterations) == 8
        for name, mask, value, drawn, winning in zip(
            names, masks, begun[0], dense, story["begin"][1], strict=True
        ):
            np.testing.assert_array_equal(random.masks.kept[name], mask)
            np.testing.assert_array_equal(value, np.where(mask, drawn, 0))
            assert "bias" in name or (value[mask] != winning[mask]).all()


@pytest.mark.prove
def test_a_study_is_repeatable_and_its_seeds_differ(data, monkeypatch):
    monkeypatch.setattr(lottery, "EPOCHS", 2)
    once, again = lottery.study(data, (0, 1), 1), lottery.study(data, (0,), 1)
    assert once.shape == (2, 2, 3)
    np.testing.assert_array_equal(once[:1], again)
    np.testing.assert_allclose(once[..., 0], [[0, 0.2]] * 2, atol=1e-5)
    assert (once[0, :, 1:] != once[1, :, 1:]).any()


def test_its_network_is_of_five_dense_layers():
    model = network(0)
    dense = [layer for layer in model.layers if isinstance(layer, keras.layers.Dense)]
    assert [layer.units for layer in dense] == [256, 128, 64, 32, 10]
    sizes = [np.size(value) for value in model.get_weights()]
    assert (sum(sizes[::2]), sum(sizes[BIASES])) == (59712, 490)

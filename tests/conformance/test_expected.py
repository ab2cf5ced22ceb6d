"""What `expect=` declares is checked while training: at the first record, and at each change."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from tb_pastnet.errors import InvalidArgument, UnknownName
from tests.conformance.test_masks import KERNEL, kernels, leak, train

BOTH = {"d9.*": "frozen", "e.*": "trains"}


def contradicted(run: Any) -> list[tuple[Any, ...]]:
    found = [each for each in run.findings() if each.kind == "contradictions"]
    return [(each.cause, each.layers, each.first_step) for each in found]


def test_what_happens_as_expected_is_no_finding(begin: Any, caplog: Any) -> None:
    room = begin(kernels(), trainable={KERNEL: False}, expect=BOTH)
    train(room, range(1, 4), 0)
    run = room.run()
    assert contradicted(run) == []
    assert "expect=" not in caplog.text
    assert "2 of 2 expectations proven" in room.recorder.summary


@pytest.mark.parametrize("where", [KERNEL, "d64/kernel", None])
def test_all_but_some_may_be_expected_to_be_frozen(begin: Any, where: str | None) -> None:
    expect = {"not:e.*": "frozen", "e.*": "trains"}
    masks = {KERNEL: False, "d64/kernel": False}
    room = begin(kernels(9, 64), trainable=masks, expect=expect)
    train(room, [1, 2], 0)
    if where is not None:
        leak(room, where, (0, 3), 5)
    train(room, [3], 0)
    layers = () if where is None else (where.split("/")[0],)
    assert contradicted(room.run()) == [("frozen", layers, 3)] * len(layers)


def test_a_forgotten_freeze_is_logged_at_the_first_record(begin: Any, caplog: Any) -> None:
    room = begin(kernels(), trainable={}, expect=BOTH)
    with caplog.at_level(logging.WARNING, "tb_pastnet"):
        train(room, [1])
        assert caplog.text.count(f"frozen d9.*: {KERNEL}") == 1
        train(room, [2, 3])
    assert contradicted(room.run()) == [("frozen", ("d9",), 1)]
    assert caplog.text.count("Contradicts expect=") == 1


def test_a_weight_that_is_thawed_contradicts(begin: Any, caplog: Any) -> None:
    room = begin(kernels(), trainable={KERNEL: False}, expect=BOTH)
    train(room, [1, 2], 0)
    assert "expect=" not in caplog.text
    room.declare({KERNEL: True}, {})
    train(room, [3, 4])
    assert "from step 1 to 2" in caplog.text
    assert contradicted(room.run()) == [("frozen", ("d9",), 3)]


def test_a_frozen_weight_that_changes_contradicts(begin: Any, caplog: Any) -> None:
    room = begin(kernels(), trainable={KERNEL: False}, expect=BOTH)
    train(room, [1, 2], 0)
    leak(room, KERNEL, (0, 3), 5)
    train(room, [3], 0)
    assert "1 of 27 values changed, first seen at step 3" in caplog.text
    assert contradicted(room.run()) == [("frozen", ("d9",), 3)]


def test_a_weight_that_is_frozen_does_not_train(begin: Any, caplog: Any) -> None:
    room = begin(kernels(), trainable={KERNEL: False}, expect={"d9.*": "trains"})
    train(room, [1], 0)
    assert "(frozen)" in caplog.text
    room.close()


def test_what_shows_only_at_the_end_is_logged_there(begin: Any, caplog: Any) -> None:
    room = begin(kernels(), trainable={}, expect={"e.*": "trains", "d9.*": "sparsity >= 0.5"})
    now = room.values()
    for step in (1, 2, 3):
        room.put(now)
        room.record(step)
    assert "expect=" not in caplog.text
    assert {each[0] for each in contradicted(room.run())} == {"trains", "sparsity"}
    assert caplog.text.count("Contradicts expect=") == 2


def test_a_function_is_called_with_contradictions(begin: Any) -> None:
    told: list[Any] = []
    room = begin(kernels(), trainable={}, expect=BOTH, on_violation=told.extend)
    train(room, [1, 2])
    assert [each.weights for each in told] == [(KERNEL,)]
    assert told[0].text.startswith("frozen d9.*: d9/kernel")


@pytest.mark.parametrize(
    ("expect", "error"),
    [
        ({"d8.*": "frozen"}, UnknownName),
        ({"not:d8.*": "frozen"}, UnknownName),
        ({"not:*": "frozen"}, UnknownName),
        ({"d9.*": "frosen"}, InvalidArgument),
        ({"d9.*": "sparsity >= 2"}, InvalidArgument),
        ({"d9.*": None}, InvalidArgument),
        ({"": "frozen"}, InvalidArgument),
        ({"*": "frozen", "e.*": "trains"}, InvalidArgument),
        (["d9.*"], InvalidArgument),
    ],
)
def test_an_expectation_that_says_nothing_is_refused(begin: Any, expect: Any, error: Any) -> None:
    with pytest.raises(error):
        begin({**kernels(), "f/w": np.ones(2, "f4")}, trainable={}, expect=expect)

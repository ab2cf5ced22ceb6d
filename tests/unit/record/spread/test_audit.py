"""What is held and moves on any rank is found, in the channels of whole weights."""

from __future__ import annotations

import numpy as np
import pytest

from tb_pastnet.core.compared import HeldSpan, HeldValues
from tb_pastnet.record.audit.compared_account import ComparedAccount
from tb_pastnet.record.masks.declared_masks import declare
from tests.ranks import CUTS, SHAPE, on_each


def violations(rank, name, moved):
    """What is found where some elements of a held weight move between two records."""
    for weight in rank.whole.values():
        weight.free = weight.name != name
    held = np.ones(SHAPE, np.float32)
    rank.give(dict.fromkeys(CUTS, held))
    rank.measures.follow(1)
    rank.give(dict.fromkeys(CUTS, held + moved))
    rank.measures.follow(2)
    if rank.rank == 0:
        found = rank.audit.audit.check(2)
        return [(each.variable, each.channel, each.elements, each.largest) for each in found]
    return rank.failures.counts()


def test_rows_of_another_rank_are_named_by_their_number_in_the_whole():
    moved = np.zeros(SHAPE, np.float32)
    moved[4, :2] = 3  # on rank 1
    found, notes = on_each(lambda rank: violations(rank, "rows", moved))
    assert found == [("rows", 4, 2, 3.0)]
    assert notes == {}


def test_a_channel_that_lies_on_both_is_put_together():
    moved = np.zeros(SHAPE, np.float32)
    moved[2] = [1, 2, 3, 4]
    found, _ = on_each(lambda rank: violations(rank, "columns", moved))
    assert found == [("columns", 2, 4, 4.0)]


@pytest.mark.parametrize("name", CUTS)
def test_elements_that_masks_hold_are_compared_where_they_lie(name):
    through = np.random.default_rng(0).random(SHAPE) < 0.5
    moved = np.random.default_rng(1).random(SHAPE).astype("f4")

    def action(rank):
        account = ComparedAccount([*rank.whole.values()])
        rank.audit.audit.report_to(account)
        rank.give(dict.fromkeys(CUTS, np.ones(SHAPE, np.float32)))
        declare(rank.masks, {name: through}, {})
        found, account.making = violations(rank, "none", moved), True
        account.compared(2, None)
        return found, account.snapshot().held

    ((found, held), _) = on_each(action)
    size = np.where(through, 0, moved)
    expected = [
        (name, row, np.count_nonzero(each), pytest.approx(each.max(), rel=1e-6))
        for row, each in enumerate(size)
        if each.any()
    ]
    assert found == expected
    assert [each.most for each in held.values()] == [np.count_nonzero(~through)]


def test_where_a_rank_cant_compare_nothing_is_judged():
    def action(rank):
        if rank.rank == 1:
            rank.audit.audit.observe = None
        return violations(rank, "rows", 1) if rank.rank else checked(rank)

    def checked(rank):
        try:
            return violations(rank, "rows", 1)
        except RuntimeError as error:
            return str(error)

    first, notes = on_each(action)
    assert first == "not all ranks could compare"
    assert [text for text in notes if text.startswith("Could not audit held weights")]


def test_what_was_gathered_before_a_restart_is_of_another_lineage():
    def action(rank):
        violations(rank, "rows", 3)
        before = rank.audit.moved([rank.whole["rows"]])
        rank.measures.restart(0)
        return before, rank.audit.moved([rank.whole["rows"]])

    first, _ = on_each(action)
    assert first == ([True], [False])


def test_values_of_all_ranks_are_counted():
    def action(rank):
        account = ComparedAccount([*rank.whole.values()])
        rank.audit.audit.report_to(account)
        for weight in rank.whole.values():
            weight.free = weight.name == "whole"
        rank.measures.observe()
        for step in (1, 2, 3):
            rank.measures.follow(step)
            account.making = True
            if rank.rank == 0:
                rank.audit.audit.check(step)
            account.compared(step, None)
        return account.snapshot().held

    held, _ = on_each(action)
    size = SHAPE[0] * SHAPE[1]
    spans = (HeldSpan(1, 3, 3, 3 * size, True),)
    assert held == {0: HeldValues(size, spans=spans), 1: HeldValues(size, spans=spans)}

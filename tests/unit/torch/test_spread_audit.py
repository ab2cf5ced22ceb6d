"""Weights that ranks share and that are frozen: what moves of them on any rank is found."""

from __future__ import annotations

import pytest

import tb_pastnet as pastnet

pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")


KINDS = ("sharded", "alone")


@pytest.fixture(scope="module")
def runs(trained_by_ranks):
    folder = trained_by_ranks(*KINDS).folder
    return {kind: next(iter(pastnet.read(folder / kind).runs.values())) for kind in KINDS}


def facts(violation):
    return (
        *(violation.variable, violation.channel, violation.first_step, violation.last_step),
        *(violation.elements, violation.held, violation.largest),
    )


def test_violations_are_those_of_one_rank(runs):
    sharded, alone = (sorted(map(facts, runs[kind].violations)) for kind in KINDS)
    assert sharded == alone
    assert {each[:2] for each in sharded} == {
        *(("rows/weight", channel) for channel in range(5)),
        *(("rows/bias", channel) for channel in range(5)),
        ("table/weight", 6),
    }


def test_a_row_of_another_rank_is_named_by_its_number_in_the_whole(runs):
    (row,) = [each for each in runs["sharded"].violations if each.variable == "table/weight"]
    assert (row.channel, row.first_step, row.elements, row.held) == (6, 6, 6, 6)
    assert row.largest == pytest.approx(1, rel=1e-6)


def test_causes_are_found_by_the_rows_of_rank_0(runs):
    causes = {each.variable: each.cause for each in runs["sharded"].violations}
    assert causes["rows/weight"] == causes["rows/bias"] == "momentum"

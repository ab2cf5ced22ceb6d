"""The cause at the newest record, from changes in order."""

import pytest

from tb_pastnet.format.standing import StandingChange
from tb_pastnet.reader.standing import StandsStill, latest


@pytest.mark.parametrize(
    ("causes", "expected"),
    [
        ([], None),
        (["rounded"], StandsStill("rounded", 0, 0)),
        (["unknown"], StandsStill("unknown", 0, None)),
        (["unknown", "rounded"], StandsStill("rounded", 0, 1)),
        (["rounded", "no_gradient"], StandsStill("no_gradient", 0, 0)),
        (["rounded", "zero_gradient", "no_gradient"], StandsStill("no_gradient", 0, 2)),
        (["rounded", ""], None),
        (["rounded", "", "rate"], StandsStill("rate", 2, None)),
        (["of a later version"], StandsStill("of a later version", 0, None)),
    ],
)
def test_the_latest_cause_and_since_when_it_shows_that_a_weight_does_not_learn(causes, expected):
    changes = [StandingChange(step, "w", cause) for step, cause in enumerate(causes)]
    others = [StandingChange(9, "v", "rate"), StandingChange(9, "v", "")]
    assert latest([*others, *changes]) == ({} if expected is None else {"w": expected})

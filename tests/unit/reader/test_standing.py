"""The cause at the newest record, from changes in order."""

import pytest

import tb_pastnet as pastnet
from tb_pastnet.format.standing import StandingChange, encode_standing
from tb_pastnet.format.tags import TAG_STANDING
from tb_pastnet.reader import notes
from tb_pastnet.reader.standing import StandsStill, latest
from tests import event_files


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


def test_a_damaged_message_is_noted_and_costs_no_other(tmp_path):
    writer = event_files.LineageWriter(tmp_path)
    writer.describe(0)
    writer.records(range(1, 17))
    place = {"tag": TAG_STANDING, "lineage": writer.lineage}
    for step, cause in ((3, "rate"), (4, "rounded")):
        change = StandingChange(step, "conv1/kernel", cause)
        message = encode_standing([change], step=step, **place)
        writer.put(TAG_STANDING, step, message[:-1] if cause == "rounded" else message)
    (run,) = pastnet.read(tmp_path).runs.values()
    assert run.notes == {notes.DAMAGED: 1}
    assert len(run.steps) == 16

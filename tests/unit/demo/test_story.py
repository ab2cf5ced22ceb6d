from __future__ import annotations

import numpy as np
import pytest

from demo import story
from demo.digits import BATCH, Digits
from demo.story import EPOCHS, PRUNE, RATES, Run, progress, pruned_share, rate


def test_the_learning_rate_drops_by_the_calendar():
    assert [rate(epoch) for epoch, _ in RATES] == [value for _, value in RATES]
    assert rate(RATES[1][0] - 1) == RATES[0][1]
    assert rate(EPOCHS - 1) == RATES[-1][1]


def test_a_tenth_of_the_channels_more_is_pruned_each_time():
    shares = [pruned_share(epoch) for epoch in (0, PRUNE[0] - 1, *PRUNE, EPOCHS)]
    assert shares == pytest.approx([0, 0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.5])


def test_progress_is_said_at_each_quarter_but_the_last():
    lines = []
    for epoch in range(EPOCHS):
        progress("dense", epoch, lines.append)
    quarter = EPOCHS // 4
    assert [line.split() for line in lines] == [
        ["dense", "epoch", str(quarter * n), "of", str(EPOCHS)] for n in (1, 2, 3)
    ]


def test_a_run_counts_steps_from_1_through_all_epochs(tmp_path, monkeypatch):
    monkeypatch.setattr(story, "STEPS_PER_EPOCH", 2)
    images, labels = np.zeros((2 * BATCH, 8, 8, 1), np.float32), np.arange(2 * BATCH)
    lines = []
    run = Run("dense", Digits((images, labels), (images, labels)), tmp_path, lines.append)
    steps = [(epoch, step) for epoch, batches in run.epochs() for step, _, _ in batches]
    assert steps == [(epoch, 2 * epoch + n) for epoch in range(EPOCHS) for n in (1, 2)]
    assert len(lines) == 3
    assert run.folder == tmp_path / "dense"

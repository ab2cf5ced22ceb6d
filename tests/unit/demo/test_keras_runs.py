from __future__ import annotations

from demo.keras_runs import Progress
from demo.story import EPOCHS


def test_progress_is_said_while_keras_trains():
    lines = []
    callback = Progress("dense", lines.append)
    for epoch in range(EPOCHS):
        callback.on_epoch_end(epoch)
    assert len(lines) == 3

from __future__ import annotations

import logging

from tb_pastnet.train.log.notes import Notes


def test_logged_once_per_cause_and_counted(caplog):
    notes = Notes()
    with caplog.at_level(logging.WARNING, "tb_pastnet"):
        for name in ("a", "b"):
            notes.add("Could not write records", OSError(28, "No space left on device", name))
        notes.add("Could not write records", OSError(30, "Read-only file system", "a"))
    assert notes.counts() == {
        "Could not write records: OSError: No space left on device": 2,
        "Could not write records: OSError: Read-only file system": 1,
    }
    assert len(caplog.records) == 2

"""What the tests of several ranks share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

PROGRAM = Path(__file__).with_name("spread_training.py")


@pytest.fixture(scope="session")
def trained_by_ranks(tmp_path_factory):
    """Runs trainings of `spread_training` on some ranks, and gives their folder and their notes."""
    pytest.importorskip("torch.distributed.fsdp", reason="this torch has no FSDP")

    def run(*kinds, ranks=2):
        folder = tmp_path_factory.mktemp("ranks")
        command = [sys.executable, "-W", "ignore", str(PROGRAM)]
        workers = [
            subprocess.Popen(
                [*command, str(rank), str(ranks), str(folder), *kinds],
                env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"},
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(ranks)
        ]
        errors = [worker.communicate()[1] for worker in workers]
        assert [worker.returncode for worker in workers] == [0] * ranks, errors
        done = [json.loads((folder / f"done.{rank}.json").read_text()) for rank in range(ranks)]
        return SimpleNamespace(folder=folder, done=done)

    return run

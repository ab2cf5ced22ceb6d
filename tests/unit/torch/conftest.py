"""What the tests of several ranks share."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from tests.interpreter import TORCH, Interpreter

BEGIN = """
import os, warnings
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
warnings.simplefilter("ignore")
"""
TRAIN = """
from pathlib import Path
from tests.unit.torch.spread_training import main
main(rank, ranks, Path(folder), kinds)
"""


@pytest.fixture(scope="session")
def run_ranks():
    """Runs a program in some processes at once, each of which knows its `rank`; what each prints."""

    def run(program, ranks=2, **given):
        workers = [Interpreter(BEGIN, TORCH) for _ in range(ranks)]
        with ThreadPoolExecutor(ranks) as pool:
            runs = [
                pool.submit(worker.run, program, rank=rank, ranks=ranks, **given)
                for rank, worker in enumerate(workers)
            ]
        for worker in workers:
            worker.close()
        return [each.result() for each in runs]

    return run


@pytest.fixture(scope="session")
def trained_by_ranks(run_ranks, tmp_path_factory):
    """Runs trainings of `spread_training` on some ranks, and gives their folder and their notes."""
    pytest.importorskip("torch.distributed.fsdp", reason="this torch has no FSDP")

    def run(*kinds, ranks=2):
        folder = tmp_path_factory.mktemp("ranks")
        run_ranks(TRAIN, ranks, folder=str(folder), kinds=kinds)
        done = [json.loads((folder / f"done.{rank}.json").read_text()) for rank in range(ranks)]
        return SimpleNamespace(folder=folder, done=done)

    return run

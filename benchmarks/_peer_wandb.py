"""What wandb.watch costs at each step, offline; runs in the environment of the peer.

    python benchmarks/_peer_wandb.py NETWORK PAIRS

Prints JSON: a share of the step for each pair. Nothing is written outside of a temporary folder,
and the network is out of reach.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from typing import Any

from benchmarks._pairs import interleaved
from benchmarks._torch_models import TORCH_TASKS

_NOWHERE = "http://127.0.0.1:9"  # port 9 throws away what it gets


def alone(folder: str) -> None:
    """Keeps all that wandb writes in a folder, and wandb off the network."""
    homes = ("HOME", "WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR")
    os.environ |= dict.fromkeys((*homes, "TMPDIR"), folder)
    os.environ |= dict.fromkeys(
        ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), _NOWHERE
    )
    os.environ |= {
        "WANDB_MODE": "offline",
        "WANDB_SILENT": "true",
        "WANDB_ERROR_REPORTING": "false",
    }
    tempfile.tempdir = folder


def main(network: str, pairs: int) -> int:
    """Measures.

    Returns:
        The exit code.
    """
    tasks = [TORCH_TASKS[network]() for _ in range(2)]
    (_, _, stock), (_, _, watched) = (task.training() for task in tasks)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        alone(folder)
        wandb: Any = importlib.import_module("wandb")
        with wandb.init(dir=folder) as run:
            run.watch(tasks[1].model, log="parameters", log_freq=1)

            def logged() -> None:
                watched()
                run.log({})

            times = interleaved(stock, logged, pairs=pairs, calls=1)
    print(json.dumps((times[1] / times[0] - 1).tolist()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))

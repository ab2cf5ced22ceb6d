"""Peers that need packages of their own: programs in environments that are made for them.

torch 1.12 is the last whose wheel for Linux is complete (0.8 GB) and doesn't ask for gigabytes of
CUDA's packages beside it; it needs Python 3.10.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tools import environment, matrix
from tools.steps import ROOT, Failure, demand, say

HOME = ROOT / ".venv-peers"
TORCH = ("torch==1.12.1", "torchvision==0.13.1", "numpy<2")
_SECONDS = 1800.0


class Peer(NamedTuple):
    """Another package that records a training.

    Attributes:
        name: of its environment.
        what: what it does at each step.
        program: a file beside this one. It is called with the name of a network and a number of
            pairs, and prints JSON.
        requirements: what pip installs.
        python: the version that it needs; "" for the one that runs this.
    """

    name: str
    what: str
    program: str
    requirements: tuple[str, ...]
    python: str = ""


TFMOT = ("numpy", "tensorflow", "tf-keras", "tensorflow-model-optimization", "tensorboard")
PEERS = (
    Peer("tfmot", "tfmot's PruningSummaries, sparsity alone", "_peer_summaries.py", TFMOT),
    Peer("wandb", "wandb.watch, offline, parameters", "_peer_wandb.py", (*TORCH, "wandb"), "3.10"),
    Peer(
        "cockpit",
        "Cockpit: UpdateSize and Distance",
        "_peer_cockpit.py",
        (*TORCH, "cockpit-for-pytorch"),
        "3.10",
    ),
)


def ensure(name: str, requirements: tuple[str, ...], python: str = "") -> Path:
    """Makes an environment unless it is there.

    Args:
        name: of its folder.
        requirements: what pip installs.
        python: the version that it needs; "" for the one that runs this.

    Returns:
        Its Python.

    Raises:
        Failure: there is no such Python, or something can't be installed.
    """
    by_version = matrix.pythons() if python else {"": sys.executable}
    if python not in by_version:
        raise Failure(f"Could not make {name}: expected a Python {python}, found none.")
    maker, venv = by_version[python], HOME / name
    wanted = hashlib.sha256("\0".join([maker, *requirements]).encode()).hexdigest()
    kept, inside = venv / environment.STAMP, environment.venv_python(venv)
    if not (kept.is_file() and kept.read_text("utf-8") == wanted):
        say(f"Making the Python environment of {name} in {HOME.name} (some minutes)")
        demand(f"make {name}", [maker, "-m", "venv", "--clear", str(venv)])
        pip = [str(inside), "-m", "pip", "install", *requirements]
        environment.install(pip, f"install {name}")
        kept.write_text(wanted, "utf-8")
    return inside


def told(python: Path, program: str, *arguments: object) -> Any:
    """The JSON in the last line that a peer's program prints.

    Args:
        python: of its environment.
        program: a file beside this one.
        arguments: of it.

    Raises:
        Failure: it failed, or took too long. The last line of what it said is in the text.
    """
    path = Path(__file__).with_name(program)
    command = [str(word) for word in (python, path, *arguments)]
    env = environment.variables(python)
    try:
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, check=False, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise Failure(f"{program} took longer than {_SECONDS:.0f} s") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["without a word"]
        raise Failure(f"{program} ended with code {done.returncode}: {lines[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def shares_of(peer: Peer, network: str, pairs: int) -> list[float]:
    """What a peer costs at each step, in steps: one share a pair.

    Args:
        peer: which.
        network: of `_models.ALL_TASKS`.
        pairs: how often.

    Raises:
        Failure: it can't run.
    """
    python = ensure(peer.name, peer.requirements, peer.python)
    found: list[float] = told(python, peer.program, network, pairs)
    return found

"""What a figure was measured on: the machine in words, versions, and the commit."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    *("tensorflow", "tensorflow-cpu", "keras", "torch", "jax"),
    *("numpy", "numba", "tensorboard"),
)
_ROOT = Path(__file__).resolve().parent.parent


def words() -> str:
    """The machine: cores, processor, memory, accelerators, system."""
    parts = [f"{cores()} cores of {_processor()}", *_memory(), *_accelerators()]
    return ", ".join([*parts, f"{platform.system()} on {platform.machine()}"])


def cores() -> int:
    """How many this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)  # Linux alone knows
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def versions() -> dict[str, str]:
    """Of Python and of the packages that times depend on, as far as they are installed."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """Which state of the project; "unknown" outside of a checkout."""
    told = _told("git", "-C", str(_ROOT), "describe", "--always", "--dirty")
    return (told or ["unknown"])[0]


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.is_file() else ():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or "an unknown processor"


def _memory() -> list[str]:
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return []
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return [f"{size / 2**30:.0f} GiB"]


def _accelerators() -> list[str]:
    found = _told("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
    return [f"{found.count(name)} {name}" for name in dict.fromkeys(found)] or ["no GPU"]


def _told(*command: str) -> list[str]:
    """What a program prints, line by line; nothing where it isn't there or fails."""
    if shutil.which(command[0]) is None:
        return []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip().splitlines() if done.returncode == 0 else []

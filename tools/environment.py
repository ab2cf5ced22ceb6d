"""Makes the Python environment in .venv, once for each state of pyproject.toml."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.steps import ROOT, Failure, demand, say

VENV = ROOT / ".venv"
SMALL = ROOT / ".venv-fast"
"""What `test --fast` needs, where there is no whole environment: seconds to make, not minutes."""
SITE = ROOT / ".venv-docs"
"""What `docs` needs: Sphinx, and no framework."""
STAMP = "pastnet-stamp"
OLDEST_PIP = (22, 3)  # the first with `pip --python`


def scripts(venv: Path = VENV) -> Path:
    """The folder of an environment's programs."""
    return venv / ("Scripts" if os.name == "nt" else "bin")


def venv_python(venv: Path = VENV) -> Path:
    """The Python of an environment."""
    return scripts(venv) / ("python.exe" if os.name == "nt" else "python")


def requirements(extras: Sequence[str] = ()) -> list[str]:
    """What pip installs for nearly all commands.

    Args:
        extras: More extras than these need.
    """
    return with_tensorflow("demo", "dev", *extras)


def with_tensorflow(*extras: str) -> list[str]:
    """What pip installs: the project in place, some extras, the smaller TensorFlow if it exists."""
    if sys.platform == "linux" and platform.machine() == "x86_64":
        return [*in_place(*extras), "tensorflow-cpu>=2.16", "keras>=3.7"]
    return in_place("tensorflow", *extras)


def in_place(*extras: str) -> list[str]:
    """The arguments of pip to install the project in place with some of its extras."""
    return ["--editable", f"{ROOT}[{','.join(extras)}]"]


def stamp(
    python: str = sys.version, pins: Sequence[str] = (), needs: Sequence[str] | None = None
) -> str:
    """A fingerprint of all that decides what is installed.

    Args:
        python: Which Python it is for.
        pins: Versions that are held fast.
        needs: What pip installs, by default `requirements`.
    """
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    parts = [python, str(ROOT), *(requirements() if needs is None else needs), *pins, text]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def pip_version(pip: list[str]) -> tuple[int, ...]:
    """The version of a pip, () if it doesn't run."""
    try:
        done = subprocess.run(
            [*pip, "--version"],
            check=False,
            text=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
        )
    except OSError:
        return ()
    found = re.match(r"pip (\d+)\.(\d+)", done.stdout)
    return (int(found[1]), int(found[2])) if done.returncode == 0 and found else ()


def can_bring_pip() -> bool:
    """Whether this Python can make an environment that has pip (Debian ships it apart)."""
    return importlib.util.find_spec("ensurepip") is not None


def installer(venv: Path) -> list[str]:
    """The command of a pip that installs into an environment, which may be still to be made.

    Args:
        venv: Its folder.

    Raises:
        Failure: This Python has neither ensurepip nor pip, and there is no pip to be found.
    """
    if can_bring_pip():
        return [str(venv_python(venv)), "-m", "pip"]
    outside = shutil.which("pip3") or shutil.which("pip")
    for pip in ([sys.executable, "-m", "pip"], [outside] if outside else []):
        if pip and pip_version(pip) >= OLDEST_PIP:
            return [*pip, "--python", str(venv_python(venv))]
    raise Failure(
        f"Could not make .venv: expected ensurepip, or pip 22.3 or newer, for {sys.executable}, "
        "got neither. Install one of them (Debian, Ubuntu: apt-get install python3-venv), "
        "or set PASTNET_PYTHON to a Python that has everything installed."
    )


def make(venv: Path) -> list[str]:
    """Makes an empty environment.

    Args:
        venv: Its folder. What was there is removed.

    Returns:
        The command of a pip that installs into it.

    Raises:
        Failure: There is no pip, see `installer`.
    """
    pip = installer(venv)
    without = [] if can_bring_pip() else ["--without-pip"]
    demand(f"make {venv.name}", [sys.executable, "-m", "venv", "--clear", *without, str(venv)])
    return pip


def ensure(extras: Sequence[str] = ()) -> Path:
    """Makes the environment unless it is there and fits pyproject.toml.

    The variable PASTNET_PYTHON names another Python to use as it is, such as one of conda.

    Args:
        extras: Extras of pyproject.toml that only some commands need. In a new environment the
            same call of pip installs them.

    Returns:
        The environment's Python.

    Raises:
        Failure: The environment can't be made, or something can't be installed.
    """
    chosen = os.environ.get("PASTNET_PYTHON")
    if chosen:
        return Path(chosen)
    if not _is_stamped(VENV, stamp()):
        _make_stamped(VENV, requirements(extras), stamp(), "some minutes")
        for extra in extras:
            _stamp_of(extra).write_text(stamp(), "utf-8")
    for extra in extras:
        bring(extra, venv_python(VENV))
    return venv_python(VENV)


def ensure_small() -> Path:
    """The Python of `ensure` where it is there already; else one that has no TensorFlow.

    Raises:
        Failure: The environment can't be made, or something can't be installed.
    """
    if os.environ.get("PASTNET_PYTHON") or _is_stamped(VENV, stamp()):
        return ensure()
    needs = in_place("test")
    if not _is_stamped(SMALL, stamp(needs=needs)):
        _make_stamped(SMALL, needs, stamp(needs=needs), "a minute")
    return venv_python(SMALL)


def ensure_docs() -> Path:
    """The Python that builds the site, which needs no framework.

    Raises:
        Failure: The environment can't be made, or something can't be installed.
    """
    if os.environ.get("PASTNET_PYTHON"):
        return ensure()
    needs = in_place("docs")
    if not _is_stamped(SITE, stamp(needs=needs)):
        _make_stamped(SITE, needs, stamp(needs=needs), "a minute")
    return venv_python(SITE)


def _make_stamped(venv: Path, needs: Sequence[str], wanted: str, takes: str) -> None:
    """Makes an environment, and notes what it is made for."""
    say(f"Making the Python environment in {venv.name} (once, {takes})")
    install([*make(venv), "install", *needs], "install the requirements")
    (venv / STAMP).write_text(wanted, "utf-8")


def _stamp_of(extra: str) -> Path:
    """The file that says for which state of pyproject.toml an extra is installed."""
    return VENV / f"{STAMP}-{extra}"


def _is_stamped(venv: Path, wanted: str) -> bool:
    kept = venv / STAMP
    return kept.is_file() and kept.read_text("utf-8") == wanted


def ensure_pinned(venv: Path, python: str, pins: Sequence[str], *, tensorflow: bool = True) -> Path:
    """Makes an environment of chosen versions unless it is there and fits pyproject.toml.

    Without what serves stores to tests: it doesn't go with old versions.

    Args:
        venv: Its folder.
        python: The Python that it is made with.
        pins: Versions that are held fast, as pip's constraints.
        tensorflow: Whether it has TensorFlow; else PyTorch and JAX.

    Returns:
        The environment's Python.

    Raises:
        Failure: The environment can't be made, or the versions don't go together.
    """
    needs = with_tensorflow("demo", "test", "fast")
    if not tensorflow:
        needs = in_place("demo", "test", "fast", "dev-torch", "dev-jax")
    wanted = stamp(python, pins, needs)
    if _is_stamped(venv, wanted):
        return venv_python(venv)
    say(f"Making the Python environment {venv.name} (some minutes)")
    demand(f"make {venv.name}", [python, "-m", "venv", "--clear", str(venv)])
    bounds = venv / "pins.txt"
    bounds.write_text("\n".join(pins), "utf-8")
    pip = [str(venv_python(venv)), "-m", "pip", "install", "--constraint", str(bounds)]
    install([*pip, *needs], f"install the versions of {venv.name}")
    (venv / STAMP).write_text(wanted, "utf-8")
    return venv_python(venv)


def bring(extra: str, python: Path) -> None:
    """Installs an extra of pyproject.toml that only some commands need, unless it is there.

    A Python that PASTNET_PYTHON names is left as it is.

    Args:
        extra: Its name.
        python: The environment's Python, of `ensure`.

    Raises:
        Failure: Something can't be installed.
    """
    kept = _stamp_of(extra)
    if python != venv_python(VENV) or (kept.is_file() and kept.read_text("utf-8") == stamp()):
        return
    say(f"Bringing what `{extra}` needs")
    install([*installer(VENV), "install", *in_place(extra)], f"install the extra {extra}")
    kept.write_text(stamp(), "utf-8")


def install(command: list[str], doing: str) -> None:
    """Runs a `pip install` without its chatter.

    Python compiles modules when they are imported; pip would compile all, most of them unused.

    Raises:
        Failure: pip failed.
    """
    flags = ["--no-compile", "--quiet", "--progress-bar=off", "--disable-pip-version-check"]
    demand(doing, [*command, *flags])


def variables(python: Path, *, repeatable: bool = True) -> dict[str, str]:
    """The environment variables for programs that run in the environment.

    Args:
        python: of the environment.
        repeatable: whether TensorFlow works without oneDNN, whose results differ between machines,
            unless the user's environment decides it, and JAX keeps what it has compiled. Steps take
            longer then, and compilation no time.
    """
    env = dict(os.environ)
    env["PATH"] = os.pathsep.join([str(python.parent), env.get("PATH", "")])
    env["PYTHONPATH"] = str(ROOT)
    # Else each process compiles all tests and the package again, half the time of collecting.
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    env.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if repeatable:
        env.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
        env.setdefault("JAX_COMPILATION_CACHE_DIR", str(VENV / "jax"))
        env.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    return env

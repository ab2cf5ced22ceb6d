"""Builds the page, and compares the committed one with a fresh build."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tools.browser import FRONTEND
from tools.steps import ROOT, quiet

STATIC = ROOT / "tb_pastnet" / "serve" / "static"


def npm(script: str, env: dict[str, str], *arguments: str) -> tuple[int, str]:
    """Runs a script of frontend/package.json.

    Returns:
        Its exit code and what it printed.
    """
    program = shutil.which("npm", path=env["PATH"]) or "npm"
    return quiet([program, "run", "--silent", script, *arguments], env, FRONTEND)


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of all files below a folder, by their path in it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def differences(committed: dict[str, bytes], built: dict[str, bytes]) -> list[str]:
    """The names of files that aren't the same in both, sorted."""
    return sorted(
        name for name in committed.keys() | built.keys() if committed.get(name) != built.get(name)
    )


def compare(env: dict[str, str]) -> tuple[int, str]:
    """Builds the page into another folder.

    Returns:
        0 and no text if the build made the committed bytes, else 1 and what differs; the build's
        own exit code and output if it fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        code, output = npm("build", env, "--", folder)
        changed = differences(contents(STATIC), contents(Path(folder)))
    if code:
        return code, output
    if not changed:
        return 0, ""
    return 1, (
        f"Could not accept the committed page: expected the bytes of a fresh build, got others in "
        f"{', '.join(changed)}. Call `python3 dev.py bundle` and commit {STATIC.relative_to(ROOT)}."
    )

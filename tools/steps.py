"""Runs programs one after the other and says in one line each how it went."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class Failure(Exception):
    """A command can't continue; its text is all that the user sees."""


def say(text: str) -> None:
    """Prints one line at once, in order with what started programs print."""
    print(text, flush=True)


def run(command: Sequence[str | Path], env: Mapping[str, str], cwd: Path = ROOT) -> int:
    """Runs a program that prints to the terminal itself.

    Returns:
        Its exit code.
    """
    return subprocess.run([str(part) for part in command], cwd=cwd, env=env, check=False).returncode


def quiet(
    command: Sequence[str | Path], env: Mapping[str, str] | None = None, cwd: Path = ROOT
) -> tuple[int, str]:
    """Runs a program and keeps what it prints.

    Returns:
        Its exit code, and its output and error output together.
    """
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=env,
        check=False,
        text=True,
        encoding="utf-8",
        errors="replace",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.returncode, done.stdout


def demand(doing: str, command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> str:
    """Runs a program that must succeed.

    Args:
        doing: What it does, in words that complete "Could not …".
        command: The program and its arguments.
        env: Its environment; the caller's if None.

    Returns:
        What it printed.

    Raises:
        Failure: It exited with another code than 0. The end of its output is in the text.
    """
    say(f"  … {doing}")
    code, output = quiet(command, env)
    if code:
        called = " ".join(str(part) for part in command)
        raise Failure(f"{output[-4000:]}\nCould not {doing}: `{called}` ended with code {code}.")
    return output


@dataclass
class Steps:
    """Steps that all run even if one of them fails, and a verdict at the end."""

    failed: list[str] = field(default_factory=list)

    def step(self, name: str, check: Callable[[], tuple[int, str]]) -> None:
        """Runs one step; its output is shown only if it fails."""
        start = time.monotonic()
        code, output = check()
        took = f"{time.monotonic() - start:.1f} s"
        if code:
            say(output.rstrip())
            self.failed.append(name)
        say(f"{'FAILED' if code else 'ok':6} {name} ({took})")

    def loud(
        self, name: str, command: Sequence[str | Path], env: Mapping[str, str], fine: int = 0
    ) -> None:
        """Runs one step whose output is always shown; another exit code may be fine, too."""
        say(f"       {name}")
        if run(command, env) not in (0, fine):
            self.failed.append(name)

    def verdict(self) -> int:
        """Says which steps failed, on stderr.

        Returns:
            The exit code: 0 if none did, else 1.
        """
        if self.failed:
            print(f"Failed: {', '.join(self.failed)}.", file=sys.stderr, flush=True)
        return 1 if self.failed else 0

"""The browser that checks run in: one process of Node and one Chromium for all of a worker's tests."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("drive.mjs")


class Browser:
    """Runs the checks of checks/*.mjs, one after the other; it starts with the first."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._busy = False

    def answers(self, base: str, check: str, given: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """What a check says: first all that it tells on the way, at last what it saw."""
        if self._busy:
            # A test failed in the middle of its check: what that one says now is for nobody else.
            self.close()
        if self._process is None:
            self._process = subprocess.Popen(
                ["node", str(SCRIPT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        self._busy = True
        to.write(json.dumps({"base": base, "check": check, "arguments": given}) + "\n")
        to.flush()
        while True:
            line = back.readline()
            assert line, f"the browser ended in {check}"
            answer = json.loads(line)
            self._busy = "told" in answer
            assert "failed" not in answer, f"{check}: {answer}"
            yield answer
            if "told" not in answer:
                return

    def close(self) -> None:
        """Lets it end; in the middle of a check it is told to."""
        if self._process is None:
            return
        if self._busy:
            self._process.terminate()
        self._process.communicate()
        self._process, self._busy = None, False


BROWSER = Browser()


def drive(base: str, check: str, **given: Any) -> dict[str, Any]:
    """What a check saw at an address: its result, and errors, blocked loads and dialogs on the way."""
    *_, last = BROWSER.answers(base, check, given)
    return last


def clean(seen: dict[str, Any]) -> Any:
    """What a check gives, when nothing was logged, blocked or opened on the way."""
    assert (seen["errors"], seen["policy"], seen["dialogs"]) == ([], [], [])
    return seen["result"]

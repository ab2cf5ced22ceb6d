"""TensorBoard's Histograms tab and the PastNet tab on one training: docs/benchmarks/histograms.md.

Trains, shows both logs in a TensorBoard each, asks both tabs the twenty questions in Chromium, and
prints the tables of the guide. It needs the page's packages and a Chromium: `dev.py bench` brings
both.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks._boards import board
from benchmarks._histograms_training import EPOCHS, EVERY, RUNS, trained
from benchmarks._histograms_truth import ASKED, right, truth
from benchmarks._options import parser
from benchmarks._pairs import PAIRS
from benchmarks._rows import Rows
from demo.digits import STEPS_PER_EPOCH
from tools.browser import installed

ROOT = Path(__file__).parent.parent
TITLE = "TensorBoard's Histograms tab and the PastNet tab"
VISITS = 3
LAST_TAG = "digits/logits/bias"
TABS = {"theirs": "histograms", "ours": "pastnet"}
Answers = dict[str, dict[str, Any]]


def script(name: str, *arguments: object) -> Any:
    """What one of the programs in _histograms prints."""
    command = ["node", str(ROOT / "benchmarks" / "_histograms" / f"{name}.mjs"), *arguments]
    env = {**os.environ, "CHROMIUM": installed() or ""}
    words = [str(word) for word in command]
    done = subprocess.run(words, env=env, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(f"Could not run {name}.mjs: expected status 0, got {done.returncode}.")
    return json.loads(done.stdout)


def read_to_the_end(bases: dict[str, str], patience: float = 120) -> None:
    """Waits until both TensorBoards know the last step of the last run."""
    last, end = EPOCHS * STEPS_PER_EPOCH, time.monotonic() + patience
    ours = f"{bases['ours']}/data/plugin/pastnet/index"
    theirs = f"{bases['theirs']}/data/plugin/histograms/histograms?run={RUNS[-1]}&tag={LAST_TAG}"
    ends: dict[str, Callable[[Any], bool]] = {
        ours: lambda answer: [run["last_step"] for run in answer["runs"]] == [last] * len(RUNS),
        theirs: lambda answer: answer[-1][1] == last,
    }
    for address, read in ends.items():
        while not read(answer_of(address)):
            if time.monotonic() > end:
                raise SystemExit(f"Could not read the logs: expected step {last} at {address}.")
            time.sleep(0.5)


def answer_of(address: str) -> Any:
    """The JSON at an address; what nothing is known of has no runs and no steps."""
    try:
        with urllib.request.urlopen(address, timeout=60) as response:  # noqa: S310  our own address
            return json.loads(response.read())
    except urllib.error.HTTPError:
        return [[0, 0]]


def visited(tab: str, base: str, visits: int) -> dict[str, Any]:
    """What a visit of all that a tab has carries.

    Of several visits that with the fewest bytes: one in which the page reloads sends some twice.
    """
    found = [script("everything", tab, base) for _ in range(visits)]
    return min(found, key=lambda one: int(one["bytes"]))


def questions() -> dict[int, str]:
    """The questions as the guide has them, by number, without their tolerances."""
    page = ROOT / "docs" / "benchmarks" / "histograms.md"
    text = page.read_text("utf-8").split("## The questions")[1]
    found = re.findall(r"^(\d+)\. (.+?)(?=^\d+\. |^#)", text + "\n#", re.M | re.S)
    return {
        int(number): re.sub(r"\s*\(±[^)]*\)", "", " ".join(words.split()))
        for number, words in found
    }


def shown(value: Any) -> str:
    """An answer in few characters."""
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, list):
        return ", ".join(shown(one) for one in value)
    return str(value)


def verdict(number: int, told: dict[str, Any], known: Any) -> str:
    """A cell of the table: yes and the number of actions, or no and why."""
    if "no" in told:
        return f"no: {told['no']}"
    if not right(number, told["answer"], known):
        return f"no: it reads as {shown(told['answer'])}; NumPy says {shown(known)}"
    return f"yes, **{len(told['actions'])}**"


def table_of_answers(answers: dict[str, Answers], known: dict[int, Any]) -> list[str]:
    """The table of the twenty questions; how many each tab answers, and with how many actions."""
    cells = {
        tab: {one: verdict(one, answers[tab][str(one)], known[one]) for one in questions()}
        for tab in TABS
    }
    answered = {
        tab: {one for one, cell in found.items() if cell.startswith("yes")}
        for tab, found in cells.items()
    }
    both = answered["theirs"] & answered["ours"]

    def actions(tab: str, chosen: set[int]) -> int:
        return sum(len(answers[tab][str(one)]["actions"]) for one in chosen)

    rows = [
        (str(one), text, *(cells[tab][one] for tab in TABS)) for one, text in questions().items()
    ]
    some = f"actions for the {len(both)} that both answer"
    rows += [
        ("", "answered", *(f"**{len(answered[tab])} of {len(rows)}**" for tab in TABS)),
        ("", some, *(str(actions(tab, both)) for tab in TABS)),
        ("", "actions for all answers", *(str(actions(tab, answered[tab])) for tab in TABS)),
    ]
    head = ["| | question | Histograms | PastNet |", "| --- | --- | --- | --- |"]
    return [*head, *(f"| {' | '.join(row)} |" for row in rows)]


def scripts_of(answers: dict[str, Answers]) -> list[str]:
    """The actions behind each number."""
    lines = []
    for number in questions():
        for tab, name in (("theirs", "Histograms"), ("ours", "PastNet")):
            told = answers[tab][str(number)]
            if "actions" in told:
                actions = "; ".join(told["actions"]) or "look"
                lines.append(f"{number} {name}: {actions} → {shown(told['answer'])}")
    return lines


def keep(rows: Rows, times: dict[str, Any], whole: dict[str, Any], logdir: Path) -> None:
    """Time, bytes and steps of both."""
    written = EPOCHS * STEPS_PER_EPOCH // EVERY
    for tab, column in (("theirs", "Histograms"), ("ours", "PastNet")):
        files = [path for path in (logdir / TABS[tab]).rglob("*") if path.is_file()]
        for name, values, unit in (
            ("from the click to the first picture", [one["first"] for one in times[tab]], "ms"),
            ("from the click to all of the screen", [one["all"] for one in times[tab]], "ms"),
            ("bytes of that screen", times[tab][0]["bytes"] / 1e3, "kB"),
            ("bytes of all that there is", whole[tab]["bytes"] / 1e3, "kB"),
            ("bytes on disk", sum(path.stat().st_size for path in files) / 1e3, "kB"),
            (f"steps shown, of {written} written", whole[tab]["steps"], ""),
        ):
            rows.line(TITLE, name, values, unit, column=column)


def main(argv: Sequence[str]) -> int:
    """Prints the tables.

    Returns:
        The exit code.
    """
    top = parser("histograms", __doc__)
    top.add_argument("--rounds", type=int, default=PAIRS, help=f"default {PAIRS}")
    top.add_argument("--actions", action="store_true", help="print the actions, too")
    arguments = top.parse_args(argv)
    rounds = 1 if arguments.smoke else arguments.rounds
    rows = Rows("histograms")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        logdir = Path(folder)
        known = truth(trained(logdir, ASKED))
        bases = {
            tab: stack.enter_context(board(logdir / name)).address for tab, name in TABS.items()
        }
        read_to_the_end(bases)
        times = script("paint", rounds, bases["theirs"], bases["ours"])
        visits = 1 if arguments.smoke else VISITS
        whole = {tab: visited(tab, base, visits) for tab, base in bases.items()}
        keep(rows, times, whole, logdir)
        if arguments.smoke:  # the questions take minutes
            return rows.finish()
        answers = {tab: script("ask", tab, base) for tab, base in bases.items()}
        print(*table_of_answers(answers, known), sep="\n")
        if arguments.actions:
            print("", *scripts_of(answers), sep="\n")
    return rows.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What both loaders of TensorBoard answer, which must be one thing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.tensorboards import LOADERS, Board, board

ROUTES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/overview", {"cols": 64}),
    ("/overview", {"th": "0.01"}),
    ("/layer", {"layer": "conv1"}),
    ("/layer", {"layer": "block/conv2", "variable": "block/conv2/bias", "since": 20}),
    ("/channel", {"layer": "conv1", "channel": 2}),
    ("/violations", {}),
    ("/function", {}),
    ("/export.csv", {}),
    ("/export.csv", {"layer": "conv1"}),
    ("/export.csv", {"function": 1}),
)


def everything(here: Board, *runs: str) -> dict[str, bytes]:
    """The bytes of every route."""
    found = {"/index": here.get("/index").get_data()}
    for run in runs:
        for route, query in ROUTES:
            response = here.get(route, run=run, **query)
            assert response.status_code == 200, response.get_data(as_text=True)
            found[f"{route} {run} {query}"] = response.get_data()
        found |= overlaps(here, run, runs[0])
    return found


def overlaps(here: Board, *pair: str) -> dict[str, bytes]:
    """What two runs have in common."""
    found = {}
    for unit in ("weights", "channels"):
        for mask in ("kept", "trainable"):
            asked = {"unit": unit, "mask": mask}
            for route, query in (
                ("/overlap", {"run": pair}),
                ("/overlap_layers", {"run": pair[0], "other": pair[1], "cols": 20}),
            ):
                response = here.get(route, **query, **asked)
                assert response.status_code == 200, response.get_data(as_text=True)
                found[f"{route} {query} {asked}"] = response.get_data()
    return found


def in_both(logdir: Path, look: Callable[[Board], Any]) -> Any:
    """What both loaders answer, which must be one thing."""
    answers = []
    for loader in LOADERS:
        with board(logdir, loader) as here:
            answers.append(look(here))
    assert answers[0] == answers[1]
    return answers[0]


def the_run(here: Board) -> dict[str, Any]:
    (run,) = here.json("/index")["runs"]
    account = run["account"]
    assert account["offered"] == sum(n for name, n in account.items() if name != "offered")
    return run

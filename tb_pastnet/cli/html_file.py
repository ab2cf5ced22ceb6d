"""`export --format html`: the page and its data in one file, which opens without a server.

The file contains the modules of the page, as an import map, and the packed answers of the routes
that the page uses. A short script serves these instead of the network.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO
from urllib.parse import parse_qsl, urlencode

from werkzeug.datastructures import MultiDict

from tb_pastnet.cli.export import local, write_problems
from tb_pastnet.cli.text import printable, size_of
from tb_pastnet.core.counted import counted
from tb_pastnet.errors import InvalidArgument, UnwritableLog
from tb_pastnet.format.tags import MASKS
from tb_pastnet.reader.figures import BLOCK
from tb_pastnet.reader.log import Log, Run, run_alone
from tb_pastnet.reader.overlap_sets import UNITS
from tb_pastnet.reader.series_source import LOCAL
from tb_pastnet.reader.store import Store
from tb_pastnet.serve.http.answers import NotModified
from tb_pastnet.serve.http.parameters import FEWEST_RUNS, MOST_LISTED, MOST_RUNS, Query
from tb_pastnet.serve.http.web import UNREADABLE, Failure
from tb_pastnet.serve.plugin import STATIC
from tb_pastnet.serve.routes import ROUTES

COLUMNS = 1024
LANE_COLUMNS, STRIP_COLUMNS, MOST_LAYERS = 512, 128, 64
"""As the page asks for lanes: `frontend/src/state/answers.ts`."""
MOST_OF_DETAIL = 4 << 20
"""Bytes for overlaps of masks, and for single channels; beyond them, only pictures are included."""
_CELLS_A_BYTE = 128
"""Channel-records that are read for a channel take as much room as one byte."""
_LAYER_CELLS = 2048
"""To count the masks of a layer takes as long as to read so many."""
OVERLAP_STEPS = 24
"""Steps at which overlaps of masks are counted, the last one among them."""

_SHIM = Path(__file__).with_name("html_file.js")
_BASE = "https://pastnet.invalid/"


def _ask(route: str, query: Mapping[str, Any]) -> str:
    """A request as the page makes it, ordered by name."""
    # A name may have half a surrogate pair, which no address has.
    return f"{route}?{urlencode(sorted(query.items()), doseq=True, errors='replace')}"


def export_html(options: argparse.Namespace, out: TextIO, error: TextIO) -> int:
    """Writes the page with the data of a log into one new file.

    Returns 0, or 1 if a run could not be read: what could not be is left out.
    """
    log, target = Log(options.logdir), local(options.out)
    chosen = log.runs.chosen(options.run)
    if len(chosen) > MOST_LISTED:
        raise InvalidArgument(
            f"Could not export {len(chosen)} runs: expected at most {MOST_LISTED} in one file. "
            "Choose some with --run."
        )
    try:
        answers, problems = _answers(log, chosen, options)
    except Failure as failure:
        raise InvalidArgument(failure.message) from failure
    size = _write(target, _page(answers))
    said = f"{counted(len(chosen), 'run')}, {size_of(size)}; open it in a browser"
    out.write(f"{printable(target)}: {said}\n")
    return write_problems(problems, error)


def _answers(
    log: Log, chosen: Sequence[Run], options: argparse.Namespace
) -> tuple[dict[str, str], dict[str, str]]:
    """The packed answers, by request, and why runs could not be read, by name."""
    quiet = options.threshold
    problems = {run.name: run.problem for run in chosen if run.problem}
    asked = [run_alone(run, lambda run: _asked(run, quiet)) for run in chosen]
    asks = [ask for run in asked for ask in run.asks]
    asks[:0] = _findings([run.name for run in chosen])
    answers: dict[str, str] = {}

    def keep(ask: str) -> int:
        """Keeps an answer, and returns its size; none of a run that can't be read."""
        try:
            answers[ask] = _packed(_answer(log.store, ask))
        except Failure as failure:
            if failure.code != UNREADABLE:
                raise
            problems.update(dict.fromkeys(_runs_in(ask), failure.message))
            return 0
        return len(ask) + len(answers[ask])

    for ask in options.progress(asks, "Writing", len(asks)):
        keep(ask)
    for ask in _strips(log.store, [ask for ask in answers if ask.startswith("findings?")], quiet):
        keep(ask)
    for details in (_overlaps(asked), _channels(asked, quiet)):
        _keep_some(details, keep)
    answers["index?"] = _packed(_index(log.store, {run.name for run in chosen}, problems, quiet))
    return answers, problems


def _keep_some(details: Iterable[tuple[str, int]], keep: Callable[[str], int]) -> None:
    """Keeps answers as long as there is room for details."""
    room = MOST_OF_DETAIL
    for ask, cells in details:
        room -= keep(ask) + cells // _CELLS_A_BYTE
        if room < 0:
            return


def _index(
    store: Store, names: Collection[str], problems: Mapping[str, str], threshold: float
) -> bytes:
    """The index of some runs, with the threshold of the file."""
    index = json.loads(_answer(store, "index?"))
    index |= {
        "runs": [run for run in index["runs"] if run["name"] in names],
        "threshold": threshold,
    }
    for run in index["runs"]:
        if run["name"] in problems:
            run["notes"].append({"text": problems[run["name"]], "count": 1})
    return json.dumps(index).encode()


def _findings(names: Sequence[str]) -> list[str]:
    """Those of all runs together, which come first (see html_file.js), and of each."""
    each = [[name] for name in names] if len(names) > 1 else []
    return [_ask("findings", {"run": some}) for some in [names, *each] if some]


def _strips(store: Store, asked: Sequence[str], threshold: float) -> list[str]:
    """The lanes of the layers that findings are about; about more, the lane of the run serves."""
    present = {
        name: {layer.id for layer in run.layers} for name, run in store.catalog(LOCAL).runs.items()
    }
    findings = (each for ask in asked for each in json.loads(_answer(store, ask))["findings"])
    asks = []
    for finding in findings:
        run = finding["link"]["run"]
        layers = [layer for layer in finding["layers"] if layer in present.get(run, ())]
        if 0 < len(layers) <= MOST_LAYERS:
            own = {"run": run, "layer": layers, "cols": STRIP_COLUMNS, "th": threshold}
            asks.append(_ask("lanes", own))
    return list(dict.fromkeys(asks))


def _runs_in(ask: str) -> list[str]:
    return [value for name, value in parse_qsl(ask.partition("?")[2]) if name == "run"]


def _write(target: str, parts: Iterable[str]) -> int:
    """Writes a new file, complete or not at all, and returns its size; raises UnwritableLog."""
    try:
        file = Path(target).open("x", encoding="utf-8", newline="\n")  # noqa: SIM115 - below
        try:
            with file:
                return sum(map(file.write, parts))
        except BaseException:
            Path(target).unlink()
            raise
    except OSError as error:
        raise UnwritableLog(
            f"Could not export to {target!r}: expected a new file, got {error.strerror or error}. "
            "Choose another name, or make room."
        ) from error


class _Asked(NamedTuple):
    """What is asked about a run."""

    run: str
    steps: list[int]
    # of each layer: its id, its variable, how many channels and how many channel-records it has
    mains: list[tuple[str, str, int, int]]
    asks: list[str]


def _asked(run: Run, threshold: float) -> _Asked:
    accounts = run.overview(threshold, latest=1).accounts
    mains = []
    for layer, account in zip(run.layers.values(), accounts, strict=True):
        # Records that a reader leaves out are read, too.
        read = account.shown + account.superseded + max(account.thinned - run.account.thinned, 0)
        mains.append((layer.id, layer.variable, layer.channels, layer.channels * read))
    return _Asked(run.name, run.steps.tolist(), mains, list(_asks(run, threshold)))


def _asks(run: Run, threshold: float) -> Iterator[str]:
    """The requests that the page may make about a run."""
    quiet, own = {"th": threshold}, {"run": run.name}
    yield _ask("violations", own)
    yield _ask("function", own)
    yield _ask("overview", {**own, "cols": COLUMNS, **quiet})
    yield _ask("lanes", {**own, "cols": LANE_COLUMNS, **quiet})
    yield _ask("scalars", own)
    for step in run.steps[::BLOCK].tolist():
        for th in dict.fromkeys((threshold, 0)):
            yield _ask("records", {**own, "at": step, "count": BLOCK, "th": th})
    for layer in run.layers.values():
        for variable in layer.variables:
            yield _ask("layer", {**own, "layer": layer.id, "variable": variable, **quiet})


def _channels(runs: Sequence[_Asked], threshold: float) -> Iterator[tuple[str, int]]:
    """The first channels of all layers, then the second ones, and so on; and what each reads."""
    mains = [(run.run, *main) for run in runs for main in run.mains]
    for channel in range(max((main[3] for main in mains), default=0)):
        for run, layer, variable, channels, cells in mains:
            if channel < channels:
                part = {"run": run, "layer": layer, "variable": variable}
                yield _ask("channel", {**part, "channel": channel, "th": threshold}), cells


def _overlaps(runs: Sequence[_Asked]) -> Iterator[tuple[str, int]]:
    """Those of all runs, then of each pair by layer; at the last step first. As `_channels`."""
    chosen = runs[:MOST_RUNS]
    names = [run.run for run in chosen]
    if len(names) < FEWEST_RUNS:
        return
    cells = {run.run: _LAYER_CELLS * len(run.mains) for run in chosen}
    all_cells = sum(cells.values())
    steps = sorted({step for run in runs for step in run.steps}, reverse=True)
    kinds = [{"unit": unit, "mask": mask} for unit in UNITS for mask in MASKS]
    pairs = [(first, second) for first in names for second in names if first != second]
    steps = steps[:: max(len(steps) // OVERLAP_STEPS, 1)]
    for step in steps:
        for kind in kinds:
            yield _ask("overlap", {"run": names, "step": step, **kind}), all_cells
    for when in ({"cols": 256}, *({"at": step} for step in steps)):
        for kind in kinds:
            for first, second in pairs:
                pair = {"run": first, "other": second, **kind, **when}
                yield _ask("overlap_layers", pair), cells[first] + cells[second]


def _answer(store: Store, ask: str) -> bytes:
    route, _, query = ask.partition("?")
    arguments = MultiDict(parse_qsl(query, keep_blank_values=True))
    answer = ROUTES[f"/{route}"](Query(store, LOCAL, arguments))
    whole_answer = answer.make() if isinstance(answer, NotModified) else answer
    return gzip.decompress(whole_answer.body) if whole_answer.packed else whole_answer.body


def _packed(body: bytes) -> str:
    return base64.b64encode(gzip.compress(body, 6, mtime=0)).decode("ascii")


def _page(answers: Mapping[str, str]) -> Iterator[str]:
    """The file, by parts: names and texts of a log are only in it escaped or in base64."""
    imports = {}
    for file in sorted(STATIC.glob("*.js")):
        # Data modules have no address to resolve others from.
        source = file.read_text("utf-8").replace("import.meta.url", f'"{_BASE}"')
        for module in STATIC.glob("*.js"):
            source = source.replace(f'"./{module.name}"', f'"pastnet/{module.name}"')
        code = base64.b64encode(source.encode()).decode("ascii")
        imports[f"pastnet/{file.name}"] = f"data:text/javascript;base64,{code}"
    yield '<!doctype html><html lang="en"><meta charset="utf-8"><title>PastNet</title>\n'
    yield f"<!--\n{(STATIC / 'notices.txt').read_text('utf-8')}-->\n"
    yield f'<script type="importmap">{json.dumps({"imports": imports})}</script>\n'
    yield "<script>const ANSWERS = {"
    comma = ""
    for ask, body in answers.items():  # base64 has no character to escape
        yield f'{comma}"{base64.b64encode(ask.encode()).decode()}": "{body}"'
        comma = ", "
    yield f"}};\n{_SHIM.read_text('utf-8')}</script>\n"
    yield '<script type="module">import { render } from "pastnet/index.js"; render();</script>\n'
    yield "</html>\n"

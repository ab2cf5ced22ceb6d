"""Hostile logs by a generator: each field at its limit, again and again; and all that reads a log."""

from __future__ import annotations

import io
import json
import resource
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tb_pastnet.core.statistics import STATISTICS
from tb_pastnet.format import json_payload, limits, varint
from tb_pastnet.format.block import Block, encode_block
from tb_pastnet.format.budget import CELLS
from tb_pastnet.format.description import Description
from tb_pastnet.format.envelope import Kind, seal
from tb_pastnet.format.tags import (
    TAG_DESCRIPTION,
    TAG_FUNCTION,
    TAG_MASKS,
    TAG_OVERHEAD,
    TAG_TIMELINE,
    TAG_VIOLATIONS,
    channels_tag,
    mask_tag,
    together_tag,
)
from tests import event_files as files
from tests.interpreter import Interpreter

MOST_BYTES = 5_000_000
REPEATS = (1, 10, 1_000)
FULL = "channels deflated", "cells deflated"
"""Ten of these are as many bytes as there may be: more would be the same log."""
KERNEL = "conv1/kernel"
ENDS = (0xFF, 0, 0x80)

Payload = Callable[[int], bytes]
"""Of the repeat of a number."""


def block(records: int, channels: int, plane: bytes) -> Payload:
    """A block of planes that are all alike; its records come after those of the one before."""

    def payload(number: int) -> bytes:
        first = number * records
        numbers = varint.encode_signed([first, *[1] * (records - 1), 0, *[1] * (records - 1)])
        head = varint.encode([channels, records]) + numbers + bytes(records) + HEADS
        return head + plane * len(STATISTICS)

    return payload


def _heads() -> bytes:
    one = Block(*([np.array([0])] * 3), np.zeros((len(STATISTICS), 1, 1), np.int16))
    # A header, two sizes, three numbers, then heads, then three bytes for each plane.
    return encode_block(one, tag="", lineage=0)[12 + 5 : -3 * len(STATISTICS)]


HEADS = _heads()
CONSTANT = bytes(3)


def deflated(size: int) -> bytes:
    data = zlib.compress(bytes(size), 9)
    return bytes([1]) + varint.encode([len(data)]) + data


def packed(size: int, begin: bytes = b"", filler: bytes = b" ") -> bytes:
    """Deflated JSON of a size, of one filler."""
    raw = begin + filler * ((size - len(begin)) // len(filler))
    return varint.encode([len(raw)]) + zlib.compress(raw, 9)


def description(**changes: Any) -> Payload:
    return lambda number: json_payload.pack({**DESCRIBED, **changes, "origin": f"{number}"})


LAYERS, VARIABLES = (list(map(asdict, part)) for part in files.network({"conv1": 4}))
DESCRIBED = asdict(Description(5, 1, "9c1e", 1, "previous", 1, 1.7e9, {}))
DESCRIBED |= {"layers": LAYERS, "variables": VARIABLES, "audited": True}


def many(count: int, together: Sequence[Sequence[int]] = (), **changes: Any) -> Payload:
    """A description of many layers of one variable."""
    layers = [{**LAYERS[0], "id": f"l{n}", "variables": [f"l{n}/k"]} for n in range(count)]
    variables = [{**VARIABLES[0], "id": f"l{n}/k", "layer": f"l{n}", **changes}
                 for n in range(count)]  # fmt: skip
    return description(layers=layers, variables=variables, together=together)


def shared(number: int) -> bytes:
    """Layers of 2,048 channels, half of which share a series: in each lineage other ones."""
    own = [[n for n in range(512) if n >> number % 9 & 1 == bit] for bit in (0, 1)]
    return many(512, together=own)(number)


def one(**changes: Any) -> Payload:
    return description(variables=[{**VARIABLES[0], **changes}, *VARIABLES[1:]])


def timeline(records: int, groups: int, noted: int = 0) -> Payload:
    def payload(number: int) -> bytes:
        head = varint.encode([records, number * records + records, 0, 0, 0])
        steps = varint.encode_signed([number * records, *[1] * (records - 1)])
        steps += varint.encode_signed([0, *[1] * (records - 1)])
        texts = b"".join(varint.encode([3]) + n.to_bytes(3, "big") + b"\1" for n in range(noted))
        rates = varint.encode([groups]) + bytes(8 * groups * records)
        return head + steps + bytes(9 * records) + varint.encode([noted]) + texts + rates

    return payload


def mask(elements: int, coding: int, data: bytes = b"") -> Payload:
    return lambda number: varint.encode([number, 0, elements, coding]) + data


def changes(elements: int, count: int = 1) -> Payload:
    entry = {"step": 0, "variable": KERNEL, "mask": "kept", "through": 1, "elements": elements}
    return lambda number: json_payload.pack(
        {"changes": [{**entry, "number": number * count + n} for n in range(count)]}
    )


def violations(number: int) -> bytes:
    count = limits.MAX_VIOLATIONS
    entry = {"variable": KERNEL, "first_step": number, "last_step": number, "cause": "ema"}
    columns = {name: [1] * count for name in ("elements", "held", "largest")}
    return json_payload.pack({"violations": [{**entry, "channel": [*range(count)], **columns}]})


def probe(records: int, places: int, dimensions: int = 1) -> Payload:
    def payload(number: int) -> bytes:
        head = json_payload.pack({
            "measures": ["relative", "cosine", "divergence", "decisions"],
            "inputs": [{"name": f"{number}", "shape": [1] * dimensions, "dtype": ""}] * 16,
            "places": [{"kind": "layer", "name": f"{n}", "elements": number}
                       for n in range(places)],
            **{name: [*range(number * records, (number + 1) * records)]
               for name in ("sequence", "steps", "past_steps")},
        })  # fmt: skip
        values = zlib.compress(bytes(16 * records * places), 9)
        return varint.encode([len(head)]) + head + values

    return payload


Message = tuple[str, Kind, Payload]


def messages() -> dict[str, list[Message]]:
    """The hostile messages of each bomb; each is repeated."""
    width, cells = limits.MAX_CHANNELS, limits.MAX_CELLS
    describe = lambda payload: [(TAG_DESCRIPTION, Kind.DESCRIPTION, payload)]  # noqa: E731
    channels = lambda payload: (channels_tag(KERNEL), Kind.CHANNELS, payload)  # noqa: E731
    large = 1 << 28
    bits = (mask_tag("kept", KERNEL), Kind.MASK)
    log = lambda payload: (TAG_MASKS, Kind.MASKS, payload)  # noqa: E731
    wide = describe(one(channels=width, shape=[width]))
    return {
        "channels": [*wide, channels(block(1, width, CONSTANT))],
        "channels deflated": [*wide, channels(block(1, width, deflated(2 * width)))],
        "cells": [*describe(one(channels=4096, shape=[4096])),
                  channels(block(cells >> 12, 4096, CONSTANT))],
        "cells deflated": [*describe(one(channels=4096, shape=[4096])),
                           channels(block(cells >> 12, 4096, deflated(2 * cells)))],
        "together": [*describe(shared),
                     (together_tag("l0/k"), Kind.CHANNELS, block(limits.MAX_RECORDS, 1024, CONSTANT))],
        "records": [channels(block(limits.MAX_RECORDS, 4, CONSTANT))],
        "described channels": describe(many(300, channels=width, shape=[width])),
        "described layers": describe(many(25_000)),
        "layers and records": [*describe(many(4_000)),
                               (TAG_TIMELINE, Kind.TIMELINE, timeline(256, 0))],
        "shape": describe(one(shape=[1 << 31, 1 << 32, 4])),
        "dimensions": describe(one(shape=[1 << 53] * 400)),
        "elements": describe(one(elements=limits.MAX_WEIGHTS)),
        "digits": describe(one(axis="-" + "9" * 5_000)),
        "names": describe(one(role="x" * limits.MAX_NAME)),
        "groups": describe(description(groups=["g"] * 100_000)),
        "skipped": describe(description(skipped=[["a", "b"]] * 100_000)),
        "JSON": describe(lambda _: packed(limits.MAX_JSON)),
        "JSON values": describe(lambda _: packed(limits.MAX_JSON, b"[", b"[],")),
        "timeline": [(TAG_TIMELINE, Kind.TIMELINE, timeline(limits.MAX_RECORDS, 0))],
        "rates": [(TAG_TIMELINE, Kind.TIMELINE, timeline(1, limits.MAX_GROUPS))],
        "notes": [(TAG_TIMELINE, Kind.TIMELINE, timeline(1, 0, limits.MAX_RECORDS))],
        "mask of ones": [*describe(one(shape=[large])), log(changes(large)),
                         (*bits, mask(large, 1))],
        "mask deflated": [*describe(one(shape=[large])), log(changes(large)),
                          (*bits, mask(large, 3, zlib.compress(bytes(large // 8), 9)))],
        "mask at the limit": [log(changes(limits.MAX_MASK)), (*bits, mask(limits.MAX_MASK, 1))],
        "mask changes": [log(changes(36, 10_000))],
        "violations": [(TAG_VIOLATIONS, Kind.VIOLATIONS, violations)],
        "probe values": [(TAG_FUNCTION, Kind.FUNCTION, probe(256, 4_096))],
        "probe places": [(TAG_FUNCTION, Kind.FUNCTION, probe(1, 20_000))],
        "probe inputs": [(TAG_FUNCTION, Kind.FUNCTION, probe(1, 1, limits.MAX_DIMENSIONS))],
        "overhead": [(TAG_OVERHEAD, Kind.OVERHEAD,
                      lambda _: varint.encode([limits.MAX_NUMBERS, *[1 << 53] * limits.MAX_NUMBERS]))],
    }  # fmt: skip


def own(**content: Any) -> dict[str, Any]:
    """The plugin content of a series of a user's own writer."""
    return {"v": 1, "shape": [3, 4], "axis": "-1", "channels": 4, **content}


OWN = {
    "own digits": own(shape=[2**53] * 400),
    "own channels": own(channels=2**53, shape=[3, 2**53]),
    "own channels at the limit": own(channels=limits.MAX_CHANNELS, shape=[limits.MAX_CHANNELS]),
    "own nothing": own(channels=0, shape=[0]),
    "own axis": own(axis="\x1b[2J" + "9" * 9_000),
    "own text": own(channels="4"),
}


def names() -> list[tuple[str, int, bool]]:
    """Of all bombs: what is in it, how often, and whether each repeat is a lineage of its own."""
    kinds = [
        (name, repeats, False)
        for name in (*messages(), *OWN)
        for repeats in REPEATS
        if name not in FULL or repeats < max(REPEATS)
    ]
    # So many variables of a thousand lineages cost as much wherever their records are.
    kinds.append(("together", 10, True))
    again = ("described layers", "described channels", "channels", "violations", "JSON")
    return kinds + [(name, repeats, True) for name in again for repeats in REPEATS[1:]]


def write(logdir: Path, name: str, repeats: int, lineages: bool) -> None:
    """Writes a bomb as the run "bad" beside a good one, up to `MOST_BYTES`."""
    files.write_run(logdir, "good", range(1, 9), layers={"conv1": 4})
    if name in OWN:
        _write_own(logdir / "bad", OWN[name], repeats)
        return
    hostile = messages()[name]
    writer = files.LineageWriter(logdir, "bad", layers={"conv1": 4})
    written = 0
    for number in range(repeats):
        if not number or lineages:
            writer = replace(writer, ordinal=number + 1, written=0, lineage=number + 1)
            writer.describe(0)
        for tag, kind, payload in hostile:
            data = payload(number)
            step = 10**6 * (number + 1) if lineages else (number + 1) * limits.MAX_RECORDS
            written += len(data) + 150
            if written > MOST_BYTES and number:
                return
            writer.put(tag, step, seal(data, kind, tag=tag, step=step, lineage=writer.lineage))


def _write_own(folder: Path, content: dict[str, Any], repeats: int) -> None:
    folder.mkdir()
    channels = content["channels"] if isinstance(content["channels"], int) else 4
    payload = block(1, min(max(channels, 1), limits.MAX_CHANNELS), CONSTANT)
    with (folder / "events.out.tfevents.1.x").open("wb") as file:
        for number in range(repeats):
            step, tag = number % 4 + 1, f"layer{number // 4}/kernel"
            data = seal(payload(step), Kind.CHANNELS, tag=tag, step=step, lineage=0)
            file.write(
                files.frame(files.event(tag, step, data, content=json.dumps(content).encode()))
            )


ROUTES: list[tuple[str, dict[str, Any]]] = [
    ("/index", {}),
    *((route, {"run": "bad"}) for route in ("/overview", "/records", "/violations", "/function",
                                            "/findings", "/export.csv")),
    *((route, {"run": "bad", "layer": "conv1", "channel": 0}) for route in ("/channel", "/export.csv")),
    ("/layer", {"run": "bad", "layer": "conv1"}),
    *(("/overlap", {"run": ["bad", "good"], "unit": unit, "mask": mask})
      for unit in ("weights", "channels") for mask in ("kept", "trainable")),
    *(("/overlap_layers", {"run": "bad", "other": other}) for other in ("bad", "good")),
    ("/overlap_layers", {"run": "bad", "other": "good", "unit": "channels"}),
    ("/overview", {"run": "good"}),
]  # fmt: skip


@contextmanager
def counted_cells() -> Iterator[list[int]]:
    """Counts channels times records, as blocks are opened."""
    from tb_pastnet.reader import series

    total, opened = [0], series.open_block

    def counting(*arguments: Any, **more: Any) -> Any:
        block = opened(*arguments, **more)
        total[0] += block.channels * len(block.steps)
        return block

    series.open_block = counting  # type: ignore[attr-defined]
    try:
        yield total
    finally:
        series.open_block = opened  # type: ignore[attr-defined]


Action = tuple[str, Callable[[], object]]


def tab(logdir: Path) -> Iterator[Action]:
    """All that the page asks for."""
    from tests.tensorboards import board

    def asked(route: str, query: dict[str, Any]) -> None:
        status = here.get(route, **query).status_code
        assert status < 500, f"{route} answered {status}"

    with board(logdir, "slow") as here:
        for route, query in ROUTES:
            yield f"{route} {query}", lambda route=route, query=query: asked(route, query)


def notebook(logdir: Path) -> Iterator[Action]:
    """All that a program reads."""
    import tb_pastnet as pastnet

    log = pastnet.read(logdir)
    run = log.runs["bad"] if "bad" in list(log.runs) else log.runs["good"]
    for name in ("_repr_html_", "overview", "findings", "plot"):
        yield f"Run.{name}", getattr(run, name)
    yield "Run.violations", lambda: (run.violations, run.notes, run.function, repr(run))
    for layer in list(run.layers.values())[:1]:
        yield "Layer.masks", layer.masks
        for name in ("_repr_html_", "plot"):
            yield f"Layer.{name}", getattr(layer, name)
    yield "Log.overlap", lambda: log.overlap("bad", "good")


def command(words: str) -> Callable[[Path], Iterator[Action]]:
    """One of the command line, its log first."""
    name, *options = words.split()

    def action(logdir: Path) -> Iterator[Action]:
        from tb_pastnet.cli.main import main

        with tempfile.TemporaryDirectory() as folder:
            into = [f"{folder}/of-the-log"] if name == "export" else []
            yield words, lambda: main([name, str(logdir), *into, *options], *SILENT)

    return action


SILENT = io.StringIO(), io.StringIO()
COMMANDS = ["report", "report --json", "check", "verify --frozen *", "export --format csv",
            "export --format html", *["export --format parquet"] * bool(find_spec("pyarrow"))]  # fmt: skip
READERS = {"tab": tab, "notebook": notebook} | {words: command(words) for words in COMMANDS}
"""All that reads a log; each is a process of its own, as it is for users."""


def import_all() -> None:
    """Imports what `set_off` needs, for a process that forks others."""
    # TensorBoard's switch for its own stub: TensorFlow takes more memory than is allowed here.
    sys.modules.setdefault("tensorboard.compat.notf", ModuleType("notf"))
    from tb_pastnet.cli import check, export, html_file, report, verify  # noqa: F401
    from tb_pastnet.reader import plots  # noqa: F401
    from tests import tensorboards  # noqa: F401

    for name in ("matplotlib.figure", "matplotlib.backends.backend_agg", "pandas", "pyarrow"):
        if find_spec(name.partition(".")[0]):
            import_module(name)


def set_off(name: str, repeats: int, lineages: bool) -> dict[str, Any]:
    """Writes a bomb, reads it in every way, and returns what that took.

    Returns:
        `raised` is what isn't an error of ours, `over` the actions that decoded more
        channel-records than the table allows, `rss` the largest memory of a process in MiB, and
        `cpu` their seconds, which no test looks at.
    """
    with tempfile.TemporaryDirectory() as folder:
        bomb = [name, repeats, lineages]
        _in_a_process("bombs.write(pathlib.Path(logdir), *bomb)", logdir=folder, bomb=bomb)
        reads = "print(json.dumps(bombs.read(logdir, reader)))"
        said = [_in_a_process(reads, logdir=folder, reader=reader) for reader in READERS]
    costs = [json.loads(cost) for cost in said]
    return {
        "raised": [error for cost in costs for error in cost["raised"]],
        "over": {action: times for cost in costs for action, times in cost["over"].items()},
        "rss": max(cost["rss"] for cost in costs),
        "slowest": max((cost["slowest"] for cost in costs), key=lambda slowest: slowest[1]),
        "cpu": sum(cost["cpu"] for cost in costs),
    }


def _in_a_process(program: str, **given: Any) -> str:
    """What a program prints in a process of its own."""
    process = Interpreter(imports="from tests.security import bombs; bombs.import_all()")
    try:
        return process.run(
            f"import json, pathlib; from tests.security import bombs; {program}", **given
        )
    finally:
        process.close()


def read(logdir: str, reader: str) -> dict[str, Any]:
    """What one way of reading takes, in a process of its own."""
    from tb_pastnet.cli import html_file
    from tb_pastnet.errors import PastNetError
    from tb_pastnet.reader import store

    raised, over, times = [], {}, {}
    html_file.MOST_OF_DETAIL = 1 << 18  # more are the same requests again
    # The cache isn't what is measured: it has a limit of its own. One bundle of variables has room.
    store.Store.__init__.__defaults__ = (5 << 23, *store.Store.__init__.__defaults__[1:])  # type: ignore[index]
    stored = sum(path.stat().st_size for path in Path(logdir).rglob("*") if path.is_file())
    with counted_cells() as cells:
        for action, call in READERS[reader](Path(logdir)):
            cells[0], begin = 0, time.process_time()
            try:
                call()
            except PastNetError:
                pass
            except Exception as error:
                raised.append(f"{action}: {type(error).__name__}: {error}"[:200])
            # Without a cache, some read a variable up to three times: its account, states and
            # values. A file of the page has the answers of ten routes and the strips of up to twelve
            # findings, which may each read the run, and of a layer for each of its channels that
            # has room.
            html = "html" in action
            most = (22 if html else 3) * CELLS.most(stored) + html_file.MOST_OF_DETAIL * 128 * html
            over |= {action: cells[0] / most} if cells[0] > most else {}
            times[action] = time.process_time() - begin
    slowest = max(times, key=times.__getitem__)
    return {
        "raised": raised, "over": over, "slowest": [slowest, times[slowest]],
        "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10, "cpu": sum(times.values()),
    }  # fmt: skip


if __name__ == "__main__":
    sys.stdout.write(
        json.dumps(set_off(sys.argv[1], int(sys.argv[2]), sys.argv[3:] == ["lineages"]))
    )

"""No name of a request and no name in a log ever becomes a file that is opened."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.steps import ROOT

pytestmark = [pytest.mark.promise("hostile_names"), pytest.mark.promise("fuzz")]

SCRIPT = """
import json, os, random, sys
sys.modules["tensorflow"] = None  # it would open files where Python doesn't hear of it
from pathlib import Path
from tests.e2e import hostile
from tests.security.test_opened_files import asked
from tests.tensorboards import PREFIX, board
from tb_pastnet.serve.plugin import STATIC

log, plain, count = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
hostile.hostile(log)
hostile.hostile(plain)
(log / "secret.txt").write_text("secret")
opened, on = [], [False]

def hook(event, arguments):
    if on[0] and isinstance(arguments[0], (str, bytes, os.PathLike)) and event in {"open", "os.listdir", "os.scandir", "os.mkdir", "os.remove", "os.rename"}:
        opened.append(os.fsdecode(arguments[0]))

addresses = list(asked(random.Random(7), log, count))
with board(plain, "slow") as here:  # imports what is imported late
    for address in addresses:
        here.client.get(address)
sys.addaudithook(hook)
on[0] = True
with board(log, "slow") as here:
    read, opened[:] = list(opened), []
    statuses = {}
    for address in addresses:
        status = here.client.get(address).status_code
        statuses[status] = statuses.get(status, 0) + 1
    asking = list(opened)
    here.client.get(PREFIX + "/index.js")
    on[0] = False
print("said:" + json.dumps({
    "read": [name for name in read if "tfevents" in name or str(log) in name],
    "asking": asking, "page": opened[len(asking):], "statuses": statuses,
    "static": str(STATIC), "log": str(log), "asked": len(addresses)}))
"""


def asked(chance, log: Path, count: int):
    """Addresses: every route with names that are paths of files that are there."""
    from urllib.parse import quote, urlencode

    from tb_pastnet.serve.plugin import STATIC
    from tb_pastnet.serve.routes import ROUTES
    from tests.e2e import hostile
    from tests.tensorboards import PREFIX

    paths = [
        "/etc/passwd", "../../../../../../etc/passwd", "..", ".", "/", "file:///etc/passwd",
        str(log), str(log / "secret.txt"), "secret.txt", str(STATIC / "index.js"), "index.js",
        "../plugin.py", "a\0/etc/passwd", "%2fetc%2fpasswd", "~", "$HOME", "|id", "C:\\\\",
        next(iter(map(str, log.rglob("*tfevents*"))), ""),
    ]  # fmt: skip
    names = [*paths, *hostile.RUNS, *hostile.LAYERS, *hostile.OUTPUTS]
    keys = ("run", "other", "layer", "variable", "channel", "function", "step", "since", "th")
    for _ in range(count):
        route = chance.choice(sorted(ROUTES))
        run = chance.choice(hostile.RUNS)
        query = [("run", run), ("run", chance.choice(hostile.RUNS)), ("other", run)]
        query += [("layer", chance.choice(hostile.LAYERS)), ("channel", "1")]
        for key in chance.sample(keys, chance.randrange(3)):
            query = [pair for pair in query if pair[0] != key] + [(key, chance.choice(names))]
        yield f"{PREFIX}{route}?{urlencode(query)}"
    for path in paths:
        if path == "index.js":
            continue  # the page itself
        yield f"{PREFIX}/{quote(path)}"
        yield f"{PREFIX}/{quote(path, safe='')}"
        yield f"{PREFIX}/index.js/{quote(path, safe='')}"


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.prove)])
def test_no_name_opens_a_file(tmp_path: Path, count: int, figure: Callable[..., None]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "log"), str(tmp_path / "plain"), str(count)],
        cwd=ROOT, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    (said,) = [line for line in done.stdout.splitlines() if line.startswith("said:")] or [None]
    assert said is not None, done.stderr
    found = json.loads(said.removeprefix("said:"))
    assert found["asking"] == []
    assert [Path(name) for name in found["page"]] == [Path(found["static"], "index.js")]
    # Reading opens event files and lists folders, below the log directory alone.
    assert any("tfevents" in name for name in found["read"])
    inside = Path(found["log"])
    for name in map(Path, found["read"]):
        assert name == inside or inside in name.parents, name
        assert name.is_dir() or "tfevents" in name.name, name
    assert set(found["statuses"]) == {"200", "400", "404"}
    figure(
        f"{found['asked']:,} requests with names of files to a log of names of files: "
        f"0 files opened by a name"
    )

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tools import bundle
from tools.browser import FRONTEND


@pytest.fixture
def static(tmp_path, monkeypatch):
    folder = tmp_path / "static"
    folder.mkdir()
    (folder / "index.js").write_bytes(b"committed")
    monkeypatch.setattr(bundle, "STATIC", folder)
    monkeypatch.setattr(bundle, "ROOT", tmp_path)
    return folder


def building(monkeypatch, files, code=0):
    def npm(script, env, dashes, folder):
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        return code, "broken" if code else "index.js: 0.2 KB gz"

    monkeypatch.setattr(bundle, "npm", npm)


def test_the_same_bytes_are_accepted(static, monkeypatch):
    building(monkeypatch, {"index.js": b"committed"})
    assert bundle.compare({}) == (0, "")


def test_other_bytes_and_new_files_are_named_and_the_committed_ones_stay(static, monkeypatch):
    building(monkeypatch, {"index.js": b"fresh", "new.css": b""})
    code, text = bundle.compare({})
    assert code == 1
    assert text == (
        "Could not accept the committed page: expected the bytes of a fresh build, got others in "
        "index.js, new.css. Call `python3 dev.py bundle` and commit static."
    )
    assert bundle.contents(static) == {"index.js": b"committed"}


def test_a_build_that_fails_shows_its_own_output(static, monkeypatch):
    building(monkeypatch, {"index.js": b"half"}, code=3)
    assert bundle.compare({}) == (3, "broken")
    assert bundle.contents(static) == {"index.js": b"committed"}


def test_the_notices_name_each_package_in_the_page_with_its_license():
    lock = json.loads((FRONTEND / "package-lock.json").read_text("utf-8"))["packages"]
    bundled = {
        path.removeprefix("node_modules/"): package["version"]
        for path, package in lock.items()
        if path and not package.get("dev")
    }
    notices = (bundle.STATIC / "notices.txt").read_text("utf-8")
    _, *parts = notices.split(f"\n{'=' * 80}\n\n")
    heads = [re.match(r"(\S+) (\S+), https://.+\n\n", part) for part in parts]
    assert {head[1]: head[2] for head in heads} == bundled
    for part in parts:
        assert re.search(r"Copyright \(c\) .+Permission is hereby granted.+AS IS", part, re.S)

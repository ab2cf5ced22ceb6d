"""A recorder leaves no trace on what is trained: flags, versions, gradients, attributes, hooks."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch")

from tests import modules_table


@pytest.mark.parametrize("name", modules_table.TABLE)
def test_a_module_of_torch_is_as_without_a_recorder(name: str, tmp_path: Path) -> None:
    build = modules_table.TABLE[name]
    expected = modules_table.torch_run(build)
    got = modules_table.torch_run(build, tmp_path / "run")
    assert got.errors == expected.errors
    for number, (here, there) in enumerate(zip(got.steps, expected.steps, strict=True)):
        assert here == there, f"step {number}"
    assert got.values == expected.values
    assert not got.views

from __future__ import annotations

import shutil
import subprocess

import pytest

from tb_pastnet.serve.explain import explaining_module, for_reader

HOSTILE = "</script><img src=x onerror=alert(1)>\"'`${1}\n\u2028\ud800\0"


def test_any_text_is_carried_as_a_string_of_ascii() -> None:
    source = explaining_module(HOSTILE, HOSTILE)
    assert source.isascii()
    assert "<" not in source.split("\n", 1)[0]
    assert "innerHTML" not in source


def test_it_is_a_module_with_a_render_function(tmp_path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node here to parse the module")
    file = tmp_path / "page.mjs"
    file.write_text(
        explaining_module(HOSTILE, "two") + "\nconsole.log(typeof render, LINES.length)"
    )
    done = subprocess.run([node, str(file)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "function 2"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ImportError("cannot import name 'x' from 'numpy' (/usr/lib/numpy/__init__.py)"),
         "ImportError: cannot import name 'x' from 'numpy'"),
        (ModuleNotFoundError("No module named 'numpy'"),
         "ModuleNotFoundError: No module named 'numpy'"),
        (ValueError("see /home/me/file"), "ValueError"),
        (OSError(2, "No such file", "/home/me/secret"), "FileNotFoundError: No such file"),
        (ValueError(), "ValueError"),
        (OSError(), "OSError"),
    ],
)  # fmt: skip
def test_an_error_is_told_without_paths(error: Exception, text: str) -> None:
    assert for_reader(error) == text

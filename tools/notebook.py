"""The notebook of the documentation: its cells run in IPython, and their outputs are stored.

`python -m tools.notebook` runs it in a new folder and replaces the outputs.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from base64 import b64encode
from pathlib import Path
from typing import Any

from tools.steps import ROOT, say

NOTEBOOK = ROOT / "docs" / "start" / "notebook.ipynb"

SERVER = "starts-a-server"
"""The tag of cells that aren't run here."""

Cell = dict[str, Any]


def read() -> dict[str, Any]:
    """The notebook as it is stored."""
    notebook: dict[str, Any] = json.loads(NOTEBOOK.read_text("utf-8"))
    return notebook


def code_of(notebook: dict[str, Any]) -> list[Cell]:
    """The cells that are run."""
    return [
        cell
        for cell in notebook["cells"]
        if cell["cell_type"] == "code" and SERVER not in cell["metadata"].get("tags", ())
    ]


def outputs_of(cells: list[Cell]) -> list[list[dict[str, Any]]]:
    """Runs cells one after the other in this process and returns the outputs of each.

    Raises:
        Exception: what a cell raised.
    """
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    results: list[Any] = []

    def keep(result: Any) -> None:
        if result is not None:
            results.append(result)

    # No file of history is kept.
    config = Config(HistoryManager={"enabled": False})
    shell = InteractiveShell(config=config, ipython_dir=str(Path.cwd()))
    shell.display_trap.hook = keep  # instead of printing it
    outputs = []
    for number, cell in enumerate(cells, 1):
        results.clear()
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            shell.run_cell("".join(cell["source"]), store_history=True).raise_error()
        text = printed.getvalue()
        streams = [{"output_type": "stream", "name": "stdout", "text": lines(text)}] if text else []
        outputs.append([*streams, *(_shown(shell, result, number) for result in results)])
    return outputs


def _shown(shell: Any, result: Any, number: int) -> dict[str, Any]:
    """A value in all forms that it has, as notebooks store it."""
    data, metadata = shell.display_formatter.format(result)
    for kind, content in data.items():
        data[kind] = b64encode(content).decode() if isinstance(content, bytes) else lines(content)
    return {
        "output_type": "execute_result",
        "execution_count": number,
        "data": data,
        "metadata": metadata,
    }


def lines(text: str) -> list[str]:
    """A text as notebooks store it."""
    return text.splitlines(keepends=True)


def main() -> None:
    """Runs the notebook and stores the outputs."""
    notebook = read()
    cells = code_of(notebook)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        outputs = outputs_of(cells)
        os.chdir(ROOT)
    for number, (cell, shown) in enumerate(zip(cells, outputs, strict=True), 1):
        cell |= {"execution_count": number, "outputs": shown}
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")
    say(f"{NOTEBOOK.relative_to(ROOT)}: {NOTEBOOK.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    main()

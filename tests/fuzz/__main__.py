"""Fuzzes the decoders, guided by the branches that inputs reach: `python -m tests.fuzz FOLDER`.

FOLDER is filled with the golden files and with corpus.txt first. What follows it goes to libFuzzer,
such as `-max_total_time=60`. `FOLDER --keep` adds what was found to corpus.txt.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["tb_pastnet"]):
    from tests.fuzz import corpus, decoders

MOST = 4096  # bytes of one input: the largest golden file, and then some
LIMITS = ("-malloc_limit_mb=600", "-rss_limit_mb=2048", "-timeout=20", f"-max_len={MOST}")


def main(argv: Sequence[str]) -> None:
    """Runs until libFuzzer ends the process: 0, or another code where an input fails."""
    folder, *flags = argv
    path = Path(folder)
    if flags == ["--keep"]:
        corpus.keep(one.read_bytes() for one in path.iterdir() if one.stem[:4] != "seed")
        return
    path.mkdir(parents=True, exist_ok=True)
    for at, one in enumerate([*corpus.golden(), *corpus.kept()]):
        (path / f"seed{at:04d}").write_bytes(one)
    atheris.Setup([sys.argv[0], *LIMITS, folder, *flags], decoders.check)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])

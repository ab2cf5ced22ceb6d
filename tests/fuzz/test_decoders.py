"""Whatever bytes stand in a log: they are read, or refused by an error of ours."""

from __future__ import annotations

import importlib.util
import os
import re
import resource
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_pastnet.errors import UnreadableRecord
from tests.examples import examples
from tests.fuzz import corpus, decoders

pytestmark = pytest.mark.promise("fuzz")

SECONDS = int(os.environ.get("PASTNET_FUZZ_SECONDS", "60"))


@given(st.integers(0, 255), st.binary(max_size=200))
@examples(8)
def test_any_bytes_are_read_or_refused(way, data):
    decoders.check(bytes([way]) + data)


@given(st.sampled_from([*corpus.golden(), *corpus.kept()]), st.data())
@examples(8)
def test_what_was_valid_and_then_altered_is_read_or_refused(seed, data):
    altered = bytearray(seed)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(1, len(altered)))
        altered[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    decoders.check(bytes(altered))


def test_all_inputs_that_are_kept_are_read_or_refused(figure):
    seeds = [*corpus.golden(), *corpus.kept()]
    for seed in seeds:
        decoders.check(seed)
    assert {seed[0] for seed in seeds} >= set(range(len(decoders.WAYS)))
    figure(f"decoders: {len(seeds)} kept inputs, only errors of ours")


def test_golden_files_decode_in_the_harness(monkeypatch):
    """Else a fuzzer would see nothing behind the checksum."""
    found = []
    proofs = dict.fromkeys(decoders.PROOFS, found.append)
    monkeypatch.setattr(decoders, "PROOFS", proofs)
    seeds = list(corpus.golden())
    for seed in seeds:
        decoders.check(seed)
    assert len(found) == sum(
        seed[0] < len(decoders.WAYS) and "sealed" in decoders.WAYS[seed[0]].name for seed in seeds
    )


def test_another_error_than_ours_is_not_swallowed(monkeypatch):
    def fail(*args, **kwargs):
        raise IndexError("in a decoder")

    monkeypatch.setattr(decoders, "DECODERS", dict.fromkeys(decoders.DECODERS, fail))
    with pytest.raises(IndexError, match="in a decoder"):
        decoders.check(b"\0")


def test_a_refusal_is_of_our_errors():
    way = next(way for way in decoders.WAYS if way.name == "channels, sealed")
    with pytest.raises(UnreadableRecord, match="expected 1 more bytes, got 0"):
        decoders.DECODERS[way.kind](way.message(b""), **decoders.PLACE)


@pytest.mark.prove
@pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None,
    reason="atheris isn't installed: it is for Linux on x86-64 alone, and part of the extra `prove`",
)
def test_a_fuzzer_guided_by_branches_finds_nothing(tmp_path, figure):
    command = [sys.executable, "-m", "tests.fuzz", tmp_path / "corpus"]
    # What this process has had at most, Linux counts as the new one's, too.
    inherited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    flags = [f"-max_total_time={SECONDS}", f"-artifact_prefix={tmp_path}/"]
    flags.append(f"-rss_limit_mb={inherited + 2048}")
    done = subprocess.run([*command, *flags], capture_output=True, text=True, check=False)
    crashes = [path.read_bytes().hex() for path in tmp_path.iterdir() if path.is_file()]
    assert done.returncode == 0, (
        f"Add to {corpus.KEPT.name}, then mend: {crashes}\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
    )
    runs = re.search(r"Done (\d+) runs in (\d+) second", done.stderr)
    assert runs is not None, done.stderr[-2000:]
    assert int(runs[1]) > 10_000
    covered = re.findall(r"cov: (\d+)", done.stderr)[-1]
    figure(
        f"decoders under atheris: {int(runs[1]):,} inputs in {runs[2]} s, {covered} branches, "
        "only errors of ours"
    )

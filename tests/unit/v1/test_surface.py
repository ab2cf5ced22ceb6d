"""The public names for TF1-style graphs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tb_pastnet import v1
from tools.steps import ROOT


def test_the_public_surface_is_all():
    assert v1.__all__ == [
        "MASK_VARIABLES",
        "PAST_VARIABLES",
        "ClonedGraph",
        "Masks",
        "PastGraph",
        "Recorder",
        "RecorderHook",
        "SyncHook",
        "clone_network",
        "past_network",
        "summary",
        "sync_op",
    ]
    assert dir(v1) == sorted(v1.__all__)
    for name in v1.__all__:
        assert getattr(v1, name) is getattr(v1, name)
        assert getattr(v1, name).__doc__, name


def test_a_name_that_is_not_public_is_refused():
    with pytest.raises(AttributeError, match=r"module 'tb_pastnet\.v1' has no attribute 'Past'"):
        v1.Past  # noqa: B018


def test_importing_loads_no_tensorflow():
    program = "import sys, tb_pastnet; tb_pastnet.v1; print('tensorflow' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, text=True, capture_output=True, check=False
    )
    assert (done.stdout.strip(), done.stderr) == ("False", "")

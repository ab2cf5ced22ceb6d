"""What holds for every test."""

from __future__ import annotations

import os

import hypothesis

from tests.patience import be_patient

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

# Two cores, shared with other work: a slow example is no failure.
# `--hypothesis-profile=thorough` digs deeper.
hypothesis.settings.register_profile("change", deadline=None, max_examples=50, print_blob=True)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=2000, print_blob=True)
hypothesis.settings.load_profile("change")

be_patient()

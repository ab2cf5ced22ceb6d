"""What is read of the pytree that a step passes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX isn't installed: an extra of its own")

from tb_pastnet.jax.tree import Tree  # noqa: E402


class Device(NamedTuple):
    """Where an array lies."""

    platform: str


class Remote(np.ndarray):
    """An array that says where it lies, and counts how often its copy was asked for."""

    def devices(self):
        return {Device(self.platform)}

    def copy_to_host_async(self):
        self.asked.append(self.platform)


def test_only_what_is_asked_for_is_fetched_and_only_from_an_accelerator():
    asked = []

    def array(platform):
        made = np.ones(3).view(Remote)
        made.platform, made.asked = platform, asked
        return made

    params = {"a": array("gpu"), "b": array("cpu"), "c": array("tpu"), "d": np.ones(3)}
    tree = Tree(params)
    with tree.seen(params):
        tree.fetch(["a", "b", "d"])
        assert asked == ["gpu"]
        assert tree.read(0).tolist() == [1, 1, 1]

"""Which leaves are recorded, and with what name and reason."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="its room is tested where JAX is installed")

from tb_pastnet.jax.recorded_leaves import network_of  # noqa: E402
from tb_pastnet.jax.tree import Tree  # noqa: E402


def network(params, **options):
    return network_of(params, Tree(params), **options)


def spread(*, addressable, replicated):
    """What an array looks like that several processes have a part of."""
    return SimpleNamespace(
        dtype=np.dtype("float32"),
        shape=(2, 3),
        size=6,
        is_fully_addressable=addressable,
        is_fully_replicated=replicated,
    )


def test_an_array_is_recorded_where_this_process_can_read_it():
    params = {
        "here": spread(addressable=True, replicated=False),
        "everywhere": spread(addressable=False, replicated=True),
        "elsewhere": spread(addressable=False, replicated=False),
    }
    recorded = network(params)
    assert [weight.name for weight in recorded.weights] == ["everywhere", "here"]
    assert recorded.skipped == (("elsewhere", "parts of it are in other processes"),)


def test_names_are_paths_through_any_container():
    array = np.ones(2)
    params = {"a": [array, (array, {"b": array})], 3: array}
    with pytest.raises(ValueError, match="Comparator raised exception while sorting"):
        network(params)  # JAX itself sorts the keys of a dictionary
    names = [weight.name for weight in network({"a": params["a"], "c": {3: array}}).weights]
    assert names == ["a/0", "a/1/0", "a/1/1/b", "c/3"]


@jax.tree_util.register_pytree_node_class
class Pair:
    """A container that gives its parts without names."""

    def __init__(self, *parts):
        self.parts = parts

    def tree_flatten(self):
        return self.parts, None

    @classmethod
    def tree_unflatten(cls, structure, parts):
        return cls(*parts)


def test_a_container_of_its_own_kind_says_nothing_of_its_parts():
    params = Pair({"Dense_0": {"kernel": np.ones((2, 3))}}, np.ones(2))
    kinds = {weight.name: (weight.kind, weight.axis.text) for weight in network(params).weights}
    assert kinds == {"0/Dense_0/kernel": ("", "-1"), "1": ("Pair", "-1")}


def test_a_layer_groups_its_leaves_and_is_drawn_by_its_kernel():
    params = {"dense": {"bias": np.ones(4), "kernel": np.ones((3, 4))}, "scale": np.ones(2)}
    layers = {layer.id: layer for layer in network(params).layers}
    assert layers["dense"].main == "dense/kernel"
    assert layers["dense"].variables == ("dense/bias", "dense/kernel")
    assert layers["scale"].variables == ("scale",)


def test_what_follows_and_what_is_chosen_go_by_names():
    params = {"target": {"w": np.ones(2)}, "online": {"w": np.ones(2)}}
    recorded = network(params, variables=["*/w"], follows=["target/*"])
    follows = {weight.name: weight.text.follows for weight in recorded.weights}
    assert follows == {"online/w": False, "target/w": True}
    assert [each.name for each in network(params, variables=["online/w"]).weights] == ["online/w"]

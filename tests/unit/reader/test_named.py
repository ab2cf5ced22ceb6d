from __future__ import annotations

import pytest

from tb_pastnet.errors import UnknownName
from tb_pastnet.reader.named import Named

LAYERS = Named(
    {"block/conv1": 1, "block/conv2": 2, "side/conv2": 3, "head": 4}, "layer", "the model"
)


def test_full_names_and_ends_that_fit_one_are_found() -> None:
    assert [LAYERS[name] for name in ("block/conv1", "conv1", "side/conv2", "head")] == [1, 1, 3, 4]
    assert LAYERS.get("conv1") == 1
    assert LAYERS.get("nothing") is None


def test_it_is_a_mapping_in_its_order_and_of_full_names_alone() -> None:
    assert list(LAYERS.items())[1:3] == [("block/conv2", 2), ("side/conv2", 3)]
    assert ("head" in LAYERS, "conv1" in LAYERS, len(LAYERS)) == (True, False, 4)
    assert LAYERS._ipython_key_completions_() == list(LAYERS)


def test_what_fits_none_or_several_is_refused() -> None:
    with pytest.raises(
        UnknownName,
        match=r"Could not find layer 'conv': expected one of block/conv1, .*, got no match\. "
        r"Use a layer's path below the model, or the end of it\.",
    ):
        LAYERS["conv"]
    with pytest.raises(
        KeyError, match="expected a name that fits one layer, got 2 with this ending"
    ):
        LAYERS["conv2"]
    with pytest.raises(UnknownName, match="expected one of none at all, got no match"):
        Named({}, "run", "the log directory")["a"]


def test_it_shows_its_names() -> None:
    assert repr(LAYERS) == "4 layers: 'block/conv1', 'block/conv2', 'side/conv2', 'head'"
    assert repr(Named({"a\n\x1b[31m": 1}, "run", "")) == r"1 run: 'a\n\x1b[31m'"
    many = Named(dict.fromkeys(map(str, range(2000))), "layer", "")
    assert repr(many) == f"2,000 layers: {', '.join(repr(str(n)) for n in range(12))}, …"


def test_what_is_chosen_twice_by_other_names_is_there_once() -> None:
    assert LAYERS.chosen(["conv1", "head", "block/conv1", "head"]) == [1, 4]

"""The source of each target, as given or by its name."""

from __future__ import annotations

from typing import Any

import pytest

from tb_pastnet.core.follow_pairs import follow_pairs
from tb_pastnet.core.names import Called, Names
from tb_pastnet.errors import InvalidArgument, UnknownName

TARGET, ONLINE = object(), object()


def names(*paths: str, shape: tuple[int, ...] = (3, 2)) -> Names:
    handles = {"target": (TARGET,), "online": (ONLINE,)}
    return Names({path: Called(shape, (), handles.get(path.split("/")[0], ())) for path in paths})


BOTH = ("online/0/w", "online/0/b", "online/2/w", "target/0/w", "target/0/b", "target/2/w")
EXPECTED = {name: name.replace("target", "online") for name in BOTH if name.startswith("target")}


@pytest.mark.parametrize(
    "follows",
    [{TARGET: ONLINE}, {"target/*": "online/*"}, {"target": "online"}, TARGET, ["target"]],
)
def test_weights_of_layers_are_paired_by_their_names_below_these(follows: Any) -> None:
    named = names(*BOTH)
    assert follow_pairs(named, follows, named.all) == EXPECTED


def test_single_weights_are_paired_whatever_their_names() -> None:
    named = names("a/kernel", "b/weight", "c/w")
    assert follow_pairs(named, {"b/weight": "a/kernel"}, named.all) == {"b/weight": "a/kernel"}


@pytest.mark.parametrize(
    ("paths", "source"),
    [
        (["fc/w", "target/fc/w"], "fc/w"),  # a copy inside the model
        (["net/online/fc/w", "net/target/fc/w"], "net/online/fc/w"),
        (["q/w", "target/w"], "q/w"),
        (["q/w", "ema/w", "target/w"], None),  # which of both?
        (["head/proj/w", "target/fc/w"], None),
        (["fc/v", "target/fc/w"], None),
        (["target/fc/w"], None),
    ],
)
def test_the_source_of_a_target_alone_is_found_if_it_is_clear(
    paths: list[str], source: str | None
) -> None:
    named = names(*paths)
    assert follow_pairs(named, [paths[-1]], named.all) == {paths[-1]: source}


def test_a_source_has_the_shape_of_its_target() -> None:
    named = Names({"q/w": Called((2, 3)), "target/w": Called((3, 2))})
    assert follow_pairs(named, ["target/w"], named.all) == {"target/w": None}
    with pytest.raises(InvalidArgument, match=r"expected one source of shape \(3, 2\)"):
        follow_pairs(named, {"target/w": "q/w"}, named.all)


@pytest.mark.parametrize(
    ("follows", "error"),
    [
        ({"target/0/w": "target/0/w"}, InvalidArgument),
        ({"target": "target"}, InvalidArgument),
        ({"target/0/w": "online/*"}, None),
        ({"target/0/w": ["online/0/w", "online/2/w"]}, None),
        ({"target/*": "online/0/w"}, InvalidArgument),
        ({"target": "nothing"}, UnknownName),
    ],
)
def test_pairs_that_do_not_fit_are_refused(follows: Any, error: type[Exception] | None) -> None:
    named = names(*BOTH)
    if error is None:
        assert follow_pairs(named, follows, named.all) == {"target/0/w": "online/0/w"}
        return
    with pytest.raises(error):
        follow_pairs(named, follows, named.all)

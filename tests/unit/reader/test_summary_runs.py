from __future__ import annotations

import pytest

from tb_pastnet.format.description import Series, encode_series
from tb_pastnet.reader import summary_runs as summaries
from tb_pastnet.reader.runs import CatalogRun
from tb_pastnet.reader.series_source import SeriesVersion


def versions(**shapes: tuple[int, ...]) -> dict[str, SeriesVersion]:
    return {
        tag.replace("__", "/"): SeriesVersion(
            1, "1.0", encode_series(Series(shape, "-1", shape[-1]))
        )
        for tag, shape in shapes.items()
    }


def described(**shapes: tuple[int, ...]) -> CatalogRun:
    found = summaries.describe("run", versions(**shapes))
    assert found is not None
    return found


def test_tags_of_one_parent_are_one_layer_drawn_by_its_kernel() -> None:
    run = described(a__b__bias=(4,), a__b__kernel=(3, 4), c__gamma=(5,))
    assert [(one.id, one.group, one.name, one.main) for one in run.layers] == [
        ("a/b", "a", "b", "a/b/kernel"),
        ("c", "", "c", "c/gamma"),
    ]


@pytest.mark.parametrize(
    ("tag", "shape", "role"),
    [
        ("x__kernel", (3, 4), "kernel"),
        ("x__embeddings", (9, 4), "kernel"),
        ("x__bias", (4,), "bias"),
        ("x__gamma", (4,), "scale"),
        ("x__moving_mean", (4,), "statistic"),
        ("x__mixing", (3, 4), "kernel"),
        ("x__alpha", (4,), "other"),
        ("weights", (3, 4), "kernel"),
    ],
)
def test_the_role_is_told_by_name_or_rank(tag: str, shape: tuple[int, ...], role: str) -> None:
    (variable,) = described(**{tag: shape}).variables.values()
    assert variable.role == role
    assert variable.channels == 4
    assert variable.elements == (shape[0] if len(shape) > 1 else 1)


def test_a_tag_without_a_parent_is_a_layer_of_its_own() -> None:
    (layer,) = described(weights=(3, 4)).layers
    assert (layer.id, layer.group, layer.name) == ("weights", "", "weights")


def test_it_is_dated_by_the_variable_that_is_cheapest_to_read() -> None:
    run = described(a__kernel=(3, 400), b__kernel=(3, 4), c__bias=(40,))
    assert summaries.thinnest(run) == "b/kernel"


def test_series_of_others_are_counted_and_left_out() -> None:
    mixed = {
        **versions(a__kernel=(3, 4)),
        "b": SeriesVersion(1, "1.0", b"garbage"),
        "c": SeriesVersion(1, "", b""),
    }
    assert summaries.foreign(mixed) == 2
    found = summaries.describe("run", mixed)
    assert found is not None
    assert list(found.variables) == ["a/kernel"]
    assert summaries.describe("run", {"b": SeriesVersion(1, "1.0", b"{}")}) is None

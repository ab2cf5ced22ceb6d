from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from tb_pastnet.format.description import Description, LayerEntry
from tb_pastnet.format.overhead import Overhead
from tb_pastnet.format.tags import RunName, channels_tag
from tb_pastnet.format.timeline import Timeline
from tb_pastnet.reader.lineage_heads import LineageHead
from tb_pastnet.reader.runs import TimeAxis, by_writer, join_lineages
from tb_pastnet.reader.series_source import SeriesVersion
from tests import event_files as files


def lineage(
    ordinal: int,
    steps: range,
    layers: Mapping[str, int] | None = None,
    *,
    stored: tuple[str, ...] = (),
    **more: int,
) -> LineageHead:
    at = np.array(steps, np.int64)
    offered = more.pop("offered", len(at))
    damaged = more.pop("damaged", 0)
    line = Timeline(np.arange(len(at)), at, at * 1.0, at * 0.1, offered, **more)
    described = None
    if layers is not None:
        made, variables = files.network(layers)
        described = Description(
            ordinal, ordinal, f"o{ordinal}", 1, "previous", steps.start, 0.0, {}, made, variables
        )
    versions = {channels_tag(one): SeriesVersion(0, "", b"") for one in stored}
    name = RunName("a", ordinal, ordinal)
    return LineageHead(f"r{ordinal}", name, versions, described, line, damaged, Counter())


def test_lineages_are_ordered_by_their_ordinal() -> None:
    (ordered,) = by_writer([lineage(2, range(5, 9)), lineage(1, range(5))])
    run = join_lineages("a", ordered)
    assert run.tb_runs == ("r1", "r2")
    assert run.axis.steps.tolist() == list(range(9))
    assert run.axis.wall_times.tolist() == list(range(9))


def test_equal_ordinals_are_ordered_by_id() -> None:
    first, second = lineage(1, range(5)), lineage(1, range(5, 9))
    later = replace(first, name=first.name._replace(lineage=9))
    assert by_writer([later, second]) == [[second, later]]


def test_the_account_of_all_lineages_adds_up() -> None:
    run = join_lineages(
        "a",
        [
            lineage(1, range(20), offered=30, thinned=4, dropped=1),
            lineage(2, range(15, 25), offered=10, damaged=1),
        ],
    )
    account = run.account
    assert (account.shown, account.superseded) == (25, 5)
    assert (account.thinned, account.dropped, account.unreadable) == (4, 1, 6)
    assert account.offered == 41


def test_what_lineages_cost_adds_up_where_they_tell() -> None:
    one = replace(lineage(1, range(5)), overhead=Overhead(steps=5, training=2.0, probe=0.5))
    two = lineage(2, range(3, 9))
    assert join_lineages("a", [two]).overhead is None
    assert join_lineages("a", [one, two]).overhead == one.overhead
    three = replace(lineage(3, range(9, 12)), overhead=Overhead(steps=3, bytes=99))
    expected = Overhead(steps=8, training=2.0, probe=0.5, bytes=99)
    assert join_lineages("a", [one, two, three]).overhead == expected


def test_the_latest_network_stands_and_what_is_gone_follows() -> None:
    run = join_lineages(
        "a", [lineage(1, range(5), {"x": 2, "y": 3}), lineage(2, range(5, 9), {"y": 4})]
    )
    assert [layer.id for layer in run.layers] == ["y", "x"]
    assert run.variables["y/kernel"].channels == 4
    assert run.origin == "o2"


@pytest.mark.parametrize(
    ("packages", "can_probe"),
    [
        (["keras", "tensorflow"], True),
        (["keras", "torch"], False),
        (["keras", "jax"], False),
        (["torch"], False),
        (["jax", "flax", "optax"], False),
        ([], False),
    ],
)
def test_only_keras_on_tensorflow_can_record_a_probe(packages: list[str], can_probe: bool) -> None:
    one = lineage(1, range(5), {"x": 2})
    assert one.description is not None
    versions = dict.fromkeys(["tb-pastnet", *packages], "1.0")
    described = replace(one.description, versions=versions)
    assert join_lineages("a", [replace(one, description=described)]).can_probe is can_probe
    assert not join_lineages("a", [lineage(1, range(5))]).can_probe


def test_an_unreadable_description_leaves_that_of_the_lineage_before() -> None:
    run = join_lineages("a", [lineage(1, range(5), {"x": 2}), lineage(2, range(5, 9))])
    assert [layer.id for layer in run.layers] == ["x"]
    assert run.past == "previous"


def test_a_series_is_looked_for_where_it_is_and_where_it_should_be() -> None:
    first = lineage(1, range(5), {"x": 2})
    second = lineage(2, range(5, 9), stored=("x/kernel",))
    third = lineage(3, range(9, 12))
    places = join_lineages("a", [first, second, third]).bundles["x/kernel"].parts
    assert [place.tb_run for place in places] == ["r1", "r2"]


def test_a_layer_without_a_known_variable_is_left_out_and_a_wrong_main_replaced() -> None:
    known = lineage(1, range(5), {"x": 2})
    assert known.description is not None
    layers = (
        LayerEntry("x", "", "x", "Dense", ("x/kernel", "x/bias", "x/kernel", "gone"), "gone"),
        LayerEntry("y", "", "y", "Dense", ("y/kernel",), "y/kernel"),
    )
    odd = Description(**{**vars(known.description), "layers": layers})
    run = join_lineages("a", [LineageHead(**{**_fields(known), "description": odd})])
    assert [(one.id, one.main, one.variables) for one in run.layers] == [
        ("x", "x/kernel", ("x/kernel", "x/bias"))
    ]


def _fields(one: LineageHead) -> dict[str, object]:
    return {name: getattr(one, name) for name in one.__dataclass_fields__}


def test_a_run_of_which_nothing_can_be_read_is_a_run() -> None:
    run = join_lineages("a", [lineage(1, range(0), damaged=3)])
    assert (run.layers, len(run.axis.steps), run.past) == ((), 0, "")
    assert (run.account.offered, run.account.unreadable) == (3, 3)


def test_the_version_changes_with_any_series() -> None:
    before = join_lineages("a", [lineage(1, range(5), {"x": 2})])
    after = join_lineages("a", [lineage(1, range(5), {"x": 2}, stored=("x/kernel",))])
    assert before.version == join_lineages("a", [lineage(1, range(5), {"x": 2})]).version
    assert before.version != after.version


@pytest.mark.parametrize(
    ("rates", "several"),
    [
        ([[np.nan] * 3, [0.1, 0.1, 0.1], [0.1, 0.1, 0.2]], True),
        ([[np.nan] * 3, [0.1, 0.2, 0.3], [0.1, np.nan, 0.3]], False),
        ([[0.1, 0.2, 0.3]], False),
        ([[]], False),
    ],
)
def test_headers_say_where_groups_have_several_rates(
    rates: list[list[float]], several: bool
) -> None:
    none = np.zeros(0)
    axis = TimeAxis(none.astype(np.int64), none, none, np.array(rates))
    assert axis.facts() == ({"several_rates": True} if several else {})

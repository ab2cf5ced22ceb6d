from __future__ import annotations

import pytest
from werkzeug.datastructures import MultiDict

from tb_pastnet.core.account import Account
from tb_pastnet.format.description import LayerEntry, VariableEntry
from tb_pastnet.reader.catalog import Catalog
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.runs import NO_AXIS, SINK, CatalogRun
from tb_pastnet.reader.store import Store
from tb_pastnet.serve.http.parameters import Query
from tb_pastnet.serve.http.web import Failure
from tests.providers import CALLER, MemoryProvider

KERNEL = VariableEntry("c/kernel", "c", "kernel", "kernel", (3, 4), "float32", "-1", True, 4, 3)
BIAS = VariableEntry("c/bias", "c", "bias", "bias", (4,), "float32", "0", True, 4, 1)
LAYER = LayerEntry("c", "", "c", "Dense", ("c/kernel", "c/bias"), "c/kernel")
RUN = CatalogRun(
    "a",
    SINK,
    (),
    (),
    (LAYER,),
    {v.id: v for v in (KERNEL, BIAS)},
    {},
    NO_AXIS,
    Account(),
    Notes(),
    0,
)


def query(arguments: dict[str, str]) -> Query:
    """A request for what a store with one run has."""
    store = Store(MemoryProvider())
    store.catalog = lambda _: Catalog({"a": RUN}, ())  # type: ignore[method-assign]
    return Query(store, CALLER, MultiDict(arguments))


def _fails(status: int, text: str, ask, *arguments) -> None:
    with pytest.raises(Failure) as caught:
        ask(*arguments)
    assert caught.value.status == status
    assert text in caught.value.message
    assert caught.value.message.startswith("Could not ")


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0.0), ("1e-4", 1e-4), (".5", 0.5), ("2.25", 2.25)]
)
def test_a_threshold_is_a_number_from_0_on(text: str, value: float) -> None:
    assert query({"th": text}).threshold() == value


def test_the_threshold_has_a_default() -> None:
    assert query({}).threshold() == 1e-4


@pytest.mark.parametrize("text", ["", "-1", "nan", "inf", "1e999", "1_0", "0x1", "١", "1\n", " 1"])
def test_any_other_threshold_is_refused(text: str) -> None:
    _fails(400, "expected th to be a number from 0 on", query({"th": text}).threshold)


def test_whole_numbers_are_parsed_strictly() -> None:
    def ask(text: str) -> int | None:
        return query({"n": text}).integer("n", least=-5, most=10)

    assert [ask("-5"), ask("+7"), ask("10")] == [-5, 7, 10]
    for text in ("", "11", "-6", "1.0", "1_0", "٣", "1e1", "9" * 5000, "0\n"):
        _fails(400, "expected a whole number from -5 to 10", ask, text)
    assert query({}).integer("n", least=0, most=1) is None


def test_a_run_is_looked_up() -> None:
    assert query({"run": "a"}).run().run is RUN
    _fails(400, "expected the parameter 'run'", query({}).run)
    _fails(404, "expected one of the 1 in the index, got 'b'", query({"run": "b"}).run)


def test_a_layer_is_looked_up() -> None:
    assert query({"run": "a", "layer": "c"}).layer() is LAYER
    _fails(400, "expected the parameter 'layer'", query({"run": "a"}).layer)
    _fails(404, "of run 'a', got '../c'", query({"run": "a", "layer": "../c"}).layer)


def test_a_variable_is_the_main_one_unless_named() -> None:
    layer = {"run": "a", "layer": "c"}
    assert query(layer).variable() is KERNEL
    assert query(layer | {"variable": "c/bias"}).variable() is BIAS
    _fails(404, "of layer 'c', got 'x'", query(layer | {"variable": "x"}).variable)


def test_a_channel_is_within_the_variable() -> None:
    layer = {"run": "a", "layer": "c"}
    assert query(layer | {"channel": "3"}).channel() == 3
    _fails(400, "expected the parameter 'channel'", query(layer).channel)
    _fails(400, "expected a whole number", query(layer | {"channel": "x"}).channel)
    for text in ("4", "-1"):
        _fails(404, "expected 0 to 3 of 'c/kernel'", query(layer | {"channel": text}).channel)

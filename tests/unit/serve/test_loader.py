from __future__ import annotations

import argparse
import ast
import copy
import sys
from pathlib import Path

import pytest
from tensorboard.plugins import base_plugin
from werkzeug.test import Client

from tb_pastnet.serve import loader
from tb_pastnet.serve.explain import StandInPlugin
from tb_pastnet.serve.loader import PastNetLoader
from tb_pastnet.serve.plugin import PastNetPlugin


def flags(**more: object) -> argparse.Namespace:
    return argparse.Namespace(samples_per_plugin=more)


def test_all_records_are_asked_for() -> None:
    found = flags(scalars=3)
    PastNetLoader().fix_flags(found)
    assert found.samples_per_plugin == {"scalars": 3, "pastnet": 0}


def test_a_users_own_choice_stands() -> None:
    found = flags(pastnet=7)
    PastNetLoader().fix_flags(found)
    assert found.samples_per_plugin == {"pastnet": 7}


@pytest.mark.parametrize(
    "odd",
    [
        argparse.Namespace(),
        argparse.Namespace(samples_per_plugin=None),
        argparse.Namespace(samples_per_plugin="scalars=3"),
        None,
    ],
)
def test_flags_of_another_shape_are_left_alone(odd: object) -> None:
    given = copy.deepcopy(odd)
    PastNetLoader().fix_flags(given)  # type: ignore[arg-type]
    assert given == odd


def test_all_records_are_asked_for_where_no_plugin_is_named() -> None:
    given = flags()
    PastNetLoader().fix_flags(given)
    assert given.samples_per_plugin == {"pastnet": 0}


def test_no_flag_is_added() -> None:
    parser = argparse.ArgumentParser()
    PastNetLoader().define_flags(parser)
    assert vars(parser.parse_args([])) == {}


def test_only_the_standard_library_and_the_base_class_are_imported() -> None:
    tree = ast.parse(Path(loader.__file__).read_text(encoding="utf-8"))
    names = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    assert names - set(sys.stdlib_module_names) == {"tensorboard.plugins"}


def test_the_plugin_is_loaded_and_never_says_that_it_is_active() -> None:
    plugin = PastNetLoader().load(base_plugin.TBContext())
    assert isinstance(plugin, PastNetPlugin)
    assert not plugin.is_active()
    assert plugin.data_plugin_names() == ("pastnet",)
    assert plugin.frontend_metadata().es_module_path == "/index.js"
    assert plugin.frontend_metadata().tab_name == "PastNet"


def test_a_missing_part_gives_a_stand_in_that_says_so(monkeypatch, caplog) -> None:
    monkeypatch.setitem(sys.modules, "tb_pastnet.serve.plugin", None)
    plugin = PastNetLoader().load(base_plugin.TBContext())
    assert isinstance(plugin, StandInPlugin)
    assert not plugin.is_active()
    assert plugin.plugin_name == "pastnet"
    assert plugin.frontend_metadata() == PastNetPlugin(base_plugin.TBContext()).frontend_metadata()
    response = Client(plugin.get_plugin_apps()["/index.js"]).get("/")
    page = response.get_data(as_text=True)
    assert response.mimetype == "text/javascript"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert "PastNet could not be loaded" in page
    assert "ModuleNotFoundError" in page
    assert "The PastNet tab could not be loaded" in caplog.text


def test_where_nothing_works_there_is_no_plugin_and_no_exception(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "tb_pastnet.serve.plugin", None)
    monkeypatch.setitem(sys.modules, "tb_pastnet.serve.explain", None)
    assert PastNetLoader().load(base_plugin.TBContext()) is None

from __future__ import annotations

import pytest

from demo import FIRST, LOTTERY, NAMES
from demo.frameworks import FRAMEWORKS


@pytest.mark.parametrize("framework", FRAMEWORKS.values(), ids=FRAMEWORKS)
def test_the_names_are_those_of_the_runs(framework):
    for package in framework.packages:
        pytest.importorskip(package, reason=f"needs {package}")
    assert tuple(framework.load().RUNS) == FIRST


def test_each_framework_has_a_directory_of_its_own():
    assert len({framework.logdir for framework in FRAMEWORKS.values()}) == len(FRAMEWORKS)


def test_a_missing_package_is_named_with_what_brings_it(monkeypatch):
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "optax" else object()
    )
    FRAMEWORKS["torch"].check(FIRST)
    expected = (
        "Could not train the demo with jax: expected the packages jax, optax, scikit-learn, got "
        "none called optax. Install with `pip install optax`, or call `python3 dev.py demo --framework jax`, "
        "which brings what it needs."
    )
    with pytest.raises(ModuleNotFoundError) as raised:
        FRAMEWORKS["jax"].check(FIRST)
    assert str(raised.value) == expected


def test_scikit_learn_goes_by_the_name_that_pip_knows(monkeypatch):
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "sklearn" else object()
    )
    with pytest.raises(ModuleNotFoundError, match="`pip install scikit-learn`"):
        FRAMEWORKS["torch"].check(FIRST)


def test_the_lottery_is_trained_by_keras_alone(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    FRAMEWORKS["keras"].check(NAMES)
    with pytest.raises(ValueError, match="Could not train 'lottery' with torch: expected some of"):
        FRAMEWORKS["torch"].check(["dense", LOTTERY])

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools import environment
from tools.steps import Failure


@pytest.fixture
def made(monkeypatch):
    """The programs that were called instead of being run."""
    calls: list[list[str]] = []
    monkeypatch.setattr(environment, "demand", lambda doing, command: calls.append(command))
    return calls


def test_with_ensurepip_the_environment_has_its_own_pip(made, monkeypatch, tmp_path):
    monkeypatch.setattr(environment, "can_bring_pip", lambda: True)
    pip = environment.make(tmp_path)
    assert made == [[sys.executable, "-m", "venv", "--clear", str(tmp_path)]]
    assert pip == [str(environment.venv_python(tmp_path)), "-m", "pip"]


def test_without_ensurepip_an_outer_pip_installs_into_it(made, monkeypatch, tmp_path):
    monkeypatch.setattr(environment, "can_bring_pip", lambda: False)
    monkeypatch.setattr(environment, "pip_version", lambda pip: (23, 0))
    pip = environment.make(tmp_path)
    assert "--without-pip" in made[0]
    inside = str(environment.venv_python(tmp_path))
    assert pip == [sys.executable, "-m", "pip", "--python", inside]


@pytest.mark.parametrize("version", [(), (20, 3)])
def test_without_any_pip_the_error_says_what_to_install(made, monkeypatch, tmp_path, version):
    monkeypatch.setattr(environment, "can_bring_pip", lambda: False)
    monkeypatch.setattr(environment, "pip_version", lambda pip: version)
    with pytest.raises(Failure, match=r"expected ensurepip, or pip 22\.3 or newer, for .*, got ne"):
        environment.make(tmp_path)
    assert made == []


def test_a_pip_that_does_not_run_has_no_version():
    assert environment.pip_version([sys.executable, "-c", "raise SystemExit(1)"]) == ()
    assert environment.pip_version(["no-such-program"]) == ()
    assert environment.pip_version([sys.executable, "-c", "print('pip 24.1.2 from')"]) == (24, 1)


def test_a_chosen_python_is_used_as_it_is(monkeypatch):
    monkeypatch.setenv("PASTNET_PYTHON", sys.executable)
    assert str(environment.ensure()) == sys.executable


def test_the_stamp_changes_with_what_is_installed(monkeypatch):
    before = environment.stamp()
    assert before == environment.stamp()
    monkeypatch.setattr(environment, "requirements", lambda: ["another"])
    assert environment.stamp() != before


def test_versions_that_are_held_fast_are_bounds_of_what_goes_with_them(made, tmp_path):
    venv = tmp_path / "pinned"
    venv.mkdir()
    for _ in range(2):
        inside = environment.ensure_pinned(venv, "python3.10", ["numpy==1.26.0"])
    create, install = made
    assert create == ["python3.10", "-m", "venv", "--clear", str(venv)]
    pip = [str(inside), "-m", "pip", "install", "--constraint", str(venv / "pins.txt")]
    wanted = environment.with_tensorflow("demo", "test", "fast")
    assert install[: len(pip) + len(wanted)] == [*pip, *wanted]
    assert (venv / "pins.txt").read_text("utf-8") == "numpy==1.26.0"
    environment.ensure_pinned(venv, "python3.10", ["numpy==1.26.4"])
    assert len(made) == 4


def test_an_extra_is_brought_once(made, monkeypatch, tmp_path):
    monkeypatch.setattr(environment, "VENV", tmp_path)
    monkeypatch.setattr(environment, "can_bring_pip", lambda: True)
    monkeypatch.setattr(environment, "venv_python", lambda venv=tmp_path: venv / "python")
    for _ in range(2):
        environment.bring("prove", tmp_path / "python")
    ((python, *command),) = made
    assert python == str(tmp_path / "python")
    assert command[:4] == ["-m", "pip", "install", "--editable"]
    assert command[4] == f"{environment.ROOT}[prove]"
    monkeypatch.setattr(environment, "stamp", lambda: "another")
    environment.bring("prove", tmp_path / "python")
    assert len(made) == 2


def test_a_new_environment_gets_its_extras_in_one_call(made, monkeypatch, tmp_path):
    monkeypatch.setattr(environment, "VENV", tmp_path)
    monkeypatch.setattr(environment, "can_bring_pip", lambda: True)
    monkeypatch.delenv("PASTNET_PYTHON", raising=False)
    for _ in range(2):
        assert environment.ensure(["dev-torch", "dev-jax"]) == environment.venv_python(tmp_path)
    _, install = made
    assert install[5].endswith(",dev,dev-torch,dev-jax]")
    environment.ensure(["dev-torch", "prove"])
    assert made[2][5] == f"{environment.ROOT}[prove]"
    assert len(made) == 3


def test_pip_leaves_compiling_to_imports(made):
    environment.install(["pip", "install", "numpy"], "install NumPy")
    assert "--no-compile" in made[0]


def test_a_chosen_python_gets_no_extra(made, tmp_path):
    environment.bring("prove", tmp_path / "python")
    assert made == []


def test_without_a_whole_environment_a_small_one_is_made_once(made, monkeypatch, tmp_path):
    monkeypatch.setattr(environment, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(environment, "SMALL", tmp_path / ".venv-fast")
    monkeypatch.setattr(environment, "can_bring_pip", lambda: True)
    monkeypatch.delenv("PASTNET_PYTHON", raising=False)
    for folder in (environment.VENV, environment.SMALL):
        folder.mkdir()
    small = environment.venv_python(environment.SMALL)
    assert [environment.ensure_small(), environment.ensure_small()] == [small, small]
    assert len(made) == 2
    assert f"{environment.ROOT}[test]" in made[1]
    assert not any("tensorflow" in word for word in made[1])
    (environment.VENV / environment.STAMP).write_text(environment.stamp())
    assert environment.ensure_small() == environment.venv_python(environment.VENV)


def test_the_site_needs_no_framework(made, monkeypatch, tmp_path):
    monkeypatch.setattr(environment, "SITE", tmp_path / ".venv-docs")
    monkeypatch.setattr(environment, "can_bring_pip", lambda: True)
    monkeypatch.delenv("PASTNET_PYTHON", raising=False)
    environment.SITE.mkdir()
    assert environment.ensure_docs() == environment.venv_python(environment.SITE)
    assert f"{environment.ROOT}[docs]" in made[1]
    assert not any("tensorflow" in word for word in made[1])


def test_what_is_compiled_once_is_kept(monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    env = environment.variables(Path(sys.executable))
    assert "PYTHONDONTWRITEBYTECODE" not in env
    assert Path(env["JAX_COMPILATION_CACHE_DIR"]).parent == environment.VENV
    timed = environment.variables(Path(sys.executable), repeatable=False)
    assert "JAX_COMPILATION_CACHE_DIR" not in timed

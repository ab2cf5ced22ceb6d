from __future__ import annotations

import functools
import json
import re
import sys
from pathlib import Path

import pytest

from tools import commands, environment
from tools.reach import Tree
from tools.steps import ROOT, Failure, Steps, demand


def test_what_follows_two_dashes_goes_to_pytest():
    arguments = commands.parse(["test", "--", "-k", "name"])
    assert (arguments.action, arguments.pytest) == (commands.test, ["-k", "name"])


def test_prove_writes_only_where_it_is_told_to():
    assert not commands.parse(["prove"]).write
    assert commands.parse(["prove", "--write"]).write


def extras_of(monkeypatch):
    """The extras that an environment is asked for, once it is."""
    extras: list[str] = []

    def ensure(needed):
        extras.extend(needed)
        return Path(sys.executable)

    monkeypatch.setattr(environment, "ensure", ensure)
    return extras


def test_what_follows_demo_goes_to_the_demo():
    arguments = commands.parse(["demo", "--once", "--logdir", "here"])
    assert (arguments.action, arguments.demo) == (commands.demo, ["--once", "--logdir", "here"])


@pytest.mark.parametrize(
    ("framework", "extras"), [("keras", []), ("torch", ["dev-torch"]), ("jax", ["dev-jax"])]
)
def test_the_demo_brings_the_framework_that_trains_it(framework, extras, ran, monkeypatch):
    brought = extras_of(monkeypatch)
    assert commands.main(["demo", "--framework", framework, "--once"]) == 0
    assert brought == extras
    assert ran[-1][1:] == ["-m", "demo", "--framework", framework, "--once"]


def test_every_command_is_explained():
    explained = [line.split()[0] for line in commands.TEXT.splitlines() if line[0] != " "]
    help_text = commands.parser().format_help()
    assert sorted(explained) == [
        "bench",
        "bundle",
        "demo",
        "docs",
        "lint",
        "matrix",
        "mutants",
        "prove",
        "test",
    ]
    assert all(f"\n{name} " in help_text for name in explained)
    for name in explained:
        assert callable(commands.parse([name]).action)


def test_an_unknown_command_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        commands.main(["fly"])
    assert "invalid choice: 'fly'" in capsys.readouterr().err


def test_a_failure_is_told_in_one_text(monkeypatch, capsys):
    def fail(extras):
        raise Failure("Could not make it.")

    monkeypatch.setattr(commands.environment, "ensure", fail)
    assert commands.main(["lint"]) == 1
    assert capsys.readouterr().err == "Could not make it.\n"


def test_an_unknown_benchmark_is_refused(monkeypatch, capsys):
    monkeypatch.setenv("PASTNET_PYTHON", sys.executable)
    assert commands.main(["bench", "nothing"]) == 1
    assert re.search(r"Could not run nothing: expected one of \w", capsys.readouterr().err)


WORKFLOWS = ROOT / ".github" / "workflows"
TREE = functools.cache(Tree)


@pytest.fixture
def ran(monkeypatch):
    """The commands that were called instead of being run, and what was brought."""
    calls: list[list[str]] = []
    monkeypatch.setenv("PASTNET_PYTHON", sys.executable)
    monkeypatch.setattr(commands.Session, "with_browser", lambda _: calls.append(["a browser"]))
    monkeypatch.setattr(commands, "run", lambda command, env: calls.append(command) or 0)
    monkeypatch.setattr("tools.steps.run", lambda command, env: calls.append(command) or 0)
    monkeypatch.setattr(commands, "page_steps", lambda *_: calls.append(["page"]))
    monkeypatch.setattr(commands, "Tree", TREE)
    return calls


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Where results lie, and rows that are all stale but `soak`."""
    monkeypatch.setattr(commands.promises, "RESULTS", tmp_path)
    forgotten = commands.promises.forget
    monkeypatch.setattr(commands.promises, "forget", lambda names: forgotten(names, tmp_path))
    monkeypatch.setattr(commands.promises, "load", list)

    def changed(self, row, commits):
        return int(row != "soak")

    monkeypatch.setattr(commands.staleness.Staleness, "changed", changed)
    return tmp_path


def test_prove_runs_the_files_of_chosen_rows_and_first_those_that_need_no_quiet(ran, results):
    (results / "tests.json").write_text(
        json.dumps({"results": [{"promise": "soak"}, {"promise": "ends"}], "commit": "abc"})
    )
    assert commands.main(["prove", "deleted_logdir", "soak"]) == 0
    crowd, alone = ran[-2:]
    assert "promise and not alone" in crowd
    assert "promise and alone" in alone
    for command in (crowd, alone):
        assert command[-2:] == ["tests/fault/test_full_disk.py", "tests/soak/test_soak.py"]
    kept = json.loads((results / "tests.json").read_text())["results"]
    assert kept == [{"promise": "ends"}]


@pytest.mark.parametrize(
    ("argv", "chosen"),
    [
        (["--list"], []),
        (["versions"], []),
        (["soak", "--", "-x"], ["promise"]),
        ([], ["(prove or promise) and not alone", "(prove or promise) and alone"]),
    ],
)
def test_prove_runs_what_it_is_told_to(ran, results, argv, chosen):
    assert commands.main(["prove", *argv]) == 0
    calls = [command for command in ran if "pytest" in command]
    assert [command[command.index("-m", 3) + 1] for command in calls] == chosen


def test_prove_runs_rows_that_are_stale(ran, results, capsys):
    assert commands.main(["prove", "--stale"]) == 0
    assert "tests/fault/test_full_disk.py" in ran[-1]
    assert "tests/soak/test_soak.py" not in ran[-1]
    assert "`python3 dev.py matrix`" in capsys.readouterr().out


def test_the_fast_tests_bring_no_browser(ran, capsys):
    assert commands.main(["test", "--fast", "--", "-x"]) == 0
    ((_, _, pytest_, *arguments, last),) = ran
    assert (pytest_, last) == ("pytest", "-x")
    assert "tb_pastnet/core/decay.py" in arguments
    assert re.search(
        r"\d+ files of tests need neither TensorFlow nor a br", capsys.readouterr().out
    )


@pytest.mark.parametrize(("code", "said"), [(0, "index.html"), (2, "The site has errors.")])
def test_the_site_is_built_and_no_warning_passes(monkeypatch, capsys, code, said):
    calls = []
    monkeypatch.setenv("PASTNET_PYTHON", sys.executable)
    monkeypatch.setattr(commands, "run", lambda command, env: calls.append(command) or code)
    assert commands.main(["docs"]) == code
    assert calls[0][1:4] == ["-m", "sphinx", "-W"]
    assert said in capsys.readouterr().out
    workflow = (WORKFLOWS / "docs.yml").read_text("utf-8")
    assert calls[0][-1] == str(ROOT / re.findall(r"^ +path: (.+)$", workflow, re.M)[0])


@pytest.mark.parametrize("path", sorted(WORKFLOWS.glob("*.yml")), ids=lambda path: path.name)
def test_a_workflow_calls_what_is_there(path):
    text = path.read_text("utf-8").replace("${{ matrix.column }}", "newest")
    for called in re.findall(r"python dev\.py ([^\n]+)", text):
        assert callable(commands.parse(called.split()).action)
    for name in re.findall(r"(?:run: |uses: \./|pytest )(\.?\w+/\S+)", text):
        assert (ROOT / name).is_file(), name


def test_what_changed_chooses_tests_and_says_what_is_left_out(ran, monkeypatch, capsys):
    changed = ["tests/unit/tools/test_commands.py"]
    monkeypatch.setattr(commands.selection, "changed_since", lambda _: changed)
    assert commands.main(["test", "--changed", "HEAD~3"]) == 0
    ((*_, file),) = ran
    assert [file] == changed
    said = capsys.readouterr().out
    assert "1 files changed; 1 files of tests are near.\n" in said
    assert re.search(r"\d+ others are left out: .*\nframework, a server or the browser", said)
    changed[:] = ["frontend/src/none.ts"]
    ran.clear()
    assert commands.main(["test", "--changed"]) == 0
    assert ran[:2] == [["a browser"], ["page"]]


@pytest.mark.parametrize(("code", "verdict"), [(0, 0), (1, 1), (5, 0)])
def test_what_changed_may_choose_nothing_but_tests_of_prove(code, verdict, ran, monkeypatch):
    changed = ["tests/contract/test_long_run.py"]
    monkeypatch.setattr(commands.selection, "changed_since", lambda _: changed)
    monkeypatch.setattr("tools.steps.run", lambda *_: code)
    assert commands.main(["test", "--changed"]) == verdict


def test_paths_are_run_without_dashes(ran):
    assert commands.main(["test", "tests/a.py", "tests/b.py", "--", "-x"]) == 0
    assert ran[1][4:] == [*commands.selection.processes(["a.py", "b.py"]), "tests/a.py", "tests/b.py", "-x"]  # fmt: skip
    with pytest.raises(SystemExit):
        commands.main(["test", "--fast", "tests/a.py"])


@pytest.mark.parametrize(
    ("given", "brought"),
    [
        ([], ["dev-torch", "dev-jax"]),
        (["--without", "torch"], ["dev-jax"]),
        (["--without", "jax,torch"], []),
    ],
)
def test_tests_have_all_frameworks_but_those_that_are_left_out(
    ran, monkeypatch, capsys, given, brought
):
    monkeypatch.delenv("PASTNET_WITHOUT", raising=False)  # this test may be left some itself
    extras, environments = extras_of(monkeypatch), []
    monkeypatch.setattr(commands, "run", lambda command, env: environments.append(env) or 0)
    assert commands.main(["test", "tests/a.py", *given]) == 0
    assert extras == brought
    (env,) = environments
    without = given[1].split(",") if given else []
    assert env.get("PASTNET_WITHOUT", "").split() == without
    assert (f"that need {' or '.join(without)} are left out" in capsys.readouterr().out) == bool(
        given
    )


def test_an_unknown_framework_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        commands.main(["test", "--without", "torch,caffe"])
    assert "expected some of torch, jax, got caffe" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "wanted"), [("histograms", True), ("masks", False)])
def test_a_benchmark_with_programs_for_node_gets_a_browser(monkeypatch, name, wanted):
    brought, ran = [], []
    monkeypatch.setenv("PASTNET_PYTHON", sys.executable)
    monkeypatch.setattr(commands.Session, "with_browser", lambda _: brought.append(name))
    monkeypatch.setattr(commands.bench, "run", lambda command, env: ran.append(command) or 0)
    assert commands.main(["bench", name]) == 0
    assert [command[1].stem for command in ran] == [name]
    assert len(brought) == wanted


def test_what_is_timed_is_tensorflow_as_users_have_it(monkeypatch):
    environments = []
    monkeypatch.setenv("PASTNET_PYTHON", sys.executable)
    monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS")
    monkeypatch.setattr(commands.bench, "run", lambda command, env: environments.append(env) or 0)
    assert commands.main(["bench", "idle"]) == 0
    environments.append(commands.Session().env)
    assert [env.get("TF_ENABLE_ONEDNN_OPTS") for env in environments] == [None, "0"]


def test_a_step_that_fails_shows_its_output_and_the_others_run(capsys):
    steps = Steps()
    steps.step("first", lambda: (1, "what went wrong\n"))
    steps.step("second", lambda: (0, "chatter"))
    assert steps.verdict() == 1
    out, err = capsys.readouterr()
    assert re.fullmatch(r"what went wrong\nFAILED first \(.+ s\)\nok     second \(.+ s\)\n", out)
    assert err == "Failed: first.\n"


def test_a_program_that_must_succeed_names_its_code():
    with pytest.raises(Failure, match=r"Could not try: `.* ended with code 3\."):
        demand("try", [sys.executable, "-c", "raise SystemExit(3)"])


def test_the_readmes_test_command_is_what_ci_runs():
    assert (ROOT / ".ci" / "run").read_text("utf-8").rstrip().endswith("python3 dev.py test")
    assert "python3 dev.py test" in (ROOT / "README.md").read_text("utf-8")

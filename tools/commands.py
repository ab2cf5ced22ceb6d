"""The commands of dev.py."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from demo.__main__ import parser as demo_parser
from tests.promises import NAMES as PROMISED
from tools import (
    bench,
    browser,
    bundle,
    columns,
    environment,
    matrix,
    mutants,
    names,
    promises,
    prose,
    selection,
    staleness,
)
from tools.reach import BLOCKED, NODE, Tree
from tools.steps import ROOT, Failure, Steps, quiet, run, say

TEXT = """\
demo       train the demo's runs and show them in TensorBoard (--once: only train; --framework torch
           or jax: by PyTorch or JAX instead of Keras)
test       lint, then run every test; --fast: those that need neither TensorFlow nor a browser;
           --changed [REV]: those near what changed; PATHs: those there; --without torch,jax:
           none that need these; arguments after -- go to pytest, and only it runs
lint       ruff, mypy --strict, import-linter, names, prose, tsc, Biome
bundle     build the page into tb_pastnet/serve/static (--check: compare with the committed one)
prove      run all tests of what is promised, or those of ROWs, and print what they showed (--stale:
           of rows whose files changed since; --list: run nothing, print the state of each row;
           --write: what was shown into docs/benchmarks, too)
docs       build the site of the documentation into docs/_build/html
mutants    put faults into the code, one at a time, and list those that its tests don't notice
matrix     run the Python tests with other versions of Python and of packages (--whole: all tests)
bench      run the benchmarks and print their tables; names choose some of them, what follows -- are
           their options (--json: keep the rows there; --write: what is kept into the docs' tables)
"""

FRAMEWORKS = ("torch", "jax")
"""Tests need builds of these, besides TensorFlow: the extras `dev-torch` and `dev-jax`."""
FEW_EXAMPLES = "--hypothesis-profile=fast"
"""For those who wait for the answer."""
NO_TESTS = 5
"""The exit code of pytest where all are left out, as those of `prove`."""
BUILT_SITE = ROOT / "docs" / "_build" / "html"
"""What `docs` builds; .github/workflows/docs.yml publishes it."""


class Session:
    """The environment of one call of dev.py, brought up when first needed.

    Args:
        repeatable: as `environment.variables` has it.
        small: whether an environment without TensorFlow is enough.
        extras: of pyproject.toml, which not every command needs.
    """

    def __init__(
        self, *, repeatable: bool = True, small: bool = False, extras: Sequence[str] = ()
    ) -> None:
        self.python = environment.ensure_small() if small else environment.ensure(extras)
        self.env = environment.variables(self.python, repeatable=repeatable)

    @classmethod
    def of_tests(cls, without: Collection[str] = ()) -> Session:
        """One with the frameworks that tests need, or without some of them."""
        session = cls(extras=[f"dev-{name}" for name in FRAMEWORKS if name not in without])
        if without:
            say(f"Tests that need {' or '.join(without)} are left out.")
            session.env["PASTNET_WITHOUT"] = " ".join(without)
        return session

    def tool(self, *arguments: str) -> list[str]:
        """The command of a Python tool of the environment."""
        return [str(self.python), "-m", *arguments]

    def pytest(self, *arguments: str) -> list[str]:
        """The command of pytest."""
        return self.tool("pytest", "--no-header", *arguments)

    def with_page(self) -> None:
        """Brings Node and the page's packages."""
        browser.ensure_node(self.env)

    def with_browser(self) -> None:
        """Brings Node, the page's packages and Chromium."""
        browser.ensure_node(self.env)
        browser.ensure_chromium(self.env)


def lint_steps(session: Session, steps: Steps) -> None:
    """All that reads the Python code without running it."""
    env = session.env
    imports = [str(session.python.parent / "lint-imports"), "--no-logo"]
    for name, command in (
        ("ruff check", session.tool("ruff", "check", ".")),
        ("ruff format", session.tool("ruff", "format", "--check", ".")),
        ("mypy --strict", session.tool("mypy")),
        ("import-linter", imports),
    ):
        steps.step(name, partial(quiet, command, env))
    steps.step("names", names.check)
    steps.step("prose", prose.check)


def page_lint_steps(session: Session, steps: Steps) -> None:
    """All that reads the page's code without running it."""
    steps.step("tsc", lambda: bundle.npm("check", session.env))
    steps.step("Biome", lambda: bundle.npm("lint", session.env))


def lint(_: argparse.Namespace) -> int:
    """Reads the code of both languages."""
    session, steps = Session(), Steps()
    session.with_page()
    lint_steps(session, steps)
    page_lint_steps(session, steps)
    return steps.verdict()


def test(arguments: argparse.Namespace) -> int:
    """Runs every check and test, or some of them; with arguments for pytest only pytest."""
    start = time.monotonic()
    if arguments.fast:
        code = test_fast(arguments.pytest)
    elif arguments.changed is not None:
        code = test_changed(arguments.changed or None, arguments.pytest, arguments.without)
    elif arguments.paths or arguments.pytest:
        code = test_some(arguments.paths, arguments.pytest, arguments.without)
    else:
        code = test_all(arguments.without)
    say(f"{time.monotonic() - start:.0f} s in all")
    return code


def test_all(without: Collection[str]) -> int:
    """Every check and test; those of Python run parallel to those of the page."""
    session, steps = Session.of_tests(without), Steps()
    with ThreadPoolExecutor(1) as beside:
        reading = beside.submit(lint_steps, session, steps)
        session.with_browser()
        page_lint_steps(session, steps)
        page_steps(session, steps)
        reading.result()
    steps.loud("pytest", session.pytest(*selection.processes(["tests"])), session.env)
    return steps.verdict()


def page_steps(session: Session, steps: Steps) -> None:
    """The tests of the page's own code, and whether the committed page is built from it."""
    steps.step("tests of the page", lambda: bundle.npm("test", session.env))
    steps.step("page is a fresh build", lambda: bundle.compare(session.env))


def test_some(paths: Sequence[str], options: Sequence[str], without: Collection[str]) -> int:
    """Some tests, by files and folders, or by arguments for pytest, then in one process."""
    session = Session.of_tests(without)
    session.with_browser()
    crowd = selection.processes(paths) if paths else []
    return run(session.pytest(*crowd, *paths, *options), session.env)


def test_fast(options: Sequence[str]) -> int:
    """The tests that need neither a framework nor a browser, and brings neither."""
    session, chosen = Session(small=True), selection.fast(Tree())
    say(f"{len(chosen.files)} files of tests need neither TensorFlow nor a browser.")
    say(f"{chosen.left_out} that do, or that show the system as a whole, are left out.")
    env = session.env | BLOCKED
    crowd = selection.processes(chosen.files)
    return run(session.pytest(FEW_EXAMPLES, *crowd, *chosen.files, *options), env)


def test_changed(revision: str | None, options: Sequence[str], without: Collection[str]) -> int:
    """The tests near what changed since a commit."""
    changed, tree = selection.changed_since(revision), Tree()
    chosen = selection.reaching(tree, changed)
    say(f"{len(changed)} files changed; {len(chosen.files)} files of tests are near.")
    say(f"{chosen.left_out} others are left out: they name nothing of what changed, or they need a")
    say("framework, a server or the browser and reach it only through other modules.")
    session, steps = Session.of_tests(without), Steps()
    if chosen.page or any(NODE in tree.outside(ROOT / name) for name in chosen.files):
        session.with_browser()
    if chosen.page:
        page_steps(session, steps)
    if chosen.files:
        computing = selection.only_compute(tree, chosen.files)
        crowd = selection.processes(chosen.files, computing=computing)
        command = session.pytest(FEW_EXAMPLES, *crowd, *chosen.files, *options)
        steps.loud("pytest", command, session.env, fine=NO_TESTS)
    return steps.verdict()


def prove(arguments: argparse.Namespace) -> int:
    """Runs the tests of promises, of all rows or of some, and reports what they showed.

    With arguments for pytest some tests are run again, and replace their results.
    """
    commit = promises.demand_commit() if arguments.write else ""
    tree = Tree()
    known = staleness.Staleness(staleness.reached_by_rows(tree))
    kept, rows, code = promises.published(), promises.choose(arguments.rows), 0
    if arguments.stale:
        judged = promises.fresher(promises.rows(promises.load()), kept, known)
        rows = [one.promise.name for one in judged if one.changed != 0]
    if not arguments.list and (rows or not arguments.stale):
        code = prove_rows(tree, rows, arguments.pytest)
    ran = promises.rows(promises.load())
    table = promises.fresher(ran, kept, known)
    if arguments.list or arguments.stale:
        say(promises.brief(table))
    else:
        say(promises.text([one for one in ran if one.promise.name in rows or not rows]))
    if arguments.write:
        promises.publish(table, commit)
        promises.write()
    return code


def prove_rows(tree: Tree, rows: Collection[str], options: Sequence[str]) -> int:
    """Runs the tests of rows, those that need the machine for themselves after the others.

    Args:
        tree: the repository.
        rows: their names, none for all.
        options: of pytest.

    Returns:
        The exit code of pytest.
    """
    session = Session.of_tests()
    session.with_browser()
    environment.bring("prove", session.python)
    marked, name, files = "(prove or promise)", "tests", list[str]()
    if rows:
        of_rows = staleness.files_of_rows(tree)
        paths = {path for row in {*rows} - {staleness.VERSIONS} for path in of_rows[row]}
        files = sorted(path.relative_to(ROOT).as_posix() for path in paths)
        marked, name = "promise", f"rows-{time.time():.0f}"
        session.env["PASTNET_PROMISES"] = " ".join(rows)
    if staleness.VERSIONS in rows:
        say("The row versions is shown by `python3 dev.py matrix`.")
        if not files:
            return 0
    crowd = selection.processes(["tests"], spread=bool(files))
    runs = {
        name: ["-m", f"{marked} and not alone", *crowd],
        f"{name}-alone": ["-m", f"{marked} and alone"],
    }
    if options:
        runs = {f"{promises.AGAIN}{time.time():.0f}": ["-m", marked, *options]}
    else:
        promises.forget({*(rows or PROMISED)} - {staleness.VERSIONS})
    code = 0
    for into, chosen in runs.items():
        env = {**session.env, "PASTNET_RESULTS": str(promises.RESULTS / f"{into}.json")}
        ended = run(session.pytest(*chosen, *files), env)
        code = max(code, ended if options or ended != NO_TESTS else 0)
    return code


def mutate(arguments: argparse.Namespace) -> int:
    """Runs a sample of mutants."""
    session = Session(extras=["prove", *(f"dev-{name}" for name in FRAMEWORKS)])
    count, seed = str(arguments.count), str(arguments.seed)
    return run(session.tool("tools.mutants", count, seed, *arguments.rooms), session.env)


def try_versions(arguments: argparse.Namespace) -> int:
    """Runs the tests of the Python code in environments of other versions."""
    crowd = selection.processes(["tests"])
    quick = [*columns.QUICK, *crowd]
    pytest = arguments.pytest or (["--ignore=tests/e2e", *crowd] if arguments.whole else quick)
    chosen = matrix.choose(arguments.names)
    found = matrix.run_all(chosen, arguments.python, pytest, keep=arguments.keep)
    say(matrix.table(found))
    return int(any(one.outcome == "failed" for one in found))


def build(arguments: argparse.Namespace) -> int:
    """Builds the page or compares it."""
    session = Session()
    session.with_page()
    code, output = (
        bundle.compare(session.env) if arguments.check else bundle.npm("build", session.env)
    )
    say(output.strip() or ("The committed page is a fresh build." if arguments.check else "Built."))
    return code


def docs(_: argparse.Namespace) -> int:
    """Builds the site; what Sphinx warns of, such as a broken link, is an error."""
    python = environment.ensure_docs()
    command = [str(python), "-m", "sphinx", "-W", "-q", str(ROOT / "docs"), str(BUILT_SITE)]
    code = run(command, environment.variables(python))
    say(f"Built {BUILT_SITE / 'index.html'}." if code == 0 else "The site has errors.")
    return code


def demo(arguments: argparse.Namespace) -> int:
    """Trains the demo and shows it."""
    framework = demo_parser().parse_args(arguments.demo).framework
    session = Session(extras=[f"dev-{framework}"] if framework in FRAMEWORKS else [])
    return run(session.tool("demo", *arguments.demo), session.env)


def measure(arguments: argparse.Namespace) -> int:
    """Runs benchmarks, or only writes the tables of those that ran before."""
    code = 0
    if arguments.names or not arguments.write:
        # What is timed is TensorFlow as users have it.
        chosen = bench.choose(arguments.names)
        trained = any(path.stem in bench.OF_FRAMEWORKS for path in chosen)
        extras = [f"dev-{name}" for name in FRAMEWORKS] if trained else []
        session = Session(repeatable=False, extras=extras)
        if any(bench.in_browser(path) for path in chosen):
            session.with_browser()
        env = session.env
        code = bench.run_all(chosen, session.python, env, arguments.options, arguments.json)
    if arguments.write:
        moved = bench.publish(arguments.json, bench.PUBLISHED)
        bench.write(bench.pages(), bench.PUBLISHED)
        say(f"Wrote the tables; new: {', '.join(moved) or 'none'}.")
    return code


def parser() -> argparse.ArgumentParser:
    """The command line of dev.py."""
    top = argparse.ArgumentParser(
        prog="dev.py", epilog=TEXT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for name, action in (("test", test), ("prove", prove), ("lint", lint), ("docs", docs)):
        commands.add_parser(name).set_defaults(action=action)
    command = commands.choices["prove"]
    command.add_argument("--write", action="store_true", help="into docs/benchmarks, too")
    some = command.add_mutually_exclusive_group()
    some.add_argument("--list", action="store_true", help="run nothing, only print all rows")
    some.add_argument("--stale", action="store_true", help="rows whose files changed since")
    some.add_argument("rows", nargs="*", default=[], metavar="ROW", help="of tests/promises.py")
    command = commands.choices["test"]
    some = command.add_mutually_exclusive_group()
    some.add_argument("--fast", action="store_true", help="without TensorFlow and browser")
    some.add_argument(
        "--changed", nargs="?", const="", metavar="REV",
        help="what reaches files that changed since then; by default since the last commit",
    )  # fmt: skip
    some.add_argument("paths", nargs="*", default=[], metavar="PATH", help="files and folders")
    command.add_argument(
        "--without", type=frameworks, default=(), metavar="NAMES",
        help=f"no tests that need these: {','.join(FRAMEWORKS)}",
    )  # fmt: skip
    command = commands.add_parser("mutants")
    command.set_defaults(action=mutate)
    command.add_argument("--count", type=int, default=mutants.COUNT, help="how many are drawn")
    command.add_argument("--seed", type=int, default=0, help="which ones")
    command.add_argument("rooms", nargs="*", metavar="ROOM", help="of the package, such as torch")
    command = commands.add_parser("matrix")
    command.set_defaults(action=try_versions)
    command.add_argument("names", nargs="*", metavar="COLUMN", help="of tools/columns.py")
    command.add_argument("--whole", action="store_true", help="all tests but the page's")
    command.add_argument("--keep", action="store_true", help="environments stay, 2 GB each")
    command.add_argument("--python", action="append", default=[], help="path of a Python to use")
    command = commands.add_parser("bundle")
    command.add_argument("--check", action="store_true", help="compare, change nothing")
    command.set_defaults(action=build)
    commands.add_parser("demo", add_help=False).set_defaults(action=demo)
    command = commands.add_parser("bench")
    command.add_argument("names", nargs="*", metavar="NAME")
    command.add_argument("--json", type=Path, default=bench.KEPT, help="the file of rows")
    command.add_argument("--write", action="store_true", help="kept rows into docs/benchmarks")
    command.set_defaults(action=measure)
    return top


def frameworks(text: str) -> tuple[str, ...]:
    """Reads names of frameworks that are separated by commas."""
    names = tuple(text.split(","))
    if unknown := [name for name in names if name not in FRAMEWORKS]:
        expected = ", ".join(FRAMEWORKS)
        raise argparse.ArgumentTypeError(f"expected some of {expected}, got {', '.join(unknown)}")
    return names


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line.

    What follows -- is for pytest, or for the benchmarks; what follows `demo` is for the demo.
    """
    own, rest = list(argv), []
    if own[:1] == ["demo"]:
        own, rest = own[:1], own[1:]
        return argparse.Namespace(**vars(parser().parse_args(own)), demo=rest)
    if "--" in own:
        cut = own.index("--")
        own, rest = own[:cut], own[cut + 1 :]
    named = {"options" if own[:1] == ["bench"] else "pytest": rest}
    return argparse.Namespace(**vars(parser().parse_args(own)), **named)


def main(argv: Sequence[str]) -> int:
    """Runs one command of dev.py.

    Returns:
        The exit code: 0 only if all went well.
    """
    arguments = parse(argv)
    try:
        return int(arguments.action(arguments))
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130

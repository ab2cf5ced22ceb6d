"""Arguments, exit codes, and error messages."""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import TextIO

from tb_pastnet import __version__
from tb_pastnet.cli.text import Bars, printable
from tb_pastnet.errors import PastNetError

WHOLE, FOUND, UNUSABLE, INTERRUPTED, UNREAD = 0, 1, 2, 130, 141
"""Exit codes: success, something was found, the command failed, Ctrl-C, a pipe that was closed."""

COMMANDS = ("check", "report", "verify", "export", "demo")

FAILURES = (
    "violations",
    "contradictions",
    "statistics",
    "stalled",
    "unreadable",
    "dropped",
    "nonfinite",
    "follows",
    "never_stepped",
    "silent",
    "unfrozen",
    "refrozen",
    "reactivated",
    "masks",
    "learning_rate",
    "resumed",
    "unfinished",
)
"""The words of `report --fail-on`: those of findings, and of runs."""

TABLES = ("runs", "layers", "violations", "function", "channels")
FORMATS = ("csv", "parquet", "npz", "html")

_CODES = "Exit codes: 0 success, 1 {found}, 2 the command failed."


def main(arguments: Sequence[str], out: TextIO, error: TextIO) -> int:
    """Runs a command, the arguments after `pastnet`, and returns its exit code.

    Raises:
        SystemExit: from the parser, after an error message (2), help or the version (0).
    """
    options = _parsed(arguments)
    options.progress = Bars(error)
    if hasattr(out, "reconfigure"):
        # A terminal without a character shows its number.
        out.reconfigure(errors="backslashreplace")
    try:
        if options.command != "demo":  # it makes its own
            from tb_pastnet.reader.local_log import LocalLog  # as in `_run_command`

            options.logdir = LocalLog(options.logdir)
        code = _run_command(options, out, error)
        out.flush()
    except PastNetError as problem:
        error.write(f"{printable(str(problem))}\n")
        return UNUSABLE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader, such as `head`, has enough.
        _drop(out)
        return UNREAD
    except OSError as problem:
        _drop(out)
        error.write(
            f"Could not print the result: expected a place for it, got "
            f"{problem.strerror or problem}. Make room, or print elsewhere.\n"
        )
        return UNUSABLE
    return code


def _drop(out: TextIO) -> None:
    """Forgets what is still to be printed: Python would complain about it when it ends."""
    with suppress(OSError, AttributeError):  # it may be no file
        place = out.fileno()
        os.dup2(os.open(os.devnull, os.O_WRONLY), place)


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The options; for an unknown command or option the error suggests the most similar one."""
    parser = argparse.ArgumentParser(
        prog="pastnet",
        description="Check, report and export logs of tb_pastnet, without TensorFlow; show a demo.",
        epilog="`pastnet COMMAND --help` lists the options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"tb-pastnet {__version__}")
    commands = parser.add_subparsers(
        required=True, dest="command", metavar="COMMAND", title="commands"
    )
    _add_check(commands)
    _add_report(commands)
    _add_verify(commands)
    _add_export(commands)
    _add_demo(commands)
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        near = get_close_matches(arguments[0], COMMANDS, 1)
        mend = f"Did you mean {near[0]}?" if near else "See pastnet --help."
        parser.error(
            f"Could not run {printable(arguments[0])!r}: expected one of {', '.join(COMMANDS)}, "
            f"got no such command. {mend}"
        )
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        message = f"unrecognized arguments: {' '.join(unknown)}"
        if named := [word for word in unknown if word.startswith("--")]:
            names = re.findall("--[a-z-]+", commands.choices[options.command].format_help())
            near = get_close_matches(named[0], names, 1)
            message += f". Write {near[0]}" if near else ". LOGDIR goes without a name; see --help"
        parser.error(message)
    if options.command == "export":
        _check_export(options, commands.choices["export"])
    return options


def _add_check(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    check = commands.add_parser(
        "check",
        help="find damaged records, by file and offset",
        description="Reads every byte and lists unusable data, by file and offset.",
        epilog=_CODES.format(found="something is damaged"),
    )
    _add_common(check)


def _add_report(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    report = commands.add_parser(
        "report",
        help="print layer states, findings and violations of each run",
        description="Summarises each run's final layer states, findings and problems.",
        epilog=_CODES.format(found="with --fail-on: something of it was found, or no run"),
    )
    _add_common(report)
    _add_runs(report)
    report.add_argument(
        "--fail-on",
        action="extend",
        default=[],
        metavar="WHAT",
        type=_words(FAILURES),
        help=f"exit with code 1 if there are any: {', '.join(FAILURES)}; separated by commas",
    )


def _add_verify(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    verify = commands.add_parser(
        "verify",
        help="verify that weights stayed frozen, trained, or are pruned",
        description="Verifies what should have happened in each run: what --frozen, --trains and "
        "--sparsity say, or without them what was declared with expect=. PATTERN is a name in the "
        "log, the end of one, a layer, or a glob such as 'base.*'; not:PATTERN means all others. "
        "Each option may be repeated.",
        epilog="Exit codes: 0 all of it holds in all runs, 1 something doesn't, 2 no answer: "
        "nothing was compared, a pattern matches nothing, or a run continues or can't be read.",
    )
    _add_common(verify)
    verify.add_argument("--run", action="append", metavar="NAME", help="only this run; repeatable")
    for name, help_ in (
        ("frozen", "weights that were frozen, and unchanged at each record"),
        ("trains", "weights that all changed; any:PATTERN: one of them did"),
        ("sparsity", "weights that are pruned at the end: 'PATTERN>=0.8'"),
    ):
        verify.add_argument(f"--{name}", action="append", default=[], metavar="PATTERN", help=help_)
    verify.add_argument(
        "--statistics",
        choices=["still"],
        help="statistics, such as BatchNorm's, didn't change: those of the layers of --frozen, or "
        "all",
    )
    verify.add_argument(
        "--at-end", action="store_true", help="only in the last part of a resumed training"
    )


def _add_export(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    export = commands.add_parser(
        "export",
        help="write tables (CSV, Parquet, NPZ), or the tab as one HTML file",
        description="Writes tables into a new directory, described by its manifest.json. "
        "With --format html: the page of the tab and its data in one file, for any browser.",
        epilog="Exit codes: 0 everything was written, 1 a run could not be read, 2 nothing was.",
    )
    export.add_argument("logdir", metavar="LOGDIR", help="the log directory, or one above it")
    export.add_argument("out", metavar="OUT", help="a new directory, or a new file for html")
    export.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="default: csv")
    export.add_argument(
        "--tables",
        type=_words(TABLES),
        metavar="NAMES",
        help=f"some of {', '.join(TABLES)}, separated by commas; default: all but channels",
    )
    export.add_argument(
        "--layer",
        action="append",
        metavar="ID",
        help="only channels of this layer; repeatable",
    )
    _add_runs(export)


def _add_demo(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    demo = commands.add_parser(
        "demo",
        help="train a small network, and show it in TensorBoard",
        description="Trains three small runs in NumPy (a plain one, one that freezes and prunes, "
        "one with a leak), and shows them in TensorBoard while they grow. Ctrl-C ends it.",
        epilog="Exit codes: 0 success or Ctrl-C, 2 the command failed.",
    )
    demo.add_argument("--logdir", metavar="LOGDIR", help="where to train; default: a new directory")
    demo.add_argument("--port", type=int, help="of TensorBoard; default: 6006 or the next free one")
    demo.add_argument("--once", action="store_true", help="only train, without TensorBoard")


def _check_export(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Ends with an error if an option has no effect, and sets the default of `--tables`."""
    if options.format == "html" and (options.tables or options.layer):
        parser.error("--format html has no tables: leave out --tables and --layer")
    options.tables = options.tables or list(TABLES[:-1])
    if options.layer and "channels" not in options.tables:
        parser.error("--layer chooses tables of channels: write --tables channels")


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("logdir", metavar="LOGDIR", help="the log directory, or one above it")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def _add_runs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run", action="append", metavar="NAME", help="only this run; repeatable")
    parser.add_argument(
        "--threshold",
        type=_threshold,
        default="1e-4",
        metavar="DELTA",
        help="the relative delta under which a channel is quiet, default: 1e-4",
    )


def _threshold(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number from 0 on, got {text!r}")
    return value


def _words(choices: Sequence[str]) -> Callable[[str], list[str]]:
    """An argument type: words separated by commas, each one of `choices`."""

    def words(text: str) -> list[str]:
        for word in text.split(","):
            if word not in choices:
                raise argparse.ArgumentTypeError(
                    f"expected some of {', '.join(choices)}, got {word!r}"
                )
        return text.split(",")

    return words


def _run_command(options: argparse.Namespace, out: TextIO, error: TextIO) -> int:
    # What a command imports is imported here: help comes at once.
    if options.command == "check":
        from tb_pastnet.cli.check import check

        return check(options, out)
    if options.command == "report":
        from tb_pastnet.cli.report import report

        return report(options, out, error)
    if options.command == "verify":
        from tb_pastnet.cli.verify import verify

        return verify(options, out)
    if options.command == "demo":
        from tb_pastnet.cli.demo import demo

        return demo(options, out)
    if options.format == "html":
        from tb_pastnet.cli.html_file import export_html

        return export_html(options, out, error)
    from tb_pastnet.cli.export import export

    return export(options, out, error)

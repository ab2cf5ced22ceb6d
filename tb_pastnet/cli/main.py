"""Arguments, exit codes, and error messages."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TextIO

from tb_pastnet import __version__
from tb_pastnet.cli.progress import Bars
from tb_pastnet.cli.text import printable
from tb_pastnet.errors import PastNetError

if TYPE_CHECKING:
    from tb_pastnet.reader.local_log import LocalLog

WHOLE, FOUND, UNUSABLE, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: success, something was found, the command failed, Ctrl-C."""

COMMANDS = ("check", "report", "export")

FAILURES = (
    "violations",
    "statistics",
    "stalled",
    "unreadable",
    "dropped",
    "nonfinite",
    "unfinished",
)
"""The words of `report --fail-on`."""

TABLES = ("runs", "layers", "violations", "function", "channels")
FORMATS = ("csv", "parquet", "npz", "html")

_CODES = "Exit codes: 0 success, 1 {found}, 2 the command failed."


def main(arguments: Sequence[str], out: TextIO, error: TextIO) -> int:
    """Runs a command, the arguments after `pastnet`, and returns its exit code.

    Raises:
        SystemExit: from the parser, after an error message (2), help or the version (0).
    """
    parser = _parser()
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        parser.error(_unknown(arguments[0]))
    options = parser.parse_args(arguments)
    options.progress = Bars(error)
    if hasattr(out, "reconfigure"):
        # A terminal without a character shows its number.
        out.reconfigure(errors="backslashreplace")
    try:
        log = _local(options.logdir)
        options.logdir = log.path
        code = int(options.command(options, out, error))
        out.flush()
    except PastNetError as problem:
        error.write(f"{printable(str(problem))}\n")
        return UNUSABLE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader, such as `head`, has enough. Python would complain when it closes the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
        return FOUND
    return code


class _Parser(argparse.ArgumentParser):
    """Suggests the most similar option for an unknown one."""

    known: ClassVar[set[str]] = {"--help"}

    def add_argument(self, *names: Any, **settings: Any) -> argparse.Action:
        self.known.update(name for name in names if name.startswith("--"))
        return super().add_argument(*names, **settings)

    def error(self, message: str) -> NoReturn:
        options = [word for word in message.split() if word.startswith("--")]
        if "unrecognized" in message and options:
            near = get_close_matches(options[0], self.known, 1)
            message += f". Write {near[0]}" if near else ". LOGDIR goes without a name; see --help"
        super().error(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="pastnet",
        description="Check, report and export logs of tb_pastnet, without TensorFlow.",
        epilog="`pastnet COMMAND --help` lists the options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"tb-pastnet {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", title="commands")
    _add_check(commands)
    _add_report(commands)
    _add_export(commands)
    return parser


def _unknown(command: str) -> str:
    near = get_close_matches(command, COMMANDS, 1)
    mend = f"Did you mean {near[0]}?" if near else "See pastnet --help."
    expected = f"expected one of {', '.join(COMMANDS)}"
    return f"Could not run {printable(command)!r}: {expected}, got no such command. {mend}"


def _add_check(commands: argparse._SubParsersAction[_Parser]) -> None:
    check = commands.add_parser(
        "check",
        help="find damaged records, by file and offset",
        description="Reads every byte and lists unusable data, by file and offset.",
        epilog=_CODES.format(found="something is damaged"),
    )
    check.set_defaults(command=_check)
    _add_common(check)


def _add_report(commands: argparse._SubParsersAction[_Parser]) -> None:
    report = commands.add_parser(
        "report",
        help="print layer states, findings and violations of each run",
        description="Summarises each run's final layer states, findings and problems.",
        epilog=_CODES.format(found="something in --fail-on was found, or there is no run"),
    )
    report.set_defaults(command=_report)
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


def _add_export(commands: argparse._SubParsersAction[_Parser]) -> None:
    export = commands.add_parser(
        "export",
        help="write tables (CSV, Parquet, NPZ), or the tab as one HTML file",
        description="Writes tables into a new directory, described by its manifest.json. "
        "With --format html: the page of the tab and its data in one file, for any browser.",
        epilog="Exit codes: 0 everything was written, 2 nothing was.",
    )
    export.set_defaults(command=_export)
    export.add_argument("logdir", metavar="LOGDIR", help="the log directory, or one above it")
    export.add_argument("out", metavar="OUT", help="a new directory, or a new file for html")
    export.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="default: csv")
    export.add_argument(
        "--tables",
        type=_words(TABLES),
        default=list(TABLES[:-1]),
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


# Imports of a command happen when it is called: help comes at once.


def _local(logdir: str) -> LocalLog:
    from tb_pastnet.reader.local_log import LocalLog

    return LocalLog(logdir)


def _check(options: argparse.Namespace, out: TextIO, error: TextIO) -> int:
    del error
    from tb_pastnet.cli.check import check

    return check(options, out)


def _report(options: argparse.Namespace, out: TextIO, error: TextIO) -> int:
    from tb_pastnet.cli.report import report

    return report(options, out, error)


def _export(options: argparse.Namespace, out: TextIO, error: TextIO) -> int:
    del error
    if options.format == "html":
        from tb_pastnet.cli.html_file import export_html

        return export_html(options, out)
    from tb_pastnet.cli.export import export

    return export(options, out)

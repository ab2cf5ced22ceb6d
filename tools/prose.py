"""Phrases that read as translated, and sentences that are too long.

`python -m tools.prose [PATH …]` lists them by the rules of `prose.txt`; `--median` prints how many
words the sentences of the docs have.
"""

from __future__ import annotations

import ast
import re
import statistics
import sys
import tokenize
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from tools.steps import ROOT, say

DOCS = (*sorted(path.name for path in ROOT.glob("*.md")), "docs")
CODE = ("tb_pastnet", "frontend/src")
CHECKED = DOCS
"""What lint reads."""

LONGEST = 40
"""Words that a sentence may have."""

_THING = (
    "(?:logs?|records?|masks?|channels?|layers?|steps?|files?|servers?|readers?|writers?|recorders?|"
    "runs?|functions?|optimizers?|callbacks?|histograms?|tabs?|variables?|viewers?|models?)"
)


def _rules(text: str) -> Iterator[tuple[re.Pattern[str], str]]:
    for line in text.splitlines():
        pattern, arrow, better = line.partition(" → ")
        if arrow and not line.startswith("#"):
            pattern = pattern.replace("THING", _THING).replace(" ", r"\s")
            yield re.compile(pattern, re.IGNORECASE), better


RULES = tuple(_rules((ROOT / "tools" / "prose.txt").read_text("utf-8")))
"""Patterns, and what to write instead."""


class Text(NamedTuple):
    """A piece of prose of a file.

    Attributes:
        line: where it begins.
        text: without code and marks.
        flows: whether it is of sentences, and no heading or cell of a table.
    """

    line: int
    text: str
    flows: bool = True


_MARKED = re.compile(
    r"(?P<code>(?<!`)(?P<tick>`{1,2})(?!`).+?(?<!`)(?P=tick)(?!`)|https?://[^\s)]+)"
    r"|```.*?```|<!-- begin of .*?<!-- end of [^>]*>|<!--.*?-->|</?[a-z][^<>]*>|\*\*",
    re.DOTALL,
)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_ITEM = re.compile(r"^\s*(?:[-*] |\d+\. |> )\s*")
_DRAWN = re.compile(r"^ *>>> .*?(?=\n *\n|\Z)|^[^\n]*\S {3,}[^\n]*$", re.MULTILINE | re.DOTALL)
_ARGUMENT = re.compile(r"^ +(?=\*{0,2}\w+(?: \([^)]*\))?: )", re.MULTILINE)
_PAGE = re.compile(
    r"//(?P<a>[^\n]*)|/\*(?P<b>.*?)\*/|\"(?P<c>(?:[^\"\\\n]|\\.)*)\"|`(?P<d>(?:[^`\\]|\\.)*)`"
    r"|[>}](?P<e>[^<>{}=;()]*[a-z] [^<>{}=;()]*)(?=[<{])",
    re.DOTALL,
)
_END = re.compile(r"(?<=[.?!])[)\"']*\s+(?=[\"'(*]*[A-Z0-9])|(?<=[.?!:])[)\"']*\s+(?=x\b)")


def _plain(part: re.Match[str]) -> str:
    """A piece of code is one word, and all else that isn't prose nothing."""
    return ("x" if part["code"] else "") + "\n" * part[0].count("\n")


def of_markdown(source: str, first: int = 1) -> Iterator[Text]:
    """Paragraphs, items, headings and cells, without blocks of code and what programs write."""
    lines = _LINK.sub(r"\1", _MARKED.sub(_plain, source)).split("\n")
    start, gathered = 0, list[str]()
    for number, line in enumerate([*lines, ""], first):
        table, heading = line.lstrip().startswith("|"), line.startswith("#")
        if gathered and (not line.strip() or table or heading or _ITEM.match(line)):
            yield Text(start, "\n".join(gathered))
            gathered = []
        if table or heading:
            cells = line.split("|") if table else [line.lstrip("# ")]
            yield from (Text(number, cell.strip(), False) for cell in cells)
        elif line.strip():
            start = start if gathered else number
            gathered.append(_ITEM.sub("", line, count=1).strip())


def of_python(source: str) -> Iterator[Text]:
    """Docstrings, comments, and strings of several words."""
    tree = ast.parse(source)
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)
              for part in node.values}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inside.add(id(node.value))
            text = _DRAWN.sub(lambda code: "\n" * code[0].count("\n"), str(node.value.value))
            yield from of_markdown(_ARGUMENT.sub("- ", text), node.lineno)
        elif isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "x" for part in node.values)
            yield Text(node.lineno, "".join(map(str, parts)), False)
        elif isinstance(node, ast.Constant) and id(node) not in inside and " " in str(node.value):
            yield Text(node.lineno, str(node.value), False)
    for token in tokenize.generate_tokens(StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(token.start[0], _MARKED.sub(_plain, token.string.lstrip("# ")), False)


def of_page(source: str) -> Iterator[Text]:
    """Comments, strings and text of elements in TypeScript, if of several words."""
    for match in _PAGE.finditer(source):
        text = next(part for part in match.groups() if part is not None)
        if " " in text.strip():
            line = source.count("\n", 0, match.start(match.lastgroup or 0)) + 1
            yield Text(line, re.sub(r"\$\{[^}]*\}", "x", text), False)


KINDS = {".md": of_markdown, ".py": of_python, ".ts": of_page, ".tsx": of_page}


def sentences(text: Text) -> list[tuple[int, str]]:
    """The sentences of a text, each with its line."""
    result, begin = [], 0
    for end in [*_END.finditer(text.text), None]:
        part = text.text[begin : end.start() if end else None]
        result.append((text.line + text.text.count("\n", 0, begin), part))
        begin = end.end() if end else 0
    return result


def words(sentence: str) -> int:
    """How many words a sentence has."""
    return len(re.findall(r"\w\S*", sentence))


def findings(text: Text) -> Iterator[tuple[int, str, str]]:
    """What to write differently in a text: its line, the words, and what is better."""
    for pattern, better in RULES:
        for match in pattern.finditer(text.text):
            yield text.line + text.text.count("\n", 0, match.start()), match[0], better
    for line, sentence in sentences(text) if text.flows else ():
        if (length := words(sentence)) > LONGEST:
            yield line, f"{sentence[:40]}…", f"at most {LONGEST} words, not {length}"


def files(names: Sequence[str], root: Path = ROOT) -> list[Path]:
    """The files of these names, and those below the folders."""
    paths = [root / name for name in names]
    below = (path for folder in paths if folder.is_dir() for path in folder.rglob("*.*"))
    every = [path for path in (*paths, *below) if path.suffix in KINDS]
    return [path for path in sorted(every) if ".test." not in path.name]


def median(names: Sequence[str] = DOCS, root: Path = ROOT) -> float:
    """How many words a sentence of these pages has; headings, cells and fragments don't count."""
    pages = (path.read_text("utf-8") for path in files(names, root) if path.suffix == ".md")
    texts = (text for page in pages for text in of_markdown(page) if text.flows)
    whole = (part for text in texts for _, part in sentences(text) if part.endswith((".", "?")))
    return statistics.median(map(words, whole))


def check(names: Sequence[str] = CHECKED, root: Path = ROOT) -> tuple[int, str]:
    """Reads files and folders.

    Returns:
        0 and no text if there is nothing to write differently, else 1 and a line for each finding.
    """
    lines = [
        f"{path.relative_to(root).as_posix()}:{line}: {what!r}: {better}"
        for path in files(names, root)
        for text in KINDS[path.suffix](path.read_text("utf-8"))
        for line, what, better in findings(text)
    ]
    return (1 if lines else 0), "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Prints findings, or the median length of sentences."""
    names = [name for name in arguments if name != "--median"]
    if "--median" in arguments:
        say(f"{median(names or DOCS):g} words")
        return 0
    code, text = check(names or CHECKED)
    say(text or "Nothing to write differently.")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

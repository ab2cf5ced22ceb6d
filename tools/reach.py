"""Which files a file of Python reaches: by imports wherever they stand, and by what it names.

Seen are imports inside functions, the lazy names of packages, modules that the strings of tests and
tools name (also those of programs in strings, and of Python in the documents that a test runs),
modules that are run by `-m`, and fixtures. The examples of a module run where it is itself what is
tested, and its messages only tell. What a test puts together as it runs isn't seen: `dev.py test`
runs everything.
"""

from __future__ import annotations

import ast
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from tools.steps import ROOT

PACKAGES = ("tb_pastnet", "tests", "tools", "demo", "benchmarks")
FRAMEWORKS = {
    *("tensorflow", "keras", "h5py", "sklearn"),
    *("torch", "lightning", "transformers", "jax", "flax", "optax"),
}
"""Packages that `dev.py test --fast` doesn't need; the demo's digits are only for training."""
BLOCKED = {"PASTNET_WITHOUT": " ".join(sorted(FRAMEWORKS))}
"""The environment of tests that show that they need none of them."""
NODE = "(for Node)"
"""Means Node and the browser, if a file starts a program for them."""

ENTRY = "tb_pastnet/cli/main.py"
"""Starts commands: a module each, which it names, and what starts one as well."""

_SILENT = {*PACKAGES, "frontend", "src"}
"""Folders whose names say too little."""

LAZY = "_HOMES"
"""What a package calls its table of lazy names."""

_DOTTED = re.compile(rf"\b(?:pastnet|{'|'.join(PACKAGES)})(?:\.\w+)+\.?")
_IMPORTED = re.compile(
    r"^[ \t]*(?:>>> )?(?:from[ \t]+([\w.]+)[ \t]+)?import[ \t]+([\w., \t]+)", re.M
)
_FENCED = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
_FILE = re.compile(r"^[\w./-]+\.\w+$")
_LEAVES = {ast.Name, ast.Constant, ast.Load, ast.Store}
"""Most nodes of a tree: nothing inside them is of interest."""
_MAY_BE_SILENT = {ast.If, ast.Assign, ast.Expr}


@dataclass
class Mentions:
    """The names that one file mentions.

    Attributes:
        dotted: full names of modules, or of things in them, of this repository.
        outside: packages that it imports from elsewhere.
        texts: its strings, except for docstrings.
        examples: what those of its docstrings mention.
        arguments: the names of its functions' arguments, which request fixtures.
        functions: those that it defines at its top.
        hooks: whether it has hooks of pytest.
        unasked: whether it has fixtures that are used without a request.
        given: by name, the fixtures that a conftest.py only imports.
        lazy: by public name, the module that it loads on access, as packages do.
    """

    dotted: set[str] = field(default_factory=set)
    outside: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    examples: Mentions | None = None
    arguments: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    hooks: bool = False
    unasked: bool = False
    given: dict[str, str] = field(default_factory=dict)
    lazy: dict[str, str] = field(default_factory=dict)

    def imports(self, module: str, names: Iterable[str] = ()) -> None:
        """Notes `import module`, or `from module import names`."""
        if module.split(".", maxsplit=1)[0] in PACKAGES:
            self.dotted |= {module, *(f"{module}.{name}" for name in names)}
        else:
            self.outside.add(module.split(".", maxsplit=1)[0])

    def reads(self, text: str) -> None:
        """Notes the modules that a string names, and imports, should it be a program."""
        for match in _DOTTED.finditer(text):
            self.dotted.add(re.sub(r"^pastnet\b", "tb_pastnet", match[0]))
        for module, names in _IMPORTED.findall(text):
            parts = [part.split()[0] for part in names.split(",") if part.split()]
            if module:
                self.imports(module, parts)
            else:
                for part in parts:
                    self.imports(part)


@cache
def mentions(source: str, *, fixtures: bool = False, programs: bool = True) -> Mentions:
    """Reads a file.

    Args:
        source: its text.
        fixtures: whether it is a conftest.py, which gives fixtures on that it imports.
        programs: whether its strings may be programs, not only messages.
    """
    tree = ast.parse(source)
    told = Mentions(examples=_examples(tree) if ">>>" in source else None)
    nodes: dict[type, list[Any]] = defaultdict(list)
    for node in _spoken(tree):
        nodes[type(node)].append(node)
    imports = [*nodes[ast.Import], *nodes[ast.ImportFrom]]
    aliases = _aliases(imports)
    for node in imports:
        _note_import(node, told)
    for node in nodes[ast.Attribute]:
        told.dotted |= _attribute(node, aliases)
    for node in nodes[ast.Call]:
        told.dotted |= _any_attribute(node, aliases)
    for node in (*nodes[ast.List], *nodes[ast.Tuple]):
        told.dotted |= _run_as_modules(node)
    told.arguments = {node.arg for node in nodes[ast.arg]}
    told.texts = {node.value for node in nodes[ast.Constant] if isinstance(node.value, str)}
    if programs:
        for text in told.texts:
            told.reads(text)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    told.functions = {node.name for node in functions}
    told.lazy = _lazy_names(tree)
    marks = [ast.unparse(mark) for node in functions for mark in node.decorator_list]
    told.hooks = any(name.startswith("pytest_") for name in told.functions)
    told.unasked = any("autouse=True" in mark for mark in marks)
    if fixtures:
        _give(tree, {node.id for node in nodes[ast.Name]}, told)
    return told


def _examples(tree: ast.Module) -> Mentions | None:
    texts = [bare_text(node) for node in ast.walk(tree)]
    examples = [text for text in texts if ">>>" in text]
    if not examples:
        return None
    told = Mentions()
    for text in examples:
        told.reads(text)
    return told


def bare_text(node: ast.AST) -> str:
    """A string that stands alone, as docstrings do; "" of all else."""
    value = getattr(node.value, "value", None) if isinstance(node, ast.Expr) else None
    return value if isinstance(value, str) else ""


def _note_import(node: ast.Import | ast.ImportFrom, told: Mentions) -> None:
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        told.imports(node.module or "", names)
    else:
        for name in names:
            told.imports(name)


def _give(tree: ast.Module, used: set[str], told: Mentions) -> None:
    """What a conftest.py imports and doesn't use is there for the tests that ask for it."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and not {alias.name for alias in node.names} & used:
            given = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            told.given |= given
            told.dotted -= {node.module or "", *given.values()}


def _spoken(tree: ast.Module) -> Iterator[ast.AST]:
    """All of a tree that is carried out."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        kind = type(node)
        if kind in _MAY_BE_SILENT and _is_silent(node):
            continue
        if isinstance(node, ast.BinOp):
            todo += _path(node)
            continue
        yield node
        if kind in _LEAVES:
            continue
        for name in kind._fields:
            part = getattr(node, name, None)
            if isinstance(part, list):
                todo += [each for each in part if isinstance(each, ast.AST)]
            elif isinstance(part, ast.AST):
                todo.append(part)


def _path(node: ast.BinOp) -> list[ast.AST]:
    """The operands; of a path such as `ROOT / "docs" / "guide.md"` its end in one."""
    names: list[str] = []
    left: ast.expr = node
    while isinstance(left, ast.BinOp) and isinstance(left.op, ast.Div):
        if not (isinstance(left.right, ast.Constant) and isinstance(left.right.value, str)):
            break
        names.insert(0, left.right.value)
        left = left.left
    return [left, ast.Constant("/".join(names))] if names else [node.left, node.right]


def _is_silent(node: ast.AST) -> bool:
    """Whether it is imports for type checkers, lazy homes, or a docstring."""
    if isinstance(node, ast.If):
        return _name(node.test).endswith("TYPE_CHECKING")
    if isinstance(node, ast.Assign):
        return _name(node.targets[0]) == LAZY
    return bool(bare_text(node))


def _lazy_names(tree: ast.Module) -> dict[str, str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and _name(node.targets[0]) == LAZY:
            return dict(ast.literal_eval(node.value))
    return {}


def _aliases(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Each module of this repository by its name in this file: `import tb_pastnet as pastnet`."""
    aliases: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] in PACKAGES:
                    name = alias.asname or alias.name.split(".")[0]
                    aliases[name] = alias.name if alias.asname else name
        elif isinstance(node, ast.ImportFrom) and node.module in PACKAGES:
            aliases |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return aliases


def _name(node: ast.AST) -> str:
    """`a.b.c` of an expression that is no more than that, else ""."""
    if isinstance(node, ast.Attribute):
        head = _name(node.value)
        return head and f"{head}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _attribute(node: ast.Attribute, aliases: dict[str, str]) -> set[str]:
    head, _, rest = _name(node).partition(".")
    return {f"{aliases[head]}.{rest}"} if head in aliases else set()


def _any_attribute(node: ast.Call, aliases: dict[str, str]) -> set[str]:
    """All names of a package of this repository, if `getattr` reads any."""
    called = [_name(part) for part in (node.func, *node.args[:1])]
    return {f"{aliases[called[1]]}.*"} if called[0] == "getattr" and called[1] in aliases else set()


def _run_as_modules(node: ast.List | ast.Tuple) -> set[str]:
    """The modules after "-m" in a command."""
    texts = [getattr(part, "value", None) for part in node.elts]
    run = {module for flag, module in pairwise(texts) if flag == "-m" and module in PACKAGES}
    return {f"{module}.__main__" for module in run}


class Tree:
    """All Python of the repository, or of a folder like it.

    Args:
        root: the folder.
    """

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self._modules: dict[str, Path] = {}
        for package in PACKAGES:
            for path in sorted((root / package).rglob("*.py")):
                parts = path.relative_to(root).with_suffix("").parts
                self._modules[".".join(parts).removesuffix(".__init__")] = path
        self._mentions = {
            path: mentions(
                path.read_text("utf-8"),
                fixtures=path.name == "conftest.py",
                programs=not self._below(path, "tb_pastnet"),
            )
            for path in self._modules.values()
        }
        self._start_node = {
            path
            for path, told in self._mentions.items()
            if not self._below(path, "tools") and any(text.endswith(".mjs") for text in told.texts)
        }
        self._edges = {path: self._near(path) for path in self._mentions}
        self._closures: dict[Path, frozenset[Path]] = {}

    @cached_property
    def tests(self) -> list[Path]:
        """Files that pytest collects: those of tests, and modules with an example."""
        return [path for path in self._mentions if self._is_collected(path)]

    def _is_collected(self, path: Path) -> bool:
        if path.name.startswith("test_"):
            return self._below(path, "tests")
        if path.name == "__init__.py" or not self._below(path, "tb_pastnet"):
            return False
        return self._mentions[path].examples is not None

    def reached(self, path: Path) -> frozenset[Path]:
        """All files that a file reaches, itself among them."""
        if path not in self._closures:
            todo = [path, *self._edges_of_examples(path)]
            seen = {*todo}
            while todo:
                fresh = self._edges[todo.pop()] - seen
                seen |= fresh
                todo.extend(fresh)
            self._closures[path] = frozenset(seen | self._hooks_above(path))
        return self._closures[path]

    def uses(self, path: Path, other: Path) -> bool:
        """Whether a file itself names another, not only through others."""
        return other in self._edges[path] | self._edges_of_examples(path)

    def starts(self, path: Path, other: Path) -> bool:
        """Whether a file starts the command of another, or commands that another is a part of."""
        entry = self.root / ENTRY
        starting = {entry, *(file for file, near in self._edges.items() if entry in near)}
        if other.parent != entry.parent or not {path, *self._edges[path]} & starting:
            return False
        is_command = other.stem in self._mentions[entry].texts
        return other.stem in self._mentions[path].texts or not is_command

    def outside(self, path: Path) -> set[str]:
        """Packages of others that a file reaches, and `NODE`."""
        examples = self._mentions[path].examples
        needs = {*examples.outside} if examples else set[str]()
        for file in self.reached(path):
            needs |= self._mentions[file].outside
            if file in self._start_node:
                needs.add(NODE)
        return needs

    def is_fast(self, path: Path) -> bool:
        """Whether a file of tests needs neither a framework nor a browser."""
        return not self.outside(path) & {*FRAMEWORKS, NODE}

    def naming(self, other: Path) -> set[Path]:
        """The files that name one that isn't Python, or a folder that it is in."""
        return {file for file in self._mentions if self._names(file, other)}

    def _names(self, file: Path, other: Path) -> bool:
        texts, name = self._mentions[file].texts, other.name
        if name in texts or any(text.endswith(f"/{name}") for text in texts):
            return True
        # A folder is named by each name on the way from the nearest one that has both.
        nearest = Path(os.path.commonpath([file.parent, other.parent]))
        way = other.parent.relative_to(nearest).parts
        for length in range(1, len(way) + 1):
            folder = [part for part in way[:length] if part not in _SILENT]
            end_of_path = "/" + "/".join(folder)
            if folder and (
                texts.issuperset(folder) or any(f"/{text}".endswith(end_of_path) for text in texts)
            ):
                return True
        return False

    def _below(self, path: Path, folder: str) -> bool:
        return path.parts[len(self.root.parts)] == folder

    def _near(self, path: Path) -> set[Path]:
        told = self._mentions[path]
        near = {file for name in told.dotted for file in self._resolve(name)}
        if "subprocess" in told.outside:
            near |= self._run_from_documents(told)
        if any("tensorboard.main" in text for text in told.texts):
            near |= set(self._resolve("tb_pastnet.serve.loader"))  # TensorBoard loads plugins
        if self._below(path, "tests"):
            near |= self._fixtures(path, told)
        return near

    def _edges_of_examples(self, path: Path) -> set[Path]:
        examples = self._mentions[path].examples
        names = examples.dotted if examples else ()
        return {file for name in names for file in self._resolve(name)}

    def _run_from_documents(self, told: Mentions) -> set[Path]:
        """What the Python in documents reaches, for a file that starts programs and reads them."""
        near: set[Path] = set()
        for name in {text for text in told.texts if text.endswith(".md") and _FILE.match(text)}:
            documents = (self.root / "docs").rglob(Path(name).name)
            for document in (self.root / name, *documents):
                if document.is_file():
                    program = mentions("\n".join(_FENCED.findall(document.read_text("utf-8"))))
                    told.outside |= program.outside
                    near |= {file for each in program.dotted for file in self._resolve(each)}
        return near

    def _fixtures(self, path: Path, told: Mentions) -> set[Path]:
        """What gives it fixtures: the conftest.py above, and what these give on."""
        near: set[Path] = set()
        if not path.name.startswith("test_"):
            return near
        asked = told.arguments | told.texts
        for file in self._above(path):
            above = self._mentions[file]
            if (above.unasked and not above.hooks) or above.functions & asked:
                near.add(file)
            for name in above.given.keys() & asked:
                near |= set(self._resolve(above.given[name]))
        return near

    def _hooks_above(self, path: Path) -> set[Path]:
        """Each conftest.py with hooks, but not what these reach: they serve all tests alike."""
        return {file for file in self._above(path) if self._mentions[file].hooks}

    def _above(self, path: Path) -> list[Path]:
        folders = [*path.relative_to(self.root).parents][:-1]
        files = [self.root / folder / "conftest.py" for folder in folders]
        return [file for file in files if file in self._mentions]

    def _resolve(self, dotted: str) -> Iterator[Path]:
        """The files of all packages on the way to a module, or to what is in one."""
        parts = dotted.rstrip(".").split(".")
        for end in range(1, len(parts) + 1):
            name = ".".join(parts[:end])
            if name in self._modules:
                yield self._modules[name]
                continue
            lazy = self._lazy(".".join(parts[: end - 1]))
            for home in lazy.values() if parts[end - 1] == "*" else [lazy.get(parts[end - 1])]:
                if home:
                    rest = [home, *parts[end:]]
                    yield from self._resolve(".".join(rest))
            if lazy:
                return
        if dotted.endswith("."):
            inside = ".".join(parts) + "."
            yield from (file for name, file in self._modules.items() if name.startswith(inside))

    def _lazy(self, package: str) -> dict[str, str]:
        """By public name the module that a package loads when it is asked for it."""
        path = self._modules.get(package)
        return self._mentions[path].lazy if path and path.name == "__init__.py" else {}

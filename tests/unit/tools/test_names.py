"""Names that say nothing are counted, and no more of them come in."""

from __future__ import annotations

from tools import names
from tools.names import Counts, Survey

SOURCE = """
from typing import Any
class Place: pass
def which(self, one, value: Any, kept: Any = 1):
    found = _known = 1
    for step in range(found): total = step
    lambda it: found
"""


def test_what_code_binds_is_counted():
    survey = Survey()
    survey.read(SOURCE, "core/a.py")
    assert sorted(survey.empty) == ["_known", "found", "one", "which"]
    assert survey.empty["found"] == ["core/a.py:5"]
    assert survey.bound == len(["Place", "which", "self", "one", "value", "kept", "found", "_known",
                                "step", "total", "it"])  # fmt: skip
    assert survey.parameters == len(["one", "value", "kept", "it"])
    assert survey.counts == Counts(empty=364, files=0, classes=0, untyped=500)


def test_files_and_classes_of_one_name_are_told():
    survey = Survey()
    for file in ("core/a.py", "format/a.py", "core/b.py", "core/__init__.py", "v1/__init__.py"):
        survey.read("class A: pass" if file.endswith("a.py") else "", file)
    assert (survey.counts.files, survey.counts.classes) == (1, 1)
    assert survey.classes["A"] == ["core/a.py:1", "format/a.py:1"]


def test_more_than_there_may_be_is_refused(tmp_path):
    package = tmp_path / "tb_pastnet"
    package.mkdir()
    (package / "a.py").write_text(SOURCE)
    assert names.check(tmp_path, Counts(364, 0, 0, 500)) == (0, "")
    code, text = names.check(tmp_path, Counts(363, 0, 0, 100))
    assert code == 1
    assert "expected empty <= 363, got 364.\n" in text
    assert "expected untyped <= 100, got 500.\n" in text
    assert "python -m tools.names" in text


def test_the_package_itself_is_within_what_there_may_be():
    assert names.check() == (0, "")

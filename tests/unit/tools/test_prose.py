"""What reads as translated is found, in docs, in code and in the page."""

from __future__ import annotations

import pytest

from tools import prose

PAGE = """# What it costs, anew

A log *tells* a lot, so that
it [stands beside](beside.md) `it tells` others.

```python
tells = "beside"
```

- one | two
- Where it is frozen, it stays. `x` is next.

| a | beside it |
| --- | --- |
<!-- begin of x --> beside <!-- end of x -->
"""


def lines(text, kind=prose.of_markdown):
    return [(line, what) for part in kind(text) for line, what, _ in prose.findings(part)]


def test_markdown_is_read_without_code_links_and_what_programs_write():
    assert sorted(lines(PAGE)) == [
        (1, "anew"),
        (3, ", so that"),
        (3, "tells"),
        (4, "beside"),
        (4, "stands "),
        (11, "Where "),
        (13, "beside"),
    ]


def test_python_is_read_in_docstrings_comments_and_texts():
    source = '''
"""Made anew.

>>> "beside"
'beside'

    u8     beside

Args:
    one: told.
"""
name = beside = "beside"
raise ValueError(f"{name} is given up")  # nobody
'''
    assert sorted(lines(source, prose.of_python)) == [
        (2, "anew"),
        (10, "told"),
        (13, "given up"),
        (13, "nobody"),
    ]


def test_typescript_is_read_in_comments_texts_and_elements():
    source = """
const beside = "beside"; // stands there
const title = `${runs} goes on`;
return <p title="told of it">
  See what it costs <b>us</b>
</p>;
"""
    assert sorted(lines(source, prose.of_page)) == [
        (2, "stands "),
        (3, "goes on"),
        (4, "told"),
        (5, "what it costs"),
    ]


def test_long_sentences_are_found_and_counted():
    short, long = "One two three. ", "word " * 41
    (text,) = prose.of_markdown(f"{short}\n{long.strip().capitalize()}.")
    ((line, _, better),) = prose.findings(text)
    assert (line, better) == (2, "at most 40 words, not 41")
    assert [prose.words(part) for _, part in prose.sentences(text)] == [3, 41]


@pytest.mark.parametrize(
    "good",
    [
        "The letters tell apart two runs.",
        "It stands for a channel, and stands out.",
        "Leave it alone. Where is it?",
        "Layers where masks differ are marked.",
    ],
)
def test_good_english_is_left_alone(good):
    assert lines(good) == []


def test_files_and_folders_are_read_and_findings_are_printed(tmp_path, capsys):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("Nobody.\n\nOne two three.\n")
    (tmp_path / "docs" / "a.png").write_bytes(b"\x89")
    code, text = prose.check(["docs"], tmp_path)
    assert (code, text) == (1, "docs/a.md:1: 'Nobody': anyone who, someone, no one")
    (tmp_path / "docs" / "a.md").write_text("One two three.\n\nNo sentence\n")
    assert prose.check(["docs/a.md"], tmp_path) == (0, "")
    assert prose.median(["docs"], tmp_path) == 3
    assert prose.main(["--median"]) == 0
    assert capsys.readouterr().out.endswith(" words\n")


def test_the_docs_are_plain_and_short():
    assert prose.check(prose.DOCS) == (0, "")
    assert prose.median() <= 16

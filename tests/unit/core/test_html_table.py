from __future__ import annotations

import re

from tb_pastnet.core.html_table import MOST, Markup, html_table

HOSTILE = "<script>alert('x')</script>&\""


def test_text_is_escaped_wherever_it_stands() -> None:
    shown = html_table(HOSTILE, (HOSTILE,), [(HOSTILE,)], [HOSTILE])
    assert "<script" not in shown
    assert shown.count("&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;&amp;&quot;") == 4
    assert "<b>x</b>" in html_table("", (), [(Markup("<b>x</b>"),)])


def test_numbers_stand_to_the_right_below_their_names() -> None:
    shown = html_table("t", ("name", "count"), [("a", 1234), ("b", 5)])
    cells = re.findall(r"<(t[hd]) [^>]*text-align:(\w+)\">([^<]*)<", shown)
    assert cells == [
        ("th", "left", "name"), ("th", "right", "count"),
        ("td", "left", "a"), ("td", "right", "1,234"),
        ("td", "left", "b"), ("td", "right", "5"),
    ]  # fmt: skip


def test_of_many_rows_the_first_are_shown_and_the_rest_is_counted() -> None:
    shown = html_table("t", ("n",), [(n,) for n in range(MOST + 1200)])
    assert shown.count("<td") == MOST
    assert "and 1,200 more" in shown


def test_nothing_is_no_table() -> None:
    assert html_table("no runs", ("run",), []) == "<div><div><b>no runs</b></div></div>"


def test_it_sets_no_colour_of_its_own() -> None:
    """Text has the colour of the page, light or dark."""
    shown = html_table("t", ("n",), [(1,)], ["note"])
    assert set(re.findall(r"[;\"]color:([^;\"]+)", shown)) == {"inherit"}
    assert "background:none" in shown

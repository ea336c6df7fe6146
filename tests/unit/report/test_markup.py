"""Markup: text stays text."""

import json

from hypothesis import given
from hypothesis import strategies as st

from sparkwright.report.html import data_json
from sparkwright.report.markup import Html, html_tag, join_html


def test_text_is_escaped_and_markup_is_not() -> None:
    """Markup is known by type, not by memory."""
    assert html_tag("p", "<b>", Html("<i>x</i>"), class_="a", title='"&') == (
        '<p class="a" title="&quot;&amp;">&lt;b&gt;<i>x</i></p>'
    )
    assert join_html("a&b", Html("<br>")) == "a&amp;b<br>"
    assert html_tag("td", "x", class_=None, hidden=False) == "<td>x</td>" and html_tag("br") == "<br>"


@given(st.text())
def test_data_can_hold_any_name_and_end_no_element(name: str) -> None:
    """`</script>`, `<!--` and line separators included; it reads back as it was."""
    text = data_json([name, "</script><!--\u2028"], [], [])
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text)["runs"][0] == name

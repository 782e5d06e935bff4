"""Text of bytes in any encoding, and of HTML."""

from html import escape
from html.parser import HTMLParser

import pytest
from hypothesis import given, strategies as st

from deciban.sources.documents import decode, text_of_html


@given(st.binary(max_size=200), st.sampled_from([None, "utf-16", "koi8-r", "nonsense", "utf-7"]))
def test_any_bytes_are_some_text(raw: bytes, encoding: str | None) -> None:
    decode(raw, encoding).encode()


# HTML


def test_html_is_what_it_shows() -> None:
    markup = (
        "<!DOCTYPE html><title>Head</title><style>p { color: red }</style><SCRIPT a='>'>if (1 < 2) '</p>'</script >"
        "<p title='a > b'>V<b>i</b>ag<!-- not > this -->ra &amp; &eacute;&#65;&nbsp;x</p>y<br/>z"
        "<td>one</td><td>two</td><unknown>in</unknown>line 1 < 2 <![if !mso]>kept<![endif]> &xyzzy; &#9999999999999999;"
    )
    shown = "Head\nViagra & éA x\ny\nz\none\ntwo\ninline 1 < 2 kept &xyzzy; �"
    assert text_of_html(markup) == shown


class Known(HTMLParser):
    """The text between tags by Python's own parser."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        self.found.append(data)


words = st.text(st.characters(codec="utf-8", exclude_characters="\r\0", exclude_categories=["Cc", "Cs"]), max_size=20)


@given(st.lists(st.tuples(st.sampled_from(["b", "i", "font", "A"]), words, words, st.booleans()), max_size=6))
def test_well_written_html_is_read_as_python_reads_it(elements: list[tuple[str, str, str, bool]]) -> None:
    markup = "".join(
        f'<{tag} title="{escape(value)}">{escape(inner)}</{tag}>' + ("<!-- & -->" if comment else "")
        for tag, value, inner, comment in elements
    )
    known = Known()
    known.feed(markup)
    known.close()
    assert text_of_html(markup).split() == "".join(known.found).split()


@pytest.mark.parametrize(
    "sign", ["<a ", "<", "<!--", "<a b='", "</", "<a b=", "<script></script", '<a b=">', "&#", "<!["]
)
def test_html_that_is_never_closed_takes_no_longer(sign: str) -> None:
    """Python's own parser would take hours."""
    text_of_html(sign * 100_000)

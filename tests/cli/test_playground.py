"""The command `playground` writes a page with the model that is given, or with one of the weather."""

import json
from pathlib import Path

import pytest

from tests.support.command import Deciban


def columns_in(page: str) -> list[str]:
    """The names of the columns of the model in a page."""
    model = page.partition('id="model-json">')[2].partition("</script>")[0]
    return [column["name"] for column in json.loads(model)["columns"]]


def test_a_page_with_a_model_and_one_without(deciban: Deciban, model: str) -> None:
    answer = deciban("playground", "--output", "page.html")
    page = Path("page.html").read_text(encoding="utf-8")
    assert answer.out == f"page.html: {Path('page.html').stat().st_size:,} bytes\n"
    assert "<title>deciban: a playground</title>" in page
    assert "outlook" in columns_in(page)
    answer = deciban("playground", model, "-o", "page.html", "--title", "Mine & yours", "--json")
    assert json.loads(answer.out) == {"output": "page.html", "bytes": Path("page.html").stat().st_size}
    page = Path("page.html").read_text(encoding="utf-8")
    assert "<title>Mine &amp; yours</title>" in page
    assert "town" in columns_in(page)
    assert "outlook" not in columns_in(page)


def test_bad_input_has_one_line_and_writes_nothing(deciban: Deciban, model: str) -> None:
    for arguments, code, text in (
        ((), 2, "--output"),
        (("nothing.dcb", "-o", "page.html"), 5, "nothing.dcb"),
        ((model, "-o", "no/folder/page.html"), 5, "the folder no/folder does not exist"),
        ((model, "-o", model), 2, model),
    ):
        answer = deciban("playground", *arguments)
        assert (answer.code, answer.err.count("\n")) == (code, 1)
        assert text in answer.err
        assert not Path("page.html").exists()


def test_a_model_too_large_for_a_page_is_told_of(deciban: Deciban, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deciban.page.build.MAX_BYTES_OF_A_MODEL", 10)
    answer = deciban("playground", model, "-o", "page.html")
    assert answer.code == 0
    assert "the page cannot contain this model" in answer.err
    assert "too much for a page" in Path("page.html").read_text(encoding="utf-8")

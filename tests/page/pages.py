"""Pages as files, and what a browser finds in them."""

from pathlib import Path
from typing import Any

from deciban.model.fitted import Fitted
from deciban.page.build import render_page
from tests.support.browser import AXE, Opened


def written_page(folder: Path, fitted: Fitted | None, title: str = "A model") -> Path:
    path = folder / "page.html"
    path.write_text(render_page(fitted, service=False, title=title)[0], encoding="utf-8")
    return path


def risks(it: Opened) -> dict[str, float]:
    """The expected loss of each decision, as the bars say."""
    bars = it.page.locator("#risks li").all()
    return {bar.get_attribute("data-decision"): float(bar.get_attribute("data-risk")) for bar in bars}


def decided(it: Opened) -> str:
    found: str = it.page.locator("#decided").get_attribute("data-decision")
    return found


def tab(it: Opened, name: str) -> None:
    it.page.get_by_role("tab", name=name).click()


def told_terms(label: str) -> dict[str, float]:
    """The terms that a picture of evidence tells a screen reader."""
    parts = [part.strip().rsplit(" ", 1) for part in label.split(": ", 1)[1].split(",")]
    return {name: float(value.replace("−", "-")) for name, value in parts}


def faults(it: Opened) -> list[Any]:
    """What axe finds wrong with the page as it is shown."""
    it.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    it.page.evaluate(AXE.read_text(encoding="utf-8"))
    found = it.page.evaluate("axe.run().then(found => found.violations.map(one => [one.id, one.impact, "
                             "one.nodes.map(node => node.html)]))")  # fmt: skip
    return list(found)

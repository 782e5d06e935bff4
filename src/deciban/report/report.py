"""`Report`: the page and the figures of a model."""

import os
from dataclasses import dataclass
from typing import Any

from deciban.report.figures import ReportFigures
from deciban.report.page import report_page
from deciban.sources.write import replacing
from deciban.util.plain_json import plain_json


@dataclass(frozen=True, repr=False)
class Report:
    """A report on a model: one HTML page that needs nothing else, and its figures as data.

    `BayesClassifier.report` makes it.

    Parameters
    ----------
    found : ReportFigures
        What was found.

    Attributes
    ----------
    figures : dict
        All figures, as JSON has them.
    html : str
        The page.

    See Also
    --------
    BayesClassifier.evaluate : The figures of rows that were held out.
    """

    found: ReportFigures

    @property
    def figures(self) -> dict[str, Any]:
        """All figures, as JSON has them."""
        return plain_json(self.found.data)  # type: ignore[no-any-return]  # a dict stays one

    @property
    def html(self) -> str:
        """The page."""
        return report_page(self.found)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file.

        Parameters
        ----------
        path : str or path-like
            The file; one that is there is replaced when all is written.
        """
        page = self.html.encode()
        with replacing(os.fspath(path)) as file:
            file.write(page)

    def __repr__(self) -> str:
        return f"Report({self.figures['title']!r})"

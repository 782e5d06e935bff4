"""Notes after a fit: words read as missing cells, a single class, and the accuracy of the model."""

import shlex
from typing import TYPE_CHECKING

from deciban.cli.output import notify

if TYPE_CHECKING:
    from deciban.model.fitted import Fitted
    from deciban.sources.source import Source


def warn_about_model(fitted: "Fitted") -> None:
    """Warn about a single class."""
    if fitted.classes.size == 1:
        notify("warning", f"only one class, {fitted.classes.tolist()[0]!r}: it will always be predicted")


def note_missing_words(source: "Source", target: str | None) -> None:
    """Print a note for each column with words that are read as missing cells."""
    for name, note in source.notes.items():
        if name != target:
            notify(
                "note", f"column {name!r}: {note}; use {quote_option('--type', f'{name}=text')} to keep them as text"
            )


def quote_option(flag: str, value: str) -> str:
    """Return an option and its value, quoted for the shell."""
    return f"{flag} {shlex.quote(value)}"


# Advice if the rows of a model have changed since it was tuned.
RETUNE = "to update it, run deciban learn --retune with more rows, or fit again"


def describe_tuning(fitted: "Fitted", correction_seconds: float | None = None) -> str:
    """Describe the tuning in one line: rows, accuracy and log-loss, and the accuracy of the most frequent class."""
    return "plain Bayes" if fitted.tuning is None else fitted.tuning.describe(fitted.counts, correction_seconds)

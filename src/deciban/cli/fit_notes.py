"""Notes after a fit: suspicious columns and classes, and the accuracy of the model."""

import math
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from deciban.cli.messages import as_option
from deciban.cli.output import notify
from deciban.errors import render_message
from deciban.util.text_tables import count_noun, format_class

if TYPE_CHECKING:
    from deciban.model.fitted import Fitted
    from deciban.model.tuning import Tuning
    from deciban.sources.source import Source


def warn_about_model(fitted: "Fitted", columns: bool = True) -> None:
    """Warn about a single class, and about columns that were probably read in another way than intended.

    columns: False if the library has already warned about these.
    """
    if fitted.classes.size == 1:
        notify("warning", f"only one class, {fitted.classes.tolist()[0]!r}: it will always be predicted")
    if columns:
        from deciban.fitting.remarks import Reading, list_remarks

        for remark in list_remarks(fitted.counts.schema.plain, Reading()):
            notify("warning", render_message(remark, as_option))


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


def describe_tuning(fitted: "Fitted") -> str:
    """Describe the tuning in one line: rows, accuracy and log-loss, and the accuracy of the most frequent class."""
    tuning, counts = fitted.tuning, fitted.counts
    if tuning is None:
        return "plain Bayes"
    if tuning.accuracy is None or tuning.log_loss is None or not counts.class_weight.any():
        return tuning.summary
    from deciban.evaluation.metrics import MAX_GAIN_BY_CHANCE

    shares = (counts.class_weight / counts.class_weight.sum()).tolist()
    share = max(shares)
    label = counts.classes.tolist()[shares.index(share)]
    entropy = -sum(one * math.log(one) for one in shares if one > 0.0)
    always = repr(label) if isinstance(label, str) else format_class(label)
    by_chance = share + 2.0 * math.sqrt(share * (1.0 - share) / tuning.rows)
    if tuning.rows * (entropy - tuning.log_loss) < MAX_GAIN_BY_CHANCE and tuning.accuracy <= by_chance and share < 1.0:
        # The accuracy would mislead here. If the classes are equally frequent and the columns are not informative, the
        # class of a left-out row is always the less frequent one among the others, so that the accuracy is near 0.
        weak = f"the columns do not predict the class: no better than always guessing {always} ({share:.4f})"
        return f"{replace(tuning, accuracy=None).summary}; {weak}"
    copies = f"; {count_noun(tuning.copies, 'copied row')} left out together with the original" if tuning.copies else ""
    return f"{_describe_metrics(tuning, f' (always {always}: {share:.4f})')}{copies}"


def _describe_metrics(tuning: "Tuning", baseline: str = "") -> str:
    """Describe the rows of a tuning and the metrics on them, with a baseline of the accuracy."""
    rows = replace(tuning, accuracy=None).summary
    how = "leave-one-out" if tuning.corrections is None else "cross-validated"
    return f"{rows}; {how} accuracy {tuning.accuracy:.4f}{baseline}, log-loss {tuning.log_loss:.4f}"

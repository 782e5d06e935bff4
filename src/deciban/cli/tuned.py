"""How a model was tuned and how good it is, beside what knowing nothing of the columns is worth."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from deciban.util.text_tables import class_name

if TYPE_CHECKING:
    from deciban.model.fitted import Fitted

RETUNE = "`deciban learn --retune`, with more rows, or a new fit learns the weights anew"


def tuning_summary(fitted: "Fitted") -> str:
    """On how many rows it was tuned, how good it is on rows left out, and how good the commonest class alone is."""
    tuning, counts = fitted.tuning, fitted.counts
    if tuning is None:
        return "plain Bayes"
    if tuning.accuracy is None or tuning.log_loss is None or not counts.class_weight.any():
        return tuning.summary
    from deciban.evaluation.metrics import BY_CHANCE

    shares = (counts.class_weight / counts.class_weight.sum()).tolist()
    share = max(shares)
    label = counts.classes.tolist()[shares.index(share)]
    entropy = -sum(one * math.log(one) for one in shares if one > 0.0)
    always = repr(label) if isinstance(label, str) else class_name(label)
    by_chance = share + 2.0 * math.sqrt(share * (1.0 - share) / tuning.rows)
    if tuning.rows * (entropy - tuning.log_loss) < BY_CHANCE and tuning.accuracy <= by_chance and share < 1.0:
        # An accuracy is no help here: a row is left out of the shares of the classes too, so that where the classes are
        # as frequent as each other and the columns say nothing, another class than its own is always more probable.
        nothing = "the columns tell nothing of the class: no better than always saying"
        return f"{replace(tuning, accuracy=None).summary}: {nothing} {always} ({share:.4f})"
    return f"{tuning.summary}; always {always}: {share:.4f}"

"""What a service answers by at a moment: a model and its version, replaced as a whole."""

from dataclasses import dataclass

from deciban.model.fitted import Fitted


@dataclass(frozen=True)
class State:
    """A model as it is served. Readers take it once for a request, so that no answer is of two models.

    version: the same for the same model. sequence: the number of the last change that was learned on line, 0 for none.
    loaded: when the file was read, in seconds since 1970.
    """

    fitted: Fitted
    version: str
    sequence: int
    loaded: float

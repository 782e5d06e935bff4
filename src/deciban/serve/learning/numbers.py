"""The figures of learning on line that outlive the process: they are committed with every change."""

from dataclasses import dataclass

import msgspec


@dataclass
class Numbers:
    """Where learning on line stands.

    sequence: the number of the last change. decay: the logarithm, to base 2, of what is left of a row that was learned
    when the journal began. learned, untuned: rows learned since the last decay and the last tuning. weight_ever: the
    weight of all rows that were ever learned or forgotten, decayed like them: sums of weights may be wrong by a tiny
    share of it. tunings: how often the model was tuned since the journal began. clock: seconds of service so far.
    kept, pending: how many rows have an id, and wait for a label; pending_bytes: of the latter. unverified: how many
    rows were forgotten without an id, of which nobody knows whether they were those of some id.
    """

    sequence: int = 0
    decay: float = 0.0
    learned: int = 0
    untuned: int = 0
    weight_ever: float = 0.0
    tunings: int = 0
    clock: float = 0.0
    kept: int = 0
    pending: int = 0
    pending_bytes: int = 0
    unverified: int = 0

    def left_of(self, weight: float, decay: float) -> float:
        """What is left of a weight that was learned when the decay was `decay`."""
        return weight if decay == self.decay else float(weight * 2.0 ** (self.decay - decay))

    def packed(self) -> str:
        """As text for the journal."""
        return msgspec.json.encode(self).decode()


def unpacked(text: str) -> Numbers:
    """What `Numbers.packed` wrote."""
    return msgspec.json.decode(text, type=Numbers)

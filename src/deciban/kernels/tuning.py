"""What tuning tries many times over."""

import numpy as np

from deciban.kernels.compiled import Array, compiled


@compiled
def block_losses(evidence: Array, log_prior: Array, labels: Array, weights: Array, losses: Array) -> None:
    """The mean log-loss of the posteriors from the prior and each block alone; `evidence` is row by block by class."""
    classes = log_prior.size
    total = weights.sum()
    losses[:] = 0.0
    for i in range(evidence.shape[0]):
        y = labels[i]
        for b in range(evidence.shape[1]):
            highest = -np.inf
            for c in range(classes):
                highest = max(highest, log_prior[c] + evidence[i, b, c])
            if highest == -np.inf:  # no class can produce the row: the posterior is the prior
                losses[b] -= weights[i] / total * log_prior[y]
                continue
            heap = 0.0
            for c in range(classes):
                heap += np.exp(log_prior[c] + evidence[i, b, c] - highest)
            losses[b] += weights[i] / total * (highest + np.log(heap) - log_prior[y] - evidence[i, b, y])


@compiled
def pair_gains(
    codes: Array,
    sizes: Array,
    labels: Array,
    weights: Array,
    alpha: float,
    posterior: Array,
    pairs: Array,
    gains: Array,
) -> None:
    """How much log-likelihood a table of two columns would add to what `posterior` knows, by its best weight.

    To second order: slope**2 / (2 curvature) of the log-likelihood in the weight of the pair's evidence, each row left
    out of the table; 0 where the slope is not positive.
    """
    classes = posterior.shape[1]
    for k in range(pairs.shape[0]):
        a, b = pairs[k, 0], pairs[k, 1]
        size = sizes[a] * sizes[b]
        counts = np.zeros((size, classes))
        total = np.zeros(classes)
        for i in range(codes.shape[0]):
            if codes[i, a] >= 0 and codes[i, b] >= 0:
                counts[codes[i, a] * sizes[b] + codes[i, b], labels[i]] += weights[i]
                total[labels[i]] += weights[i]
        table = np.empty((size, classes))
        own = np.empty((size, classes))
        for c in range(classes):
            for v in range(size):
                table[v, c] = np.log((counts[v, c] + alpha) / (total[c] + alpha * size))
                left = max(counts[v, c] - 1.0, 0.0) + alpha
                own[v, c] = np.log(left / (max(total[c] - 1.0, 0.0) + alpha * size))
        slope, curvature = 0.0, 1e-9
        for i in range(codes.shape[0]):
            if codes[i, a] >= 0 and codes[i, b] >= 0:
                v, y = codes[i, a] * sizes[b] + codes[i, b], labels[i]
                mean, square = 0.0, 0.0
                for c in range(classes):
                    term = own[v, c] if c == y else table[v, c]
                    mean += posterior[i, c] * term
                    square += posterior[i, c] * term * term
                slope += weights[i] * (own[v, y] - mean)
                curvature += weights[i] * (square - mean * mean)
        gains[k] = slope * slope / (2.0 * curvature) if slope > 0.0 else 0.0

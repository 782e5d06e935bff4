"""What families share: their contract, checks, smoothing, variances and Shapley values."""

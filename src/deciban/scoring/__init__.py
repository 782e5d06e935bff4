"""From rows to posteriors, predictions, decisions and samples, in memory, in files and in Spark."""

"""From rows to `Fitted`: plan, count, finish."""

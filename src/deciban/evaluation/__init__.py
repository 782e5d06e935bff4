"""How well a model does: metrics, folds, leave-one-out, importance, diagnosis, column selection."""

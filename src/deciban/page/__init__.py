"""The page: values tried on a model, a playground of Bayes decision theory, and what a model is, in one HTML file."""

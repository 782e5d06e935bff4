"""The interactive page: a model to try, a playground of Bayes decision theory, and the report, in one HTML file."""

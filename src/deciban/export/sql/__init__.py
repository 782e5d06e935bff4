"""A model as SQL.

`statement` puts it together, `terms` writes the evidence of each term, `corrections` the tables of corrections, `cells`
the cells of a row and the chain of subqueries. `sources.dialects` has what engines write differently.
"""

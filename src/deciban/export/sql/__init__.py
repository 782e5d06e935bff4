"""Export of models to SQL.

`statement` assembles the query, `terms` writes the evidence of each term, `correction_lookups` the correction tables,
`cells` the cells of a row and the chain of subqueries. `sources.dialects` has the differences between engines.
"""

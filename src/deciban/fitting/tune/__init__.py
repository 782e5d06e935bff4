"""Tuning by leave-one-out: rows are scored by what was counted without them, and choose how the model is made.

propose: what is tuned, from first to last. tuning: what was found, as a value. families: the family of each column.
blocks: columns that are modelled together. texts: how texts are scored. weights: what the evidence of each block
weighs. rows: the rows to tune on.
"""

"""Tuning by leave-one-out: rows are judged by what was counted without them.

tuning: what is tuned, from first to last. families: the family each column speaks by. blocks: columns that speak
together. weights: what the evidence of each block weighs. rows: the rows to tune on.
"""

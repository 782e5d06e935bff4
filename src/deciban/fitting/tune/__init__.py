"""Tuning by leave-one-out: rows are scored by what was counted without them, and choose how the model is made.

propose: what is tuned, from first to last. rows: the rows to tune on. candidates: families, scores of texts and joint
blocks to choose from. weights: the weight of each block. correct: correction tables. partial: rows with missing cells.
"""

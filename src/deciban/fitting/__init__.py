"""Fitting: plan, count, finish; updates of fitted models; tuning; counting in SQL engines."""

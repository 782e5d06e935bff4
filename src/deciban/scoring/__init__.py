"""Posteriors, predictions, decisions and samples for rows in memory, in files and in Spark."""

"""Rows in files, databases and Spark, and SQL dialects."""

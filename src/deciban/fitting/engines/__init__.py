"""Rows counted where they are: statements that ask an engine for counts, and statistics made of its answers."""

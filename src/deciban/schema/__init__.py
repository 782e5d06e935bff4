"""Family of each column of a table, and the reason for it."""

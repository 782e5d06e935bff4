"""What each column of a table is: its family, and why."""

"""A fitted model for other programs: as JSON, and as JavaScript that reads it."""

"""A fitted model for other programs: as JSON, and as JavaScript and Python that read it."""

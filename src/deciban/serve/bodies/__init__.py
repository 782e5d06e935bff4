"""Request bodies: JSON, CSV or Arrow, read strictly, as tables and records."""

"""What requests send: JSON, CSV or Arrow, read strictly, as tables and records."""

"""From posteriors to decisions."""

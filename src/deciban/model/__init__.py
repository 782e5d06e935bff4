"""Counts, estimates, evidence and posteriors, and the state of a fitted classifier (`Fitted`)."""

"""The core: counts, estimates, evidence and posteriors; the tuning and everything learned (`Fitted`) as values."""

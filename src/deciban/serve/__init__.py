"""HTTP service: predictions, explanations, decisions and online learning over HTTP."""

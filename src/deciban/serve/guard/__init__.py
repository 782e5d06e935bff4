"""What protects the service: limits, deadlines, tokens, headers, connections."""

"""What the service tells Prometheus: requests, rows, strangers, priors, costs, learning."""

"""The service: a model that other programs ask over HTTP, and that learns and forgets while it answers."""

"""Online learning: one thread writes to a journal beside the model file, everybody reads the state it publishes."""

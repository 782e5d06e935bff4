"""Online learning: the learner, its journal and the model file."""

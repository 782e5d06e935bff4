"""What is asked and answered: a function a route, and what makes their answers."""

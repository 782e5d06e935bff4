"""A model as one page: what it is, how good it is, what each column says, and a form to try values in."""

"""The HTML report on a model: description, quality, columns, diagnosis, decisions, and a form to try values."""

"""Count rows by SQL where they are: questions of families, statements, and statistics made of the answers."""

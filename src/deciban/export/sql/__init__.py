"""A model as SQL: terms become named expressions, and these a chain of subqueries."""

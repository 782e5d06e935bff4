"""What flows in: tables, labels and weights, and the schema that says what each column is."""

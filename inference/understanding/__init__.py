"""What a question means, by pure functions: no Django, no database, no network."""

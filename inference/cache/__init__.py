"""Stored answers: how they are found, kept, doubted and shared."""

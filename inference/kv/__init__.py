"""Keys and values computed once: where they are kept, and what they weigh. Knows torch, no Django."""

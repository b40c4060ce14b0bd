"""Django's Postgres backend with a pool that gets over a restart of the server at once."""

"""Starting Reprise on one machine: embedded Postgres and Valkey, checks before the start, supervision.

Knows nothing of chat, inference or cacheadmin: they are programs to run, and what they need is in the
environment.
"""

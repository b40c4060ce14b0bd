"""The operators' side: accounts, and management commands; the console lives here."""

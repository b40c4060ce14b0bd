"""Accounts of the people who look after the cache."""

import secrets

from django.contrib.auth import get_user_model
from django.db import transaction


@transaction.atomic
def create_operator(username: str) -> str | None:
    """Make the account with a random password, which is returned; None if the name is in use already."""
    users = get_user_model().objects
    if users.filter(username=username).exists():
        return None
    password = secrets.token_urlsafe(12)
    users.create_user(username=username, password=password, is_staff=True, is_superuser=True)
    return password

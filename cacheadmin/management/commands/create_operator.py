from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from cacheadmin.operators import create_operator


class Command(BaseCommand):
    help = "Creates the operator's account, unless there is one, and prints its random password this once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--username", default="operator", help="default: operator")

    def handle(self, *args: Any, username: str, **options: Any) -> None:
        password = create_operator(username)
        if password is None:
            self.stdout.write(
                f"{username} has an account; `manage.py changepassword {username}` sets its password."
            )
            return
        self.stdout.write(self.style.SUCCESS(f"Operator {username}, password {password}"))
        self.stdout.write(f"It is shown this once; `manage.py changepassword {username}` sets another.")

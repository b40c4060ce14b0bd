#!/usr/bin/env python
"""Django's commands. Without DATABASE_URL and REDIS_URL, embedded services run as long as the command; one
that only looks at what runs finds them where they run, and starts none."""

import os
import signal
import sys

LOOKING = {"kv_ledger"}


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.local")
    from django.core.management import execute_from_command_line

    if _needs_no_services(sys.argv):
        execute_from_command_line(sys.argv)
        return
    from launch.embedded import on_demand, where_running
    from launch.problem import Problem

    if sys.argv[1] in LOOKING:
        with where_running():
            execute_from_command_line(sys.argv)
        return
    # So that a command that is told to end leaves by the front door, and the services are stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        own_database = not os.environ.get("DATABASE_URL")
        with on_demand():
            if own_database:
                _have_tables(sys.argv[1])
            _log_to_stderr()
            execute_from_command_line(sys.argv)
    except Problem as problem:
        sys.exit(f"manage.py: {problem}")


def _have_tables(command: str) -> None:
    """A command of ours works on a fresh clone, where nobody has migrated yet."""
    import django
    from django.core.management import call_command, get_commands

    django.setup()
    if get_commands().get(command) == "cacheadmin":
        call_command("migrate", interactive=False, verbosity=0)


def _log_to_stderr() -> None:
    """What a command prints is its result, one JSON object with --json."""
    from config import logging

    logging.configure()


def _needs_no_services(arguments: list[str]) -> bool:
    if os.environ["DJANGO_SETTINGS_MODULE"] == "config.settings.production":
        return True  # which asks for the addresses itself
    wordy = {"help", "version", "makemessages", "compilemessages", "collectstatic", "findstatic"} | {
        "--version"
    }
    return len(arguments) < 2 or arguments[1] in wordy or bool({"-h", "--help"} & set(arguments))


if __name__ == "__main__":
    main()

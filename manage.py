#!/usr/bin/env python
"""Django's commands. Without DATABASE_URL and REDIS_URL, embedded services run as long as the command."""

import os
import signal
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.local")
    from django.core.management import execute_from_command_line

    if _needs_no_services(sys.argv):
        execute_from_command_line(sys.argv)
        return
    from launch.embedded import on_demand
    from launch.problem import Problem

    # So that a command that is told to end leaves by the front door, and the services are stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with on_demand():
            execute_from_command_line(sys.argv)
    except Problem as problem:
        sys.exit(f"manage.py: {problem}")


def _needs_no_services(arguments: list[str]) -> bool:
    if os.environ["DJANGO_SETTINGS_MODULE"] == "config.settings.production":
        return True  # which asks for the addresses itself
    wordy = {"help", "version", "makemessages", "compilemessages", "collectstatic", "findstatic"}
    return len(arguments) < 2 or arguments[1] in wordy or bool({"-h", "--help", "--version"} & set(arguments))


if __name__ == "__main__":
    main()

"""What must hold before anything is started. Each check raises Problem with one line that says what to do."""

import errno
import os
import shutil
import socket
import tempfile
from pathlib import Path

import psycopg
import redis

from launch.problem import Problem

# The converted model takes 260 MB, a fresh database 50 MB, and both grow by logs and conversations.
MEGABYTES_FOR_MODEL = 700
MEGABYTES_TO_RUN = 200


def check_writable(var_dir: Path) -> None:
    try:
        var_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=var_dir):
            pass
    except OSError as error:
        raise Problem(
            f"Cannot write to {var_dir} ({error.strerror}): "
            "make it writable, or set VAR_DIR to another folder."
        ) from error


def check_disk(var_dir: Path, megabytes: int) -> None:
    free = shutil.disk_usage(var_dir).free // 1_000_000
    if free < megabytes:
        raise Problem(
            f"Only {free} MB are free where {var_dir} lies, and {megabytes} MB are needed: "
            "free some, or set VAR_DIR to a folder on another disk."
        )


def check_port(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As the server does: connections of an earlier run that linger don't count as taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise Problem(_port_problem(error, host, port)) from error


def _port_problem(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} is taken by another program: stop that, or `make run PORT={port + 1}`."
    if error.errno == errno.EACCES:
        return f"Port {port} needs rights that user {os.geteuid()} lacks: choose one above 1023 with PORT."
    return (
        f"Cannot listen on {host}:{port} ({error.strerror or error}): set HOST to an address of this machine."
    )


def check_database(url: str) -> None:
    try:
        psycopg.connect(url, connect_timeout=5).close()
    except psycopg.Error as error:
        raise Problem(f"DATABASE_URL leads to no database: {_one_line(error)}") from error


def check_redis(url: str) -> None:
    try:
        with redis.Redis.from_url(url, socket_connect_timeout=5, socket_timeout=5) as client:
            client.ping()
    except (redis.RedisError, ValueError) as error:
        raise Problem(f"REDIS_URL leads to no Valkey or Redis: {_one_line(error)}") from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())

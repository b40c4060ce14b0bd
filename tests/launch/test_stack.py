"""The stack that other tests use: does it do to its parts what it says?"""

import signal

import httpx
import pytest

from tests.stack import Stack


def test_it_is_ready_on_the_suites_database(stack: Stack) -> None:
    health = httpx.get(f"{stack.url}/healthz")
    assert (health.status_code, health.json()["missing"]) == (200, [])
    assert httpx.get(stack.url, follow_redirects=True).status_code == 200


def test_a_killed_web_can_be_restarted_on_the_same_port(stack: Stack) -> None:
    first = stack.pid("web")
    stack.kill("web", signal.SIGKILL)
    stack.restart("web")
    assert stack.pid("web") != first
    assert httpx.get(f"{stack.url}/healthz").status_code == 200


@pytest.mark.parametrize("crash", [False, True])
def test_it_is_ready_again_after_its_services_restarted(stack: Stack, crash: bool) -> None:
    stack.restart_valkey(crash=crash)
    stack.restart_postgres(crash=crash)
    stack.wait_until_ready(60)

"""Who may read the figures, and that processes tell them once."""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from inference import metrics, scraping
from launch.options import REPOSITORY
from tests.stack import free_port

TOKEN = "three-token"
SHOWN = {"Authorization": f"Bearer {TOKEN}"}


def value(text: str, name: str, **labels: str) -> float | None:
    found = [
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    return sum(found) if found else None


@pytest.mark.parametrize(
    ("token", "address", "headers", "status"),
    [
        ("", "127.0.0.1", {}, 200),
        ("", "::1", {}, 200),
        ("", "10.0.0.7", {}, 403),
        ("", "", {}, 403),
        ("", "127.0.0.1", {"X-Forwarded-For": "10.0.0.7"}, 403),
        ("", "127.0.0.1", {"X-Forwarded-Proto": "https"}, 403),
        ("", "127.0.0.1", {"Via": "1.1 proxy"}, 403),
        ("", "10.0.0.7", SHOWN, 403),
        (TOKEN, "10.0.0.7", SHOWN, 200),
        (TOKEN, "10.0.0.7", {**SHOWN, "X-Forwarded-For": "10.0.0.8"}, 200),
        (TOKEN, "127.0.0.1", {}, 401),
        (TOKEN, "127.0.0.1", {"Authorization": f"Basic {TOKEN}"}, 401),
        (TOKEN, "127.0.0.1", {"Authorization": "Bearer three-tokem"}, 403),
        (TOKEN, "127.0.0.1", {"Authorization": "Bearer "}, 403),
    ],
)
def test_who_may_read_it(
    db: None, settings, client: Client, token: str, address: str, headers: dict[str, str], status: int
) -> None:
    settings.METRICS_TOKEN = token
    answer = client.get("/metrics", headers=headers, REMOTE_ADDR=address)
    assert answer.status_code == status
    assert (b"reprise_" in answer.content) == (status == 200)


def test_it_is_only_read(db: None, client: Client) -> None:
    assert client.post("/metrics").status_code == 405


def test_a_worker_tells_on_a_port_of_its_own(settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROMETHEUS_MULTIPROC_DIR", raising=False)
    settings.METRICS_PORT, settings.METRICS_TOKEN = free_port(), ""
    port = scraping.listen()
    assert port == settings.METRICS_PORT
    metrics.TOKENS.labels(kind=metrics.WRITTEN).inc(3)
    assert (value(ask(port), "reprise_tokens_total", kind=metrics.WRITTEN) or 0) >= 3
    for path, headers, status in (
        ("/other", {}, 404),
        ("/metrics", {"X-Forwarded-For": "10.0.0.7"}, 403),
    ):
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask(port, path, headers)
        assert refused.value.code == status
    settings.METRICS_TOKEN = TOKEN
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(port)
    assert refused.value.code == 401
    assert "reprise_tokens_total" in ask(port, headers=SHOWN)
    assert scraping.listen() is None, "the port is taken: said, and no reason not to work"


@pytest.mark.parametrize("why", ["no port", "shared"])
def test_a_worker_that_others_tell_for_is_silent(settings, monkeypatch, tmp_path: Path, why: str) -> None:
    settings.METRICS_PORT = 0 if why == "no port" else free_port()
    if why == "shared":
        monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    assert scraping.listen() is None


def ask(port: int, path: str = "/metrics", headers: dict[str, str] | None = None) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers or {})
    with opener.open(request, timeout=10) as answer:
        return str(answer.read().decode())


_COUNT = "from inference import metrics; metrics.computed(100, 40, 7)"
_TELL = "from inference import metrics; print(metrics.exposition().decode())"


def test_processes_that_count_into_one_folder_are_told_once(tmp_path: Path) -> None:
    """Two that have ended and one that asks: each has counted the same."""
    environ = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}

    def run(code: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=REPOSITORY, env=environ, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(_COUNT)
    run(_COUNT)
    told = run(f"{_COUNT}; {_TELL}")
    assert value(told, "reprise_tokens_total", kind=metrics.COMPUTED) == 180
    assert value(told, "reprise_tokens_total", kind=metrics.REUSED) == 120
    assert value(told, "reprise_tokens_total", kind=metrics.WRITTEN) == 21

"""kv_ledger against the running stack: what a conversation holds in its worker."""

import asyncio
import json
import subprocess
import sys
import time
from typing import Any

from launch.options import REPOSITORY
from tests.stack import Stack
from tests.websocket.client import stack_client

# Long enough to be among the twenty largest, whatever else the stack has answered.
QUESTION = "The sea was calm that day. " * 150 + "Who was the first to sail around the world?"
WITHIN = 60


def kv_ledger(*arguments: str) -> str:
    command = [sys.executable, "manage.py", "kv_ledger", "--live", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout


async def worker_with(session: str) -> dict[str, Any]:
    """The worker that tells of `session`; it tells every few seconds."""
    deadline = time.monotonic() + WITHIN
    while True:
        for worker in json.loads(await asyncio.to_thread(kv_ledger, "--json"))["workers"]:
            if session in {row["session"] for row in worker["sessions"]}:
                return dict(worker)
        assert time.monotonic() < deadline, f"{session} is nowhere"
        await asyncio.sleep(1)


async def test_a_conversation_is_found_by_its_id_only(stack: Stack) -> None:
    async with stack_client(stack) as chat:
        accepted = await chat.say(QUESTION)
        answer = await chat.whole(accepted.generation)
        worker = await worker_with(str(accepted.conversation))
        assert worker["engine"] == "torch" and worker["seat"].startswith("generate.")
        totals = worker["totals"]
        (row,) = (row for row in worker["sessions"] if row["session"] == str(accepted.conversation))
        assert answer.done
        usage = answer.done.usage
        assert usage.prompt_tokens < row["tokens"] <= usage.prompt_tokens + usage.completion_tokens
        assert row["bytes"] == row["tokens"] * totals["bytes_per_token"]
        assert totals["held_bytes"] == sum(totals[f"{part}_bytes"] for part in ("stored", "live", "idle"))
        assert row["unique_bytes"] <= totals["stored_unique_bytes"] <= totals["stored_bytes"]
        assert str(accepted.generation) in {one["request"].partition("#")[0] for one in worker["requests"]}

        text = await asyncio.to_thread(kv_ledger)
        assert str(accepted.conversation) in text and worker["seat"] in text
        assert QUESTION not in text + json.dumps(worker) and answer.text not in text + json.dumps(worker)

"""Any endpoint that speaks OpenAI's chat completions: a provider, vLLM, llama.cpp, Ollama ...

Talked to with httpx2 rather than with OpenAI's own package: that one would bring its own retries (which end
where the first byte arrives, not the first token) and types that other servers' extensions don't fit, and
sits on the same HTTP client, event stream parser included. What is left is this file and `endpoint`.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from inference.engines.base import (
    Delta,
    EngineFailed,
    EngineUnavailable,
    Finished,
    Identity,
    Reason,
    Request,
    Sampling,
)
from inference.engines.detokenise import REPLACEMENT, StopStrings
from inference.engines.endpoint import Endpoint, Json, Refused
from inference.engines.event_loop import Cancelled, LoopThread
from inference.engines.prompt import Fitted, PromptTooLong, answer_room, fit
from inference.kv.snapshot import Snapshot
from inference.understanding.turns import Turns

# Of a server that doesn't say: what the smallest models still in use have.
DEFAULT_WINDOW = 8192
# Of so many tokens the API tells at most how likely they were.
LIKELIEST = 20
# What the API takes; more are looked for here.
MOST_STOP_STRINGS = 4


def identity(base_url: str, model: str) -> Identity:
    """The server's word and no more: tokenizer, template and dtype are its business, and it can exchange
    them behind the same name. Whoever runs it does well to put a version into the name."""
    parts = urlsplit(base_url)
    where = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])).rstrip("/")
    return Identity(model=f"{model}@{where}", tokenizer=where, template=where, dtype="served")


class OpenAIEngine:
    """Answers with `model` at `base_url` (which usually ends in /v1).

    `window`: tokens of prompt and answer together; None asks the server, and takes 8,192 where that doesn't
    say. `connect`, `silence`: seconds until it must accept, and between two signs of life. `attempts`: how
    often a busy or broken server is asked, the first time included, before the first token.
    `max_tokens_name`: newer models of OpenAI's want "max_completion_tokens".

    Tokens are not seen here: `token_ids` and `output_token_ids` stay empty, counts are the server's, or an
    estimate where it gives none. `cache_salt` isn't sent, there is no such field: whose computed state the
    server shares is its own affair.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str = "",
        window: int | None = None,
        connect: float = 5.0,
        silence: float = 60.0,
        attempts: int = 3,
        max_tokens_name: str = "max_tokens",
    ) -> None:
        if not model:
            raise ValueError("The openai engine needs the name of a model")
        self._endpoint = Endpoint(
            base_url, api_key=api_key, connect=connect, silence=silence, attempts=attempts
        )
        self._model = model
        self._url = self._endpoint.url
        self._window = window
        self._max_tokens_name = max_tokens_name
        self._tokenizes: bool | None = None  # whether the server counts tokens; None: not asked yet
        self._loop = LoopThread("openai-engine")

    @property
    def window(self) -> int:
        """Tokens of prompt and answer together. Raises EngineUnavailable when the server must be asked and
        doesn't answer."""
        if self._window is None:
            self._window = self._loop.call(self._ask_window()) or DEFAULT_WINDOW
        return self._window

    @property
    def strong(self) -> bool:
        """Nobody says how large the model is."""
        return False

    def identity(self) -> Identity:
        return identity(self._url, self._model)

    def count_tokens(self, turns: Turns) -> int:
        """The length of these turns as a prompt: by the server's own count where it has one (vLLM's
        /tokenize), else estimated, see `estimate`. Raises EngineUnavailable."""
        if self._tokenizes is not False:
            counted = self._loop.call(self._ask_count(turns))
            self._tokenizes = counted is not None
            if counted is not None:
                return counted
        return estimate(turns)

    def reset(self) -> None:
        """Nothing is kept here, and the API has no word for what the server keeps."""

    def end_session(self, session: str) -> None:
        """Nothing is kept here by session."""

    def kv_report(self) -> dict[str, int]:
        """Nothing: keys and values are the server's."""
        return {}

    def kv_snapshot(self) -> Snapshot:
        """Empty, for the same reason."""
        return Snapshot()

    def close(self) -> None:
        """Ends running streams and closes the connections."""
        self._loop.call(self._endpoint.close())
        self._loop.close()

    def stream(self, request: Request) -> Generator[Delta | Finished, None, None]:
        """See Engine.stream."""
        budget = self.window - answer_room(self.window, request.sampling.max_tokens)
        try:
            fitted = fit(request.turns, count=lambda turns: self._at_most(turns, budget), budget=budget)
        except PromptTooLong as problem:
            raise EngineFailed(str(problem)) from problem
        return self._read(_Run(request, fitted))

    def _read(self, run: "_Run") -> Generator[Delta | Finished, None, None]:
        text = StopStrings(run.request.sampling.stop)
        events = self._endpoint.events(
            f"{self._url}/chat/completions", self._body(run), answers=lambda event: bool(_text(event))
        )
        reader = self._loop.read(events, run.request.cancelled)
        try:
            for event in reader:
                run.note(event)
                if piece := text.push(_text(event)):
                    run.written.append(piece)
                    yield Delta(piece, ())
                if text.stopped:
                    break
            else:
                run.check_complete()
        except Cancelled:
            run.reason = "cancelled"
        finally:
            reader.close()
        if text.stopped:
            run.reason = "stop"
        elif run.reason != "cancelled" and (piece := text.finish()):
            run.written.append(piece)
            yield Delta(piece, ())
        yield run.finished()

    def _body(self, run: "_Run") -> Json:
        sampling = run.request.sampling
        body: Json = {
            "model": self._model,
            "messages": _messages(run.fitted.turns),
            "stream": True,
            "stream_options": {"include_usage": True},
            self._max_tokens_name: self._room(run),
            "temperature": sampling.temperature,
        }
        if run.request.choices:
            body |= {"logprobs": True, "top_logprobs": LIKELIEST}
        return body | _optional(sampling)

    def _room(self, run: "_Run") -> int:
        """How many tokens the answer may have; some servers refuse a number that could pass the window."""
        wanted = run.request.sampling.max_tokens
        return min(wanted, max(answer_room(self.window, wanted), self.window - most(run.fitted.turns)))

    def _at_most(self, turns: Turns, budget: int) -> int:
        """The count of `turns`, or something larger that is within `budget` all the same: most prompts are
        so short that nobody need be asked."""
        bound = most(turns)
        return bound if bound <= budget else self.count_tokens(turns)

    async def _ask_count(self, turns: Turns) -> int | None:
        """None: this server doesn't count."""
        root = self._url.removesuffix("/v1")
        body = {"model": self._model, "messages": _messages(turns)}
        try:
            answer = await self._endpoint.ask("POST", f"{root}/tokenize", body)
        except EngineFailed:  # no such page, or one that means something else
            return None
        count = answer.get("count")
        return count if isinstance(count, int) else None

    async def _ask_window(self) -> int | None:
        """None: this server doesn't say."""
        try:
            answer = await self._endpoint.ask("GET", f"{self._url}/models")
        except Refused:
            return None
        models = [one for one in answer.get("data") or () if isinstance(one, dict)]
        lengths = [one.get("max_model_len") for one in models if one.get("id") == self._model]
        return next((length for length in lengths if isinstance(length, int)), None)


@dataclass(slots=True)
class _Run:
    """One request on its way."""

    request: Request
    fitted: Fitted
    usage: Json | None = None
    reason: Reason | None = None
    written: list[str] = field(default_factory=list)
    chances: tuple[float, ...] = ()

    def note(self, event: Json) -> None:
        """Remembers what an event says besides text. Raises EngineFailed for an answer that isn't one."""
        self.usage = event.get("usage") or self.usage
        if self.request.choices and not self.chances:
            self.chances = _chances(self.request.choices, _choice(event))
        why = _choice(event).get("finish_reason")
        if why in ("stop", "length"):
            self.reason = why
        elif why is not None:
            raise EngineFailed(f"The server ended the answer for another reason: {why}")

    def check_complete(self) -> None:
        """Raises EngineUnavailable when the stream ended and the answer had not."""
        if self.reason is None:
            raise EngineUnavailable("The server's stream ended in the middle of the answer")

    def finished(self) -> Finished:
        usage = self.usage or {}
        details = usage.get("prompt_tokens_details") or {}
        return Finished(
            reason=self.reason or "stop",
            prompt_tokens=usage.get("prompt_tokens") or estimate(self.fitted.turns),
            cached_tokens=details.get("cached_tokens") or 0,
            completion_tokens=usage.get("completion_tokens") or _tokens("".join(self.written)),
            prompt_cut=self.fitted.prompt_cut,
            history_cut=self.fitted.history_cut,
            output_token_ids=(),
            chances=self.chances,
        )


def estimate(turns: Turns) -> int:
    """About how many tokens a prompt of these turns has, for any model: `_tokens`, and four for the frame of
    each turn. Of what SmolLM2's own tokenizer counts (English only, so a bad case) it is 1.3 for English
    prose, 1.0 for Chinese and 0.8 for code and JSON; multilingual models need fewer for Chinese."""
    return sum(4 + _tokens(turn["content"]) for turn in turns) + 4


def most(turns: Turns) -> int:
    """More tokens than any tokenizer makes of these turns: one a byte, a generous frame around each turn, and
    the system prompt that some templates put before those that have none."""
    return sum(16 + len(turn["content"].encode("utf-8", "replace")) for turn in turns) + 64


def _tokens(text: str) -> int:
    """One for 3.5 ASCII letters and spaces, 0.7 for each sign or digit, 1.75 for each other character."""
    wide = sum(not one.isascii() for one in text)
    signs = sum(one.isascii() and not (one.isalpha() or one == " ") for one in text)
    return math.ceil((len(text) - wide - signs) / 3.5 + signs * 0.7 + wide * 1.75)


def _messages(turns: Turns) -> list[Json]:
    """As the API has them. Half a surrogate pair, which a str may hold and UTF-8 may not, becomes "?"."""
    return [
        {"role": turn["role"], "content": turn["content"].encode("utf-8", "replace").decode()}
        for turn in turns
    ]


def _optional(sampling: Sampling) -> dict[str, Any]:
    """What is left out where it says nothing: not every server takes every field."""
    body: dict[str, Any] = {}
    if sampling.temperature > 0 and sampling.top_p < 1:
        body["top_p"] = sampling.top_p
    if sampling.temperature > 0 and sampling.seed is not None:
        body["seed"] = sampling.seed
    if sampling.stop:
        body["stop"] = list(sampling.stop[:MOST_STOP_STRINGS])
    return body


def _choice(event: Json) -> Json:
    """The one answer asked for; the event with the usage has none."""
    choices = event.get("choices") or [{}]
    return choices[0] if isinstance(choices[0], dict) else {}


def _chances(choices: tuple[str, ...], choice: Json) -> tuple[float, ...]:
    """Of each word: of the tokens that it begins with. Empty where the server doesn't tell."""
    content = (choice.get("logprobs") or {}).get("content") or []
    told = content[0].get("top_logprobs") if content else None
    if not told:
        return ()
    known = [(str(one["token"]), math.exp(one["logprob"])) for one in told]
    return tuple(
        sum(chance for token, chance in known if token and word.startswith(token)) for word in choices
    )


def _text(event: Json) -> str:
    """What an event adds to the answer. Bytes that are no character (half a surrogate pair in the JSON, a
    character cut off by max_tokens) are left out."""
    delta = _choice(event).get("delta") or {}
    text = delta.get("content") or ""
    return text.encode("utf-8", "ignore").decode().replace(REPLACEMENT, "") if isinstance(text, str) else ""

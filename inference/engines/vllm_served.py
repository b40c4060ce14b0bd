"""A `vllm serve` somewhere else, spoken to in token ids."""

import math
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference.engines.base import EngineFailed, EngineUnavailable
from inference.engines.endpoint import Endpoint, Json, Refused
from inference.engines.tokenizer import ChatTokenizer
from inference.engines.vllm import Job, Step

if TYPE_CHECKING:
    from prometheus_client import Metric

# A text that two tokenizers hardly cut alike: scripts, digits, code, spaces, an emoji.
_PROBE = "The quick brown fox; 敏捷的狐狸 0123456789 +3.14e-7\n\tdef f(x): return x**2  # 🦊 naïve"


@dataclass(frozen=True, slots=True)
class _Model:
    """What the server serves."""

    name: str
    window: int


class Served:
    """See vllm.Backend. Asks the server what it serves before the first request, and after it was gone."""

    def __init__(self, url: str, tokenizer: ChatTokenizer, *, api_key: str, silence: float) -> None:
        self._endpoint = Endpoint(url, api_key=api_key, silence=silence)
        self._url = self._endpoint.url.removesuffix("/v1")
        self._tokenizer = tokenizer
        self._model: _Model | None = None

    async def window(self) -> int:
        return (await self._served()).window

    async def steps(self, job: Job) -> AsyncGenerator[Step, None]:
        model = await self._served()
        events = self._endpoint.events(f"{self._url}/v1/completions", _body(model.name, job), answers=_tokens)
        try:
            async with aclosing(events) as arriving:
                async for event in arriving:
                    yield _step(event)
        except EngineUnavailable:
            self._model = None  # whoever answers there next may serve something else
            raise

    async def forget(self) -> bool:
        try:
            answer = await self._endpoint.ask("POST", f"{self._url}/reset_prefix_cache")
        except Refused as problem:
            raise EngineFailed(
                "This server doesn't let its prefix cache be reset; start it with VLLM_SERVER_DEV_MODE=1"
            ) from problem
        return bool(answer.get("success"))

    async def metrics(self) -> Iterable["Metric"]:
        from prometheus_client.parser import text_string_to_metric_families

        text = await self._endpoint.get_text(f"{self._url}/metrics")
        return [family for family in text_string_to_metric_families(text) if family.name.startswith("vllm:")]

    async def close(self) -> None:
        await self._endpoint.close()

    async def _served(self) -> _Model:
        if self._model is None:
            model = await self._ask_model()
            await self._compare_tokenizers(model)
            self._model = model
        return self._model

    async def _ask_model(self) -> _Model:
        answer = await self._endpoint.ask("GET", f"{self._url}/v1/models")
        try:
            served = answer["data"][0]
            return _Model(str(served["id"]), int(served["max_model_len"]))
        except (LookupError, TypeError, ValueError) as problem:
            raise EngineFailed(f"{self._url} doesn't answer as vLLM does") from problem

    async def _compare_tokenizers(self, model: _Model) -> None:
        """Token ids mean nothing to another model. Raises EngineFailed when they would not mean the same."""
        body = {"model": model.name, "prompt": _PROBE, "add_special_tokens": False}
        theirs = (await self._endpoint.ask("POST", f"{self._url}/tokenize", body)).get("tokens")
        if theirs != self._tokenizer.encode_plain(_PROBE):
            raise EngineFailed(f"{self._url} serves {model.name}, and MODEL_DIR holds another model")


def _body(model: str, job: Job) -> Json:
    sampling = job.sampling
    body: Json = {
        "model": model,
        "prompt": job.prompt,
        "max_tokens": job.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p if sampling.temperature > 0 else 1.0,
        # The server's defaults may come from the model's generation_config.json; the request alone counts.
        "top_k": 0,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "stop_token_ids": sorted(job.end_ids),
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_token_ids": True,
    }
    if sampling.seed is not None:
        body["seed"] = sampling.seed
    if job.salt:
        body["cache_salt"] = job.salt
    if job.likeliest:
        body |= {"logprobs": job.likeliest, "return_tokens_as_token_ids": True}
    return body


def _choice(event: Json) -> Json:
    return (event.get("choices") or [{}])[0]


def _tokens(event: Json) -> bool:
    return bool(_choice(event).get("token_ids"))


def _step(event: Json) -> Step:
    choice = _choice(event)
    finish = choice.get("finish_reason")
    if finish not in (None, "stop", "length"):
        raise EngineFailed(f"vLLM ended the answer for another reason: {finish}")
    details = (event.get("usage") or {}).get("prompt_tokens_details") or {}
    return Step(tuple(choice.get("token_ids") or ()), finish, details.get("cached_tokens"), _chances(choice))


def _chances(choice: Json) -> dict[int, float] | None:
    told = (choice.get("logprobs") or {}).get("top_logprobs") or []
    if not told or not told[0]:
        return None
    return {int(name.removeprefix("token_id:")): math.exp(value) for name, value in told[0].items()}

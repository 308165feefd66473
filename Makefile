# Two commands matter: `make demo` and `make test`. Both set up everything they need, in .venv and demo/ of this folder.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
export UV_PYTHON_DOWNLOADS := never

.DEFAULT_GOAL := help
.PHONY: help setup browser lint types imports unit plain bounds test demo demo-kafka clean

help:
	@echo "make demo        fetch real pages, scan them, write demo/report.html"
	@echo "make test        lint, types, import rules, all tests"
	@echo "make demo-kafka  the same crawl through a real Kafka broker, verdicts live"
	@echo "make setup       only the environment (.venv)"
	@echo "make clean       remove .venv and demo/"

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	@deploy/setup.sh $(PYTHON) $(VENV)
	@touch $@

# The walk through the report needs a browser; as root on a Debian-like machine it is installed, else named.
browser:
	@deploy/browser.sh

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

unit: $(READY) browser
	$(BIN)/pytest -n auto --dist worksteal

# The kernels again without the JIT (as plain Python, small inputs), and with every array access checked. The checked
# run compiles into a cache of its own: a warm cache of unchecked code would be used as it is.
plain: $(READY)
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -n auto --dist worksteal -m kernel tests/neardup

bounds: $(READY)
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(abspath $(VENV))/numba-boundscheck $(BIN)/pytest -n auto --dist worksteal -m kernel tests/neardup

test: lint types imports unit plain bounds

demo: $(READY)
	@$(BIN)/python deploy/demo/demo.py demo

# The stream on a real broker: needs Java and Maven, which fetch and run Apache Kafka without containers.
demo-kafka: $(READY)
	@$(BIN)/python deploy/demo/demo_kafka.py demo $(if $(STAY),--stay)

clean:
	rm -rf $(VENV) demo

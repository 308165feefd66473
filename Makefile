# Two commands matter: `make demo` and `make test`. Both set up everything they need, in .venv and demo/ of this folder.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
INSTALLED := $(VENV)/.installed
READY  := $(VENV)/.ready
export UV_PYTHON_DOWNLOADS := never
# What is compiled is kept, whatever the shell says: each worker and each command of the tests would compile it anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup browser jars rewritten compiled lint types imports check core tests-of test test-all unit beside alone plain bounds njit gate ablation commons web corpora simulate fuzz soak silence axe frames pyspark \
	test-axe test-cluster test-deploy test-java test-release test-large test-spark test-spark-large bench bench-large bench-curve bench-options bench-stream bench-scale bench-views profile demo demo-kafka site lock clean

help:
	@echo "make demo        fetch real pages, scan them, write demo/report.html"
	@echo "make check       lint, types, import rules and the core tests: a minute or so; after each change"
	@echo "make test        the same and the tests of all parts, a real broker and a browser: eight minutes on two cores"
	@echo "make test-all    everything, with seeds drawn anew: hours; each night, and before a release"
	@echo "make tests-of    the test files of one source file, FILE=neardup/urls.py"
	@echo "make demo-kafka  the same crawl through a real Kafka broker, verdicts live"
	@echo "make test-NAME   all tests of one folder of tests/: test-kafka, test-crash, test-streams, test-cluster, ..."
	@echo "make gate        how many pages of known truth each class of templates loses"
	@echo "make ablation    what each step of the default rule is worth there, and on real pages with SETS=folder"
	@echo "make commons     near-duplicate rules on 187 packages of documentation by 50 generators; an hour, resumable"
	@echo "make web         evaluate all rules on a made-up web with mirrors, PAGES=10000"
	@echo "make corpora     the same on real pages, SETS=folder of the public archives"
	@echo "make bench       speed against peers, as ratios, ONLY=group; bench-large: index of 1,000,000"
	@echo "make bench-scale each stage of the stream on a broker by processes, for machines with many cores"
	@echo "make simulate    the stream's roles under faults that seeds draw, SEEDS=10000"
	@echo "make fuzz        a search for bytes that break a reader, MINUTES=5, ONLY=targets"
	@echo "make soak        the stream under kills, zombies, torn copies, MINUTES=5; test-cluster: with one of three brokers lost"
	@echo "Parts of make test-all:"
	@echo "make silence     every role under a broker that does not answer for 5, 20 and 60 s"
	@echo "make test-axe    the pages of the views before axe-core, which npm fetches"
	@echo "make test-deploy image, compose file, chart and alerts, really run; installs what it needs, half an hour at first"
	@echo "make test-release wheel and sdist, installed with all extras into fresh environments"
	@echo "make test-java   the Java client on a real broker, and its plugin for Apache Nutch, which Maven fetches"
	@echo "make test-spark  the partition on Spark, with real executors"
	@echo "Longer than that:"
	@echo "make test-large  a year of a crawl in one process, PAGES=1000000: restarts, expiry, takedowns, new schemes"
	@echo "make test-spark-large  DOCUMENTS=100000, executors killed"
	@echo "make site        the documentation as a website, in build/site"
	@echo "make setup       only the environment (.venv)"
	@echo "make clean       remove .venv and demo/"

setup: $(READY)

$(INSTALLED): requirements.lock pyproject.toml
	@deploy/setup.sh $(PYTHON) $(VENV)
	@touch $@

# With all kernels compiled.
$(READY): $(INSTALLED)
	@$(BIN)/python -m neardup.warm
	@touch $@

# The walk through the report needs a browser; as root on a Debian-like machine it is installed, else named.
browser:
	@deploy/browser.sh

# Kafka's jars, and its classes as Java has loaded them, before the tests begin, which would all wait for them. Without
# Java or Maven they say what is missing.
jars:
	-@$(PYTHON) deploy/kafka/broker.py --fetch

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED)
	$(BIN)/mypy

imports: $(INSTALLED)
	$(BIN)/lint-imports

# Tests wait for brokers and processes, so there are more workers than cores; see tests/conftest.py for their order.
PYTEST  := $(BIN)/pytest --dist loadgroup --no-loadscope-reorder
WAITING := -n auto
WORKING := -n logical
SLOWEST := --durations 20 --durations-min 1

# The files that tests/conftest.py lists as CORE, without their slow tests.
core: $(READY)
	$(PYTEST) $(WORKING) -m "core and not slow" tests/neardup tests/streams

check: lint types imports core

tests-of: $(READY)
	@$(BIN)/python -m tests.tests_of "$(FILE)"

# Pytest rewrites the assertions of each test file and keeps the result: on a fresh clone each worker would do it, in 8 s.
rewritten: $(INSTALLED)
	-@$(BIN)/pytest -n 0 --collect-only -qq >/dev/null

# The largest kernel that tests alone call: each worker would compile it, at once.
compiled: $(READY)
	@$(BIN)/python -m tests.neardup.sketch.words

unit: $(READY) browser jars
	$(PYTEST) $(WAITING) $(SLOWEST)

# The kernels again without the JIT (as plain Python, small inputs), and with every array access checked. The checked
# run compiles into a cache of its own: a warm cache of unchecked code would be used as it is.
plain: $(READY)
	NUMBA_DISABLE_JIT=1 $(PYTEST) $(WORKING) $(SLOWEST) -m kernel tests/neardup

bounds: CHECKED = NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(abspath $(VENV))/numba-boundscheck
bounds: $(READY)
	$(CHECKED) $(BIN)/python -m tests.neardup.kernels.compiled_once
	$(CHECKED) $(PYTEST) $(WORKING) $(SLOWEST) -m kernel tests/neardup

# The kernels compiled by numba's public decorator alone, without its private parts: for a numba that was not tried yet.
# It takes minutes, and compiles into a cache of its own folder.
njit: $(READY)
	NEARDUP_PLAIN_KERNELS=1 $(PYTEST) $(WORKING) tests/neardup/sketch/test_golden_sketches.py \
		tests/neardup/text/test_disguises.py tests/neardup/pairs

# A function of the commit: tests/whole.py says what it leaves to `make test-all`. What comes before the tests runs side
# by side: each waits for one process or for the network. Types are checked while tests wait for brokers.
test:
	@$(MAKE) --no-print-directory -j2 $(INSTALLED) jars browser
	@$(MAKE) --no-print-directory -j2 -Otarget setup rewritten lint imports compiled
	@PYTHONHASHSEED=0 $(MAKE) --no-print-directory -j2 unit types

# Everything. A part that fails does not keep the others from running. A seed that fails is kept in tests/regressions.txt.
test-all: $(READY)
	@$(MAKE) --no-print-directory -k lint types imports beside alone plain bounds njit

# What builds images, installs packages or needs several brokers runs alone, one test after another. A tool that cannot
# be had fails its own tests, and keeps no other from running.
ALONE := tests/cluster tests/deploy tests/release tests/spark tests/kafka/test_silence.py
beside: $(READY) browser jars axe frames
	$(PYTEST) --all $(WAITING) $(SLOWEST) tests $(ALONE:%=--ignore=%)

alone: $(READY) browser jars pyspark
	-$(BIN)/python tests/deploy/tools.py
	$(BIN)/pytest --all -n 0 $(SLOWEST) $(ALONE)

# What tests of `make test-all` need besides: without, they fail. Spark's engine has 490 MB.
axe: $(READY)
	-npm install --silent --no-save --prefix build/axe axe-core
frames: $(READY)
	-$(BIN)/python -m pip install --quiet polars pyarrow
pyspark: $(READY)
	-$(BIN)/python -m pip install --quiet "pyspark>=4.0,<5"

test-axe: axe browser
	$(BIN)/pytest --all -n 0 tests/streams/views/test_views_access.py

# Maven fetches jars for the plugin of Nutch.
test-java: $(READY) jars
	$(BIN)/pytest --all -n 0 tests/kafka/test_java_client.py

# A year of a crawl, with a clock that is moved by hand: 3,000 pages of it are in `make test`.
test-large: PAGES = 1000000
test-large: $(READY)
	NEARDUP_TEST_YEAR_PAGES=$(PAGES) $(BIN)/pytest --all -n 0 -s tests/streams/year

# All tests of one folder: `make test-kafka`.
test-%: $(READY) browser jars
	$(PYTEST) --all $(WAITING) $(SLOWEST) tests/$*

# A broker that is silent for 5, 20 and 60 s under every role, idle and busy: some minutes.
silence: $(READY) jars
	$(BIN)/pytest --all -n 0 tests/kafka/test_silence.py tests/kafka/test_run_restarts.py

# What a release is made of, built and installed with all extras into fresh environments, for each Python that is here.
test-release: $(READY)
	$(BIN)/pytest --all -n 0 tests/release

# One after another: they build images, and run a cluster's parts beside a broker. What is built stays for the next time.
test-deploy: $(READY) jars
	-$(BIN)/python tests/deploy/tools.py
	$(BIN)/pytest --all -n 0 tests/deploy

# Without the tools of development, unless they are here already.
demo:
	@[ -e $(READY) ] && [ ! requirements.lock -nt $(READY) ] || { deploy/setup.sh $(PYTHON) $(VENV) batch label && $(BIN)/python -m neardup.warm; }
	@$(BIN)/python deploy/demo/demo.py demo

# The accuracy gate alone: pages of known truth by class of template. GATE_PAGES=10000 makes it longer.
GATE_PAGES ?= 1000
gate: $(READY)
	NEARDUP_TEST_GATE_PAGES=$(GATE_PAGES) $(PYTEST) $(WORKING) tests/measure/gate

# The default rule with and without each of its steps; SETS: a folder of the public archives.
ablation: $(READY)
	$(BIN)/python -m tests.measure.gate.ablation $(if $(SETS),--data $(SETS))

# Near-duplicate rules on packages of documentation, which clients fetch into a cache first. ONLY: streams whose name, kind
# or generator has this; QUICK=1: the default rule and tape alone; SITES=1: made-up and crawled sites alone; KEPT_BACK=1: the
# sites by which no rule is chosen. A run goes on where it ended.
commons: $(READY)
ifndef SITES
	$(BIN)/python -m tests.measure.commons fetch
	nice $(BIN)/python -m tests.measure.commons run --only "$(ONLY)" $(if $(SETS),--data $(SETS)) $(if $(QUICK),--quick) $(if $(STEPS),--steps)
endif
	nice $(BIN)/python -m tests.measure.commons sites --only "$(ONLY)" $(if $(SETS),--data $(SETS)) $(if $(QUICK),--quick) $(if $(KEPT_BACK),--kept-back) --json build/sites.json

# All rules on pages whose truth is known: a made-up web (docs beside it: see tests/measure/gate/web.py), and public archives.
PAGES ?= 10000
web: $(READY)
	$(BIN)/python -m tests.measure.gate.web build/web --pages $(PAGES)
	$(BIN)/neardup evaluate build/web/pages.jsonl --items build/web/items.jsonl --out build/web/evaluation

corpora: $(READY)
	$(BIN)/python -m tests.measure.gate.corpora $(SETS) build/corpora

# Three brokers, each lost in turn; and minutes of random kills, all verdicts compared.
test-cluster: $(READY) jars
	$(BIN)/pytest --all -n 0 tests/cluster

# The partition on Spark, with executors in processes of their own: needs Java 17.
test-spark: pyspark
	$(BIN)/pytest --all -n 0 tests/spark

# The same on 100,000 documents: an hour or more on two processors.
test-spark-large: DOCUMENTS = 100000
test-spark-large: pyspark
	NEARDUP_TEST_SPARK_DOCUMENTS=$(DOCUMENTS) $(BIN)/pytest --all -n 0 -s tests/spark/test_spark_kills.py -k executor

# The whole line on scripted ports, under faults that seeds draw; a failing schedule is shrunk and printed.
SEEDS ?= 10000
FIRST ?= 0
simulate: $(READY)
	$(BIN)/python -m tests.streams.simulation --seeds $(SEEDS) --first $(FIRST)

# What reads bytes of others, under a search by coverage: tests/fuzz says what becomes of a finding.
fuzz: $(READY)
	$(BIN)/python -m pip install --quiet "atheris>=3.0,<4" || echo "no atheris for this Python: a simpler search goes on"
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES) --only "$(ONLY)"

# Half of the time kills; half of it zombies, ordinary producers, torn copies.
MINUTES ?= 5
soak: $(READY)
	$(BIN)/python tests/kafka/soak.py --minutes $(MINUTES)

# Against peers and formulas: build/bench.md, row by row. Peers get an environment of their own. ONLY names groups of
# rows by a part of their name: `make bench ONLY=worst`.
ONLY ?=
bench: $(READY)
	$(BIN)/python -m tests.measure.bench --out build --only "$(ONLY)"

bench-large: $(READY)
	$(BIN)/python -m tests.measure.bench --out build --only "$(ONLY)" --large

# How many keys should a page post? PAGES, and CRAWLS: folders of HTML that the pages are drawn from, too; and RUNS, how
# many choices of keys are folded for their cost. RocksDB's options under the matcher's load, each against its default.
PAGES ?= 100000
RUNS ?= 4
bench-curve: $(READY)
	$(BIN)/python -m tests.measure.bench.curve --pages $(PAGES) --runs $(RUNS) $(foreach crawl,$(CRAWLS),--real $(crawl))
	$(BIN)/python -m tests.measure.bench.blocks $(if $(SETS),--data $(SETS))

bench-options: $(READY)
	$(BIN)/python -m tests.measure.bench.options --out build/options.md

# Where a page's microseconds go; and the stream against the scan of the same pages.
profile: $(READY)
	$(BIN)/python -m tests.measure.bench.profile

bench-stream: $(READY)
	$(BIN)/python tests/measure/bench/stream.py --out build/bench-stream.md

# Each stage of the stream alone on a real broker, for machines with many cores: publishers, sketchers from 1 on, one
# matcher. SCALE: options of the script, as SCALE="--pages 200000 --heap 4g".
bench-scale: $(READY) jars
	$(BIN)/python tests/measure/bench/scale.py --out build/bench-scale.md $(SCALE)

bench-views: $(READY)
	$(BIN)/python tests/measure/bench/views.py --out build/bench-views.md

# The stream on a real broker: needs Java and Maven, which fetch and run Apache Kafka without containers.
demo-kafka: $(READY)
	@$(BIN)/python deploy/demo/demo_kafka.py demo $(if $(STAY),--stay)

# The documentation as a website that works from files. A link that leads nowhere ends the build.
site: $(READY)
	$(BIN)/python deploy/site/website.py build/site

# Renews the lock file after a change of dependencies; needs uv. Pinned versions stay if possible. Spark's engine has
# 480 MB, so it is not among them: only its tests fetch it. The lock is annotated for deploy/image/locked.py.
LOCKED := kafka scrapy label batch signals render views traces
lock:
	uv pip compile pyproject.toml $(foreach extra,$(LOCKED),--extra $(extra)) --group dev --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" --quiet --output-file requirements.lock

clean:
	rm -rf $(VENV) demo

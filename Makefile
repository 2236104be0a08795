# SPDX-License-Identifier: Apache-2.0
# Everything here needs Java 17, Python 3.10 or newer and make; the rest is fetched. `make help` lists the targets.

PYTHON ?= python3
export PYTHON
VERSION := $(shell sed -n 's|^ThisBuild / version := "\(.*\)"|\1|p' build.sbt)
# The minor releases of Spark with a jar, from the table of lines. Everything else is built and tested with the default.
SPARK_LINES := $(shell sed -n 's|.*SparkLine."\([0-9.]*\)".*|\1|p' project/SparkLine.scala)
SPARK_VERSION = $(shell sed -n 's|.*SparkLine."$(1)", "\([0-9.]*\)".*|\1|p' project/SparkLine.scala)
DEFAULT_SPARK := $(shell sed -n 's|.*val Default.*SparkLine."\([0-9.]*\)".*|\1|p' project/SparkLine.scala)
SPARK ?= $(DEFAULT_SPARK)
# Set where the command line chooses a Spark.
ONE_SPARK = $(filter command,$(origin SPARK))
# The version of Scala of that Spark's distribution.
SCALA_VERSION = $(shell sed -n 's|.*SparkLine."$(1)", "[0-9.]*", "\([0-9]*[.][0-9]*\).*|\1|p' project/SparkLine.scala)
# The Python packages that its PySpark needs in older versions: applyInPandasWithState fails with a newer pyarrow.
PINS = $(shell sed -n 's|.*SparkLine."$(1)".*pins = "\([^"]*\)".*|\1|p' project/SparkLine.scala)
JAR_NAME = spark-dstl-spark$(1)_$(or $(SCALA),$(call SCALA_VERSION,$(1)))-$(VERSION).jar
DEFAULT_JAR = $(CURDIR)/target/$(call JAR_NAME,$(DEFAULT_SPARK))
# With the classes that end-to-end tests bring along.
TEST_JARS = SPARK_DSTL_JAR=$(DEFAULT_JAR) SPARK_DSTL_TEST_JAR=$(subst spark-dstl-spark,spark-dstl-test-spark,$(DEFAULT_JAR))
SHIPPED_JARS := python/src/spark_dstl/jars

# Directories count as well: their times tell of files that have gone.
BUILD_INPUTS := build.sbt .scalafmt.conf $(wildcard project/*.sbt project/*.scala project/*.properties)
JAR_INPUTS := $(BUILD_INPUTS) $(shell find jvm/log/src/main jvm/spark/src/main)
BENCH_INPUTS := $(JAR_INPUTS) $(shell find jvm/*/src/test jvm/bench/src/main)
# What begins with the license header, also in .pre-commit-config.yaml; scripts without a suffix by name.
LICENSED := '*.scala' '*.sbt' '*.java' '*.py' '*.sh' '*.yml' Makefile project/sbt .ci/run
PYTHON_TREES := $(wildcard python/hatch_build.py python/src python/tests python/demo python/bench tests project)

SBT := $(PYTHON) project/patiently.py sbt project/sbt -Dsbt.supershell=false
VENV := .venv/bin
PACKAGING := $(CURDIR)/.build/packaging/bin
# The environment with the chosen Spark; that of the default is the development environment.
OF_SPARK = $(if $(filter $(DEFAULT_SPARK),$(SPARK)),.venv,.build/spark-$(SPARK))

PROMETHEUS := v0.316.0
ACTIONLINT := v1.7.7
TOOLS := $(or $(SPARK_DSTL_CACHE),$(HOME)/.cache/spark-dstl)/tools

MAKEFLAGS += --no-print-directory
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-all spark-tests coverage bench bench-quick bench-driver bench-recovery bench-growth bench-inspect bench-realtime sim sim-fresh sim-flaws spec jar jars wheel release fmt lint lint-python lint-workflows lines counts check-newest-spark docs docs-site \
	prometheus storage-tools test-storage storage-requests storage-faults storage-long-run storage-followed storage-killed-followers clean venv spark \
	java python FORCE
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 24

demo: .build/jar-$(SPARK) $(OF_SPARK)/ready $(if $(filter s3,$(STORAGE)),storage-tools) ## run the demo: a streaming query with its state in the log; SPARK=4.3: on that; STORAGE=s3: on an S3 server
	@$(OF_SPARK)/bin/python python/demo/flights.py $(if $(STORAGE),--storage $(STORAGE))

test: | python ## run all checks, and all tests with Spark 4.2; the last line is their count
	@$(PYTHON) project/run_tests.py

test-all: | python ## the same, and the tests with all other versions of Spark: hours; SPARK="4.1 4.0": with these alone
	@$(PYTHON) project/run_tests.py $(if $(ONE_SPARK),--lines $(SPARK),--all)

bench: .build/bench-jars-$(SPARK) $(OF_SPARK)/ready ## compare with stock Spark on slow storage: hours; SPARK=4.3: on that; see docs/benchmark.md
	@$(OF_SPARK)/bin/python python/bench/bench.py compare $(BENCH)

bench-quick: .build/bench-jars-$(SPARK) $(OF_SPARK)/ready ## the same in five minutes
	@$(OF_SPARK)/bin/python python/bench/bench.py compare --quick $(BENCH)

coverage: .venv/ready | java ## report how much of the Scala log and of the Python package its unit tests run: ten minutes
	@$(SBT) -Dcoverage=true log/coverage
	@COVERAGE_FILE=.build/coverage $(VENV)/python -m pytest -q -n 2 python/tests --cov=spark_dstl --cov-branch --cov-report=term

spark-tests: | java python ## run Spark's own tests of streaming queries with their state in the log: half an hour
	@$(SBT) suites/sparkTests

sim: | java python ## run the protocol in simulated worlds: make sim SEEDS=200000 [FROM=1] [LINES=120]
	@$(SBT) "sim/runMain sparkdstl.sim.SimMain $(or $(SEEDS),10000) $(or $(FROM),1) $(or $(LINES),120)"

sim-fresh: | java python ## the same with 200,000 seeds that no earlier day has run
	@$(MAKE) sim SEEDS=200000 FROM=$(shell echo $$(($$(date +%s) / 86400 * 1000000))) LINES=400

sim-flaws: | java python ## put flaws back into the protocol and print which are found: make sim-flaws [SEEDS=300] [WORLDS=60] [PROCESSES=2] [FLAWS="attempts ..."]
	@$(SBT) "flaws/runMain sparkdstl.sim.FlawsMain $(or $(SEEDS),300) $(or $(WORLDS),60) $(or $(PROCESSES),0) $(FLAWS)"

spec: .build/quint/ready | python ## run the specification of docs/spec on random traces, and with each rule left out: minutes; TRACES=20000
	@$(PYTHON) project/check_spec.py $(or $(TRACES),1500)

bench-driver: .build/bench-jars-$(SPARK) $(OF_SPARK)/ready ## measure the log's side of a driver with many stores, without Spark jobs: an hour
	@$(OF_SPARK)/bin/python python/bench/bench.py driver $(BENCH)

bench-recovery: .build/bench-jars-$(SPARK) $(OF_SPARK)/ready ## measure the recovery of queries, beside stock Spark: hours
	@$(OF_SPARK)/bin/python python/bench/bench.py recovery $(BENCH)

bench-growth: .build/bench-jars-$(SPARK) $(OF_SPARK)/ready ## measure growth with the number of batches, beside stock Spark: an hour
	@$(OF_SPARK)/bin/python python/bench/bench.py growth $(BENCH)

bench-realtime: .build/bench-jars-$(SPARK) $(OF_SPARK)/ready ## measure the pauses of real-time mode, beside stock Spark: 15 minutes; with SPARK=4.3
	@$(OF_SPARK)/bin/python python/bench/bench.py realtime $(BENCH)

bench-inspect: .build/jar-$(DEFAULT_SPARK) .venv/ready ## measure the commands that look at a checkpoint: minutes
	@$(VENV)/python python/bench/bench.py inspect $(BENCH)

jar: $(if $(SCALA),java python,.build/jar-$(SPARK)) ## build the jar for Spark 4.2, or another: make jar SPARK=4.3, SPARK=3.5 SCALA=2.13; the last line is its path
	@$(if $(SCALA),$(SBT) -Dspark.line=$(SPARK) -Dspark.scala=$(SCALA) jar)
	@echo $(CURDIR)/target/$(call JAR_NAME,$(SPARK))

jars: $(SPARK_LINES:%=.build/jar-%) ## build the jars for all versions of Spark; the last lines are their paths
	@printf '%s\n' $(foreach line,$(SPARK_LINES),$(CURDIR)/target/$(call JAR_NAME,$(line)))

wheel: $(if $(ONE_SPARK),.build/jar-$(SPARK),$(SPARK_LINES:%=.build/jar-%)) .build/packaging/ready ## build the Python package, with all jars in it, into python/dist; SPARK=4.3: with that jar alone
	@cd python && $(if $(ONE_SPARK),SPARK_DSTL_WHEEL_FOR=$(SPARK)) $(PACKAGING)/python -m hatchling build -t wheel -d dist

release: .build/packaging/ready | java python ## build all that is published into target/release; AGAIN=1 builds it twice and compares
	@$(PYTHON) project/release.py $(if $(AGAIN),--again)

fmt: .venv/ready | java ## rewrite all sources in the house format
	@$(SBT) scalafmtAll flaws/scalafmtAll scalafmtSbt
	@$(VENV)/ruff format $(PYTHON_TREES)
	@$(VENV)/ruff check --fix $(PYTHON_TREES)

lint: lint-python | java ## check format, style and types, without running anything
	@$(SBT) scalafmtCheckAll flaws/scalafmtCheckAll scalafmtSbtCheck published/checkCoordinates

# conftest.py is named like another module, so its types are checked apart.
lint-python: .venv/ready ## the same of Python, and the language and license headers of all files
	@$(VENV)/ruff format --check $(PYTHON_TREES)
	@$(VENV)/ruff check $(PYTHON_TREES)
	@$(VENV)/mypy $(PYTHON_TREES)
	@$(VENV)/mypy python/tests/conftest.py
	@$(VENV)/python project/check_language.py
	@! git grep -L '^\(#\|//\) SPDX-License-Identifier: Apache-2.0' -- $(LICENSED) | sed 's/$$/: add the license header/' | grep .

lint-workflows: ## check the workflows of .github with actionlint; needs Go
	@command -v go >/dev/null || { echo "make lint-workflows needs Go 1.26 or newer, and there is no go on the PATH" >&2; exit 1; }
	@go run github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT)

lines: ## print the versions of Spark that there is a build for, as a list in JSON
	@echo '$(SPARK_LINES)' | sed 's/ /", "/g; s/^/["/; s/$$/"]/'

counts: ## print how many lines each part has, beside its limit
	@$(PYTHON) project/count_lines.py

check-newest-spark: ## fail if the newest minor version of Spark on PyPI has no build here; prints all versions
	@newest=$$($(PYTHON) -m pip index versions --ignore-requires-python pyspark | tee /dev/stderr | \
	  sed -n 's/^pyspark (\([0-9]*[.][0-9]*\)[.].*/\1/p') && case " $(SPARK_LINES) " in *" $$newest "*) ;; \
	  *) echo "project/SparkLine.scala has no line for Spark $${newest:-of unknown version}: see CONTRIBUTING.md" >&2; exit 1;; esac

docs: | java python ## write the generated files: docs/configuration.md, options.json of the Python package
	@$(SBT) "log/Test/runMain sparkdstl.log.config.DocsMain $(CURDIR)"

docs-site: .build/docs/ready ## build the docs site into target/site; fails on a dead link
	@NO_MKDOCS_2_WARNING=1 PYTHONPATH=python/src:project .build/docs/bin/python -m mkdocs build --strict
	@echo $(CURDIR)/target/site/index.html

prometheus: ## build what tests the alerts and the dashboard into ~/.cache/spark-dstl: minutes; needs Go 1.26
	@command -v go >/dev/null || { echo "make prometheus needs Go 1.26 or newer, and there is no go on the PATH" >&2; exit 1; }
	@GOBIN="$(HOME)/.cache/spark-dstl/tools" go install -tags remove_all_sd \
	  github.com/prometheus/prometheus/cmd/promtool@$(PROMETHEUS) github.com/prometheus/prometheus/cmd/prometheus@$(PROMETHEUS)
	@echo "$(HOME)/.cache/spark-dstl/tools"

storage-tools: | java python ## build servers and fetch jars for the storage tests into ~/.cache/spark-dstl: minutes; Go 1.26
	@$(SBT) s3a/connectorJars storage/serverJars
	@$(if $(filter-out $(DEFAULT_SPARK),$(SPARK)),$(SBT) -Dspark.line=$(SPARK) s3a/connectorJars)
	@project/storage_tools.sh $(TOOLS)

test-storage: wheel .build/bench-jars-$(DEFAULT_SPARK) .venv/ready storage-tools ## all tests on real storage servers, and the tutorial: one to two hours; `make test` runs a few on an imitation
	@cd tests && SPARK_DSTL_TEST_STORAGE=1 $(TEST_JARS) ../$(VENV)/python -m pytest pages/test_tutorial.py storage $(TESTS)

storage-requests: .build/jar-$(DEFAULT_SPARK) .venv/ready storage-tools ## count requests of batches and restarts to S3, beside stock Spark: half an hour; STATES=... measures those that match
	@cd tests && SPARK_DSTL_TEST_DEADLINE=1800 PYTHONPATH=support:storage:../python/demo \
	  SPARK_DSTL_JAR=$(DEFAULT_JAR) ../$(VENV)/python ../python/bench/storage_requests.py '$(STATES)'

storage-faults: .build/jar-$(DEFAULT_SPARK) .venv/ready storage-tools ## inject faults of S3 and HDFS, with stock Spark as well: hours; CASES=... selects cases
	@cd tests && SPARK_DSTL_TEST_DEADLINE=300 PYTHONPATH=support:storage:../python/demo \
	  SPARK_DSTL_JAR=$(DEFAULT_JAR) ../$(VENV)/python ../python/bench/storage_faults.py '$(CASES)'

storage-long-run: .build/jar-$(DEFAULT_SPARK) .venv/ready storage-tools ## run a query on S3 and on HDFS for an hour each: nothing may grow; SECONDS=... for that time
	@cd tests && SPARK_DSTL_TEST_LONG_RUN=$(or $(SECONDS),3600) \
	  SPARK_DSTL_JAR=$(DEFAULT_JAR) ../$(VENV)/python -m pytest -s storage/test_long_run.py

storage-killed-followers: .build/jar-$(DEFAULT_SPARK) .venv/ready storage-tools ## kill a query on S3 and its follower at random moments for an hour: no change may be missing; SECONDS=... for that time
	@cd tests && SPARK_DSTL_TEST_FOLLOWED=$(or $(SECONDS),3600) \
	  SPARK_DSTL_JAR=$(DEFAULT_JAR) ../$(VENV)/python -m pytest -s storage/test_followers.py

storage-followed: .build/jar-$(DEFAULT_SPARK) .venv/ready storage-tools ## measure a query on S3 that is followed, beside itself alone: 15 minutes; SECONDS=... for the time with followers
	@cd tests && SPARK_DSTL_TEST_DEADLINE=1800 PYTHONPATH=support:storage:../python/demo \
	  SPARK_DSTL_JAR=$(DEFAULT_JAR) ../$(VENV)/python ../python/bench/storage_followers.py '$(SECONDS)'

clean: ## remove everything that was built or fetched into this directory
	rm -rf .build .venv target project/target project/project jvm/*/target $(SHIPPED_JARS) python/dist python/LICENSE
	find python tests project -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

venv: .venv/ready

spark: .build/spark-$(SPARK)/ready ## make an environment with another Spark, as the end-to-end tests use it: make spark SPARK=4.3

# A stamp carries the time at which its build began, so that a change during the build is not missed.
.build/jar-%: $(JAR_INPUTS) | java python
	@mkdir -p .build && touch $@.begun
	@echo "Building $(call JAR_NAME,$*) (the first time, sbt fetches itself, Scala and Spark: several minutes)"
	@$(SBT) -Dspark.line=$* jar
	@mv $@.begun $@

$(foreach line,$(SPARK_LINES),$(if $(filter 2,$(words $(wildcard $(foreach directory,target $(SHIPPED_JARS),\
  $(directory)/$(call JAR_NAME,$(line)))))),,$(eval .build/jar-$(line): FORCE)))

.build/bench-jars-%: .build/jar-% $(BENCH_INPUTS) | java python
	@touch $@.begun
	@$(SBT) -Dspark.line=$* testJar benchJar
	@mv $@.begun $@

# The environment names the checkout that it belongs to once it is complete: one that was interrupted or moved is made anew. A link is
# replaced: clearing it would empty the environment of another checkout.
.venv/ready: python/pyproject.toml | python
	@[ ! -L .venv ] || rm .venv
	@[ -f $@ ] && [ "$$(cat $@)" = "$(CURDIR)" ] && $(VENV)/python -c '' || \
	  { echo "Making the Python environment .venv" && $(PYTHON) -m venv --clear .venv; }
	@rm -f $@
	@echo "Installing PySpark (450 MB), test tools and this package into .venv: minutes, the first time"
	@$(VENV)/python -m pip install --disable-pip-version-check --progress-bar off --no-compile -e 'python[dev]'
	@echo "$(CURDIR)" > $@.tmp && mv $@.tmp $@

# Another Spark with the packages of the development environment, except its pins.
.build/spark-%/ready: project/SparkLine.scala .venv/ready | python
	@$(PYTHON) -m venv --clear .build/spark-$*
	@echo "Installing PySpark $(call SPARK_VERSION,$*) into .build/spark-$*"
	@.build/spark-$*/bin/python -m pip install --disable-pip-version-check --progress-bar off \
	  'pyspark==$(call SPARK_VERSION,$*)' $(foreach pin,$(call PINS,$*),'$(pin)')
	@$(VENV)/python -c 'import site; print(f"import site; site.addsitedir({site.getsitepackages()[0]!r})")' > \
	  "$$(.build/spark-$*/bin/python -c 'import site; print(site.getsitepackages()[0])')/development.pth"
	@sed '1s|.*|#!$(CURDIR)/.build/spark-$*/bin/python|' $(VENV)/dstl > .build/spark-$*/bin/dstl
	@chmod +x .build/spark-$*/bin/dstl
	@touch $@

# What builds packages and the docs site is small, and apart from the development environment.
.build/packaging/ready .build/docs/ready: .build/%/ready: project/%.txt | python
	@$(PYTHON) -m venv --clear .build/$*
	@.build/$*/bin/python -m pip install --disable-pip-version-check --quiet -r $<
	@touch $@

# npm checks what it fetches against its checksums.
.build/quint/ready: project/quint.json
	@command -v npm >/dev/null || { echo "make spec needs npm with Node 18 or newer, and there is no npm on the PATH" >&2; exit 1; }
	@mkdir -p .build/quint && cp $< .build/quint/package.json
	@cd .build/quint && npm install --silent --no-fund --no-audit --ignore-scripts
	@touch $@

ifneq ($(shell .venv/bin/python -c '' 2>/dev/null && cat .venv/ready 2>/dev/null),$(CURDIR))
.venv/ready: FORCE
endif

# $(error) says it in one line, where a failed recipe would add a second.
java python:
	@:$(eval problem := $(shell PYTHON='$(PYTHON)' project/check_$@.sh 2>&1 >/dev/null))$(if $(problem),$(error $(problem)))

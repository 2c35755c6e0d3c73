# Everything runs in .venv; the stamp file makes each target set it up when pyproject or the constraints change.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# Each of the parallel processes keeps to its core.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: demo test check bench models browser clean

demo: $(READY)
	$(BIN)/rtbrain demo --out demo-output

test: $(READY) browser
	$(BIN)/python tools/check --no-tests
	$(ONE_THREAD) $(BIN)/python -m pytest -n auto --dist worksteal --durations=30 -m "not full and not live"
	$(BIN)/python -m pytest --durations=30 -m "live and not full"

check: $(READY)
	$(BIN)/python tools/check

bench: $(READY)
	$(BIN)/python tools/bench/microstates.py --check
	$(BIN)/python tools/bench/chain.py --check
	$(BIN)/python tools/bench/corpus.py --check
	$(BIN)/python tools/bench/dashboard.py --check

# The dashboard is tested in a real browser; Debian's and Ubuntu's can be installed here, others by hand.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
	|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	&& apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; } \
	|| echo "install Chromium (apt-get install chromium): without it the dashboard's tests fail"

models: $(READY)
	$(BIN)/python tools/models

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "rtbrain needs Python 3.11 or newer; if you have one: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[all,dev]'
	touch $(READY)

clean:
	rm -rf .venv demo-output build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

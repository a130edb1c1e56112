# SPDX-License-Identifier: Apache-2.0
.PHONY: help setup build run test test-full bench demo fmt lint clean
help:
	@echo "make run     set up, build, and start mink dev (SQLite and a local directory)"
	@echo "make test    every test, as CI runs them"
	@echo "make demo    336,776 flights: load, follow, read back, compare"
	@echo "make bench   figures and their ratios to a peer of the same run"
	@echo "make build   build/release/mink only"
	@echo "make lint    layers, banned calls, headers, clang-tidy;  make fmt: clang-format on what changed;  make clean"
setup:
	@scripts/setup
build: setup
	@cmake --preset release >build.log 2>&1 || (cat build.log; exit 1)
	@ninja -C build/release mink
	@rm -f build.log
run: build
	@build/release/mink dev
test:
	@scripts/setup
	@tests/run
test-full:
	@scripts/setup
	@tests/run --full
bench: build
	@.venv/bin/python bench/bench.py $(BENCH)
demo: build
	@.venv/bin/python bench/demo.py
fmt:
	@git diff --name-only HEAD -- '*.c' '*.h' | xargs -r clang-format -i
lint:
	@tools/check_layers && tools/check_banned && tools/check_headers
clean:
	@rm -rf build

# The front door. Every target first installs the Debian packages that are missing
# (scripts/packages.txt).
.DEFAULT_GOAL := help
SHELL := /bin/bash

# Uses all cores, but no more compilers than fit into memory at 2 GiB each.
JOBS ?= $(shell awk -v cores=$$(nproc) '/MemTotal/ { fit = int($$2 / 2097152); if (fit < 1) fit = 1; print (fit < cores) ? fit : cores }' /proc/meminfo)
# Many tests wait more than they compute (for processes, for timeouts), so two more run at a time.
TEST_JOBS ?= $(shell echo $$(($(JOBS) + 2)))
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
NACRE := build/release/nacre
DEMO ?= --data twin:arxiv --model gcn --layers 3 --hidden 128 --dropout 0.5 --lr 0.01 --epochs 50
BENCH ?=

ifneq ($(shell command -v ccache),)
export CMAKE_CXX_COMPILER_LAUNCHER ?= ccache
export CMAKE_CUDA_COMPILER_LAUNCHER ?= ccache
endif

# The CUDA toolkit is not among the Debian packages that are installed. If it is missing or older
# than 13, the plug-in and its tests are left out.
ifndef NVCC
NVCC := $(shell for n in "$$CUDA_HOME"/bin/nvcc /usr/local/cuda*/bin/nvcc $$(command -v nvcc); do \
	"$$n" --version 2>/dev/null | grep -q 'release 1[3-9]' && echo "$$n" && break; done)
endif

configure = @[ -f build/$(1)/build.ninja ] || cmake --preset $(1)
# A folder that was configured without the plug-in is configured again.
configure_cuda = @grep -qs '^NACRE_CUDA:BOOL=ON' build/$(1)/CMakeCache.txt && [ -f build/$(1)/build.ninja ] || \
	cmake --preset $(1) -DNACRE_CUDA=ON -DCMAKE_CUDA_COMPILER=$(NVCC)
# A folder that was configured without the Python module is configured again, if the module can be
# built here.
configure_python = @if scripts/python_env.sh; then \
	grep -qs '^NACRE_PYTHON:BOOL=ON' build/$(1)/CMakeCache.txt || \
	cmake --preset $(1) -DNACRE_PYTHON=ON -DPython_EXECUTABLE=$(CURDIR)/build/python/env/bin/python; fi
compile = cmake --build --preset $(1) --parallel $(JOBS)

.PHONY: help deps build demo test stress memory-test browser-check bench peers lint format asan races fuzz emulate kernels gpu-bundle gpu-test example guides python wheel wheel-test install clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## install missing packages
	@scripts/install_deps.sh

build: deps ## the program, at build/release/nacre
	$(call configure,release)
	$(call compile,release) --target nacre

demo: build ## train a GCN on the full-size arxiv twin
	$(NACRE) train $(DEMO)

test: deps ## build everything (the CUDA plug-in where nvcc is, the Python module where PyPI is), run the tests
ifeq ($(NVCC),)
	@echo "no CUDA 13 toolkit (nvcc): the CUDA plug-in is not built, its tests are skipped"
	$(call configure,release)
else
	$(call configure_cuda,release)
endif
	$(call configure_python,release)
	$(call compile,release)
	ctest --preset release --parallel $(TEST_JOBS) -LE stress

stress: test ## option matrix, memory bills, failing system calls, the emulated GPU
	ctest --preset release --parallel $(TEST_JOBS) -L stress

memory-test: build ## 200 random runs against their memory bills
	NACRE_MEMORY_RUNS=200 python3 -B tests/apps/memory_test.py $(NACRE) RandomRuns

browser-check: build ## pages of nacre report in Chromium, on the screen and printed; PICTURES=FOLDER keeps what it saw
	python3 -B tests/apps/browser_check.py $(NACRE) $(PICTURES)

bench: build ## epoch times beside PyTorch Geometric, where that is installed (make peers)
	python3 bench/peers/run.py --nacre $(NACRE) $(BENCH)

peers: deps ## a Python environment in build/peers for the comparison
	@python3 -c 'import ensurepip' 2>/dev/null || { echo "make peers needs the package python3-venv"; exit 1; }
	python3 -m venv build/peers
	build/peers/bin/pip install -r bench/peers/requirements.txt

lint: deps ## formatting, clang-tidy, room borders, documents
	@scripts/lint.sh

format: deps ## format all sources in place
	@scripts/format.sh

asan: deps ## fast tests under address and undefined-behaviour sanitizers
	$(call configure,asan)
	$(call compile,asan)
	ctest --preset asan --parallel $(TEST_JOBS)

races: deps ## loops, tasks, samplers, the batch loader and ranks under the thread sanitizer
	$(call configure,tsan)
	$(call compile,tsan) --target race_tests
	ctest --preset tsan --parallel $(JOBS)

fuzz: deps ## replay the corpora, then fuzz each reader for FUZZ_SECONDS (60)
	@scripts/fuzz.sh $(FUZZ_SECONDS)

emulate: deps ## all GPU tests on the emulated device (make stress: a share of them)
	$(call configure,release)
	$(call compile,release)
	NACRE_EMULATE_ALL=1 ctest --preset release --parallel $(TEST_JOBS) -L emulated

kernels: deps ## compile every CUDA kernel that the tests can generate, for sm_80 and sm_90 (make test: some of them)
ifeq ($(NVCC),)
	@echo "no CUDA 13 toolkit (nvcc): there is no compiler for the kernels"
else
	$(call configure_cuda,release)
	$(call compile,release) --target test_engine_gpu_compile
	@# the longest first
	printf '%s\n' 1 3 2 0 | NACRE_COMPILE_ALL=1 GTEST_TOTAL_SHARDS=4 xargs -P $(JOBS) -I{} \
	  env GTEST_SHARD_INDEX={} build/release/test_engine_gpu_compile --gtest_brief=1
endif

gpu-bundle: deps ## build/bundle: program, plug-in and GPU tests for a machine with a GPU
ifeq ($(NVCC),)
	@echo "gpu-bundle needs the CUDA 13 toolkit (nvcc)"; exit 1
endif
	$(call configure_cuda,cuda)
	$(call compile,cuda) --target nacre nacre_cuda gpu_tests
	@scripts/gpu_bundle.sh build/cuda

gpu-test: gpu-bundle ## the GPU tests out of the bundle; skipped where there is no GPU
	@build/bundle/gpu_test.sh

example: build ## install into a temporary folder, build and run examples/find_package against it
	$(call compile,release)
	@scripts/check_install.sh

guides: deps ## follow the extension guides (docs/add_*.md): a toy of each kind in a copy of the tree, built and used
	$(call configure,release)
	$(call compile,release) --target nacre
	@# The emulated GPU is not built for every machine.
	@$(call compile,release) --target nacre_emulator || true
	JOBS=$(JOBS) python3 -B tests/guides/follow.py build/release

python: deps ## the Python package for this folder: PYTHONPATH=build/release/python
	@scripts/python_env.sh
	$(call configure,release)
	$(call configure_python,release)
	$(call compile,release) --target nacre_python nacre_python_stub

wheel: deps ## build/wheel/dist: a wheel with the package, the program and their libraries
	@NVCC=$(NVCC) JOBS=$(JOBS) scripts/wheel.sh

wheel-test: wheel ## the wheel in a new virtual environment without a compiler
	@scripts/wheel_test.sh

install: deps ## program, headers, libraries and CMake package into PREFIX (/usr/local)
	$(call configure,release)
	$(call compile,release)
	cmake --install build/release --prefix $(PREFIX)

clean: ## remove build/
	rm -rf build

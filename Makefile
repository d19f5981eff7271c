# The front door for people; CMakeLists.txt says how things are built. `make help` lists the targets.

# Another CPU is built for by its cross compiler, as cmake/ARCH.cmake says, in a directory of its own.
ARCH   ?= $(shell uname -m)
ifeq ($(ARCH),$(shell uname -m))
BUILD  ?= build
else
BUILD  ?= build-$(ARCH)
cross_options = -DCMAKE_TOOLCHAIN_FILE=cmake/$(ARCH).cmake
endif
PREFIX ?= /usr/local
# What installs missing packages; DEPS=true takes them as given.
DEPS   ?= scripts/install-deps

# STATIC=no links shared libraries, for distributions without static ones.
STATIC ?= yes
export STATIC
packages = build $(if $(cross_options),$(ARCH))
static_options = $(if $(filter no,$(STATIC)),-DESPY_STATIC=OFF,-DESPY_STATIC=ON)
# More options for CMake, such as CMAKE_OPTIONS=-DESPY_UNITY=OFF.
CMAKE_OPTIONS ?=
cmake_build = DEPS="$(DEPS)" PACKAGES="$(packages)" JOBS="$(JOBS)" \
  scripts/build "$(1)" $(cross_options) $(static_options) $(2) $(CMAKE_OPTIONS) -- $(3)
debug_options = -DCMAKE_BUILD_TYPE=Debug -DESPY_TESTS=ON

.PHONY: all try test test-debug build-tests matrix nightly bless bench fuzz lint fmt docs site debug install uninstall dist clean help

all:  ## Build build/espy, one static, stripped binary; ARCH=aarch64 builds build-aarch64/espy
	@$(call cmake_build,$(BUILD),-DCMAKE_BUILD_TYPE=Release,--target espy)

try:  ## Install what is missing, build, and show a tour of ten seconds (sudo)
	@echo "[1/3] packages for the build"
	@$(DEPS) build
	@echo "[2/3] build of $(BUILD)/espy (the first takes some ten minutes on two CPUs)"
	@$(MAKE) --no-print-directory all
	@echo "[3/3] a tour"
	@ESPY="$(BUILD)/espy" scripts/try

# KERNELS=no leaves out the test kernels, which are booted in an emulator.
test:  ## Install what is missing, build, run all tests (sudo); KERNELS=no: on this kernel only
	@echo "[1/3] packages for the build and the tests"
	@$(DEPS) test
	@echo "[2/3] build of espy and its tests (the first takes some fifteen minutes on two CPUs)"
	@$(call cmake_build,$(BUILD),-DCMAKE_BUILD_TYPE=Release -DESPY_TESTS=ON)
	@echo "[3/3] tests (some twenty minutes)"
	@scripts/run-tests $(if $(filter no,$(KERNELS)),--no-kernels) "$(BUILD)"; status=$$?; scripts/build --give-back "$(BUILD)"; exit $$status

test-debug:  ## Run the unit tests and the goldens on the simulator with address and undefined sanitizers
	@echo "[1/3] packages for the build and the tests"
	@$(DEPS) test
	@echo "[2/3] build with sanitizers"
	@$(call cmake_build,build-debug,$(debug_options),--target simulated_tests)
	@echo "[3/3] tests"
	@scripts/run-tests --simulated build-debug

# ARCH=aarch64 has the test kernels of that CPU.
matrix: build-tests  ## Run the live suite on each test kernel, and write docs/reference/kernels.md (sudo, hours; it goes on where it was)
	@scripts/live-matrix $(BUILD)

build-tests:  ## Build espy and what live tests and test kernels call
	@$(call cmake_build,$(BUILD),-DCMAKE_BUILD_TYPE=Release -DESPY_TESTS=ON,--target live_suite)

nightly:  ## Run what takes too long for each change: all kernels, arm64, clang-tidy, fuzzers, new machines (sudo, hours)
	@scripts/nightly

bless:  ## Rewrite the expectations of the golden tests with what espy gives now
	@$(call cmake_build,$(BUILD),-DCMAKE_BUILD_TYPE=Release -DESPY_TESTS=ON)
	@$(BUILD)/tests/golden_runner --bless

bench:  ## Build and run the benchmarks (sudo); OPTIONS=--quick for the short form
	@echo "[1/3] packages for the benchmarks"
	@$(DEPS) bench
	@echo "[2/3] build of $(BUILD)/espy"
	@$(MAKE) --no-print-directory all
	@echo "[3/3] benchmarks"
	@bench/run $(BUILD) $(OPTIONS)

# With clang the fuzzers are built for libFuzzer, which knows what an input reached; LIBFUZZER=no uses the driver of
# tests/fuzz instead.
LIBFUZZER ?= $(if $(shell command -v clang++),yes,no)
ifeq ($(LIBFUZZER),no)
fuzzers = build-debug
else
fuzzers = build-debug/libfuzzer
fuzz_options = -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_C_COMPILER=clang -DESPY_LIBFUZZER=ON
endif
fuzz:  ## Try random scripts, records and files with sanitizers for SECONDS (180) in all
	@$(call cmake_build,$(fuzzers),$(debug_options) $(fuzz_options),--target fuzzers)
	@scripts/run-fuzzers $(fuzzers) $(SECONDS)

lint:  ## Check format, layers, sizes, documents, and with clang-tidy what changed
	@scripts/lint

fmt:  ## Format the C++ and JavaScript sources in place
	@scripts/lint --list-sources | xargs -r clang-format -i

docs: all  ## Rewrite what is generated in docs/ and tools/README.md
	@scripts/make-docs $(BUILD)/espy

site:  ## Build a website of the documents in build/site, with search (sudo, if MkDocs is missing)
	@$(DEPS) site
	@scripts/make-site $(BUILD)/site

debug:  ## Build build-debug/espy with sanitizers and internal checks
	@$(call cmake_build,build-debug,$(debug_options))

# With BPFTRACE_ALIAS=1 also installs a `bpftrace` link, for scripts that begin with `#!/usr/bin/env bpftrace`, and links
# to the tools, such as opensnoop.bt.
install: all  ## Install below DESTDIR/PREFIX (/usr/local); BPFTRACE_ALIAS=1 adds links bpftrace, NAME.bt
	@scripts/install-tree $(if $(filter 1,$(BPFTRACE_ALIAS)),--alias) $(BUILD)/espy $(DESTDIR)$(PREFIX)
	@[ "$(BPFTRACE_ALIAS)" != 1 ] || { alias=$(DESTDIR)$(PREFIX)/bin/bpftrace; \
	[ ! -e $$alias ] || [ "$$(readlink $$alias)" = espy ] || { echo "$$alias is another program; it is left as it is" >&2; exit 1; }; \
	ln -sfn espy $$alias; }
	@echo "espy is installed below $(DESTDIR)$(PREFIX)"

uninstall:  ## Remove what `make install` put there
	@scripts/install-tree --remove $(BUILD)/espy $(DESTDIR)$(PREFIX)
	@alias=$(DESTDIR)$(PREFIX)/bin/bpftrace; [ "$$(readlink $$alias)" != espy ] || rm -f $$alias
	@echo "espy is gone from $(DESTDIR)$(PREFIX)"

dist: all  ## Make packages in dist/: tarball, .deb, .rpm, SHA256SUMS
	@$(DEPS) --check dist
	@scripts/make-dist --arch $(ARCH) $(BUILD)/espy dist

clean:  ## Remove build, build-debug and dist
	rm -rf $(BUILD) build-debug dist

help:  ## Show this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' Makefile | awk -F'\t' '{ printf "  make %-11s %s\n", $$1, $$2 }'

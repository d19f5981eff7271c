# The scripts of tests/scripts that need kprobes, with their known work.
# kernels: 6.1
build=$(dirname -- "$ESPY")
cd -- "$build/.."
timeout 200 "$build/tests/golden_runner" tests/scripts/kernel

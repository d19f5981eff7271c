# The other half of tools-load.sh.
# kernels: 5.10 7.2
first_letters=n-z
. "$(dirname -- "$ESPY")/../tests/kernels/cases/tools-load.sh"

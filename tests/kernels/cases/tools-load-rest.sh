# The other half of tools-load.sh.
# kernels: 6.1
first_letters=n-z
. "$(dirname -- "$ESPY")/../tests/kernels/cases/tools-load.sh"

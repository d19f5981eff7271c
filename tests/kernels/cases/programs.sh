# Random programs give the same values on this kernel as in the simulator, and its verifier takes them all.
# kernels: 6.12 7.2
needs for_each_map_elem
judges=$(dirname "$ESPY")/tests/differential
[ -x "$judges" ] || skip 'tests/differential is not built'
root=$(cd -- "$(dirname -- "$0")/../../.." && pwd)
cd "$root"
"$judges" --expressions=200 --programs=20 --seed=590

# A per-CPU variable has an address on each CPU.
expect '^\(true, true\)$' "$ESPY" -e 'begin { print((percpu_kaddr("runqueues") > 0, percpu_kaddr("runqueues", 0) > kaddr("_text"))); }'

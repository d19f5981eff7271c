# A per-CPU variable has an address on each CPU.
expect '^\(true, 0\)$' "$ESPY" -e 'begin { $here = (struct rq *)percpu_kaddr("runqueues"); $first = (struct rq *)percpu_kaddr("runqueues", 0);
  print(($here->cpu == cpu, $first->cpu)); }'
# There is none on a CPU that does not exist.
expect '^\(0, 0\)$' "$ESPY" -e 'begin { print((percpu_kaddr("runqueues", 9999), percpu_kaddr("runqueues", -1))); }'

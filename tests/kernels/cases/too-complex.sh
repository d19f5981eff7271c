# A program that exceeds the limits of the verifier is reported as such, also if its log is longer than its buffer.
# kernels: 5.10
cat >long.bt <<'END'
config = { log_size = 8192 }
begin {
  for ($i : 0..nsecs) {
END
for n in $(seq 200); do echo "    if (nsecs % $n == 1) { @a$n = \$i; } else if (\$i % 7 == $n) { @b[$n, \$i] = count(); }" >>long.bt; done
printf '  }\n}\n' >>long.bt
"$ESPY" -q --dry-run long.bt && skip 'this kernel takes it'
expect 'action is too long for the kernel' "$ESPY" -q --dry-run long.bt

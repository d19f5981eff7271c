# Loops without a provable bound: of any length where the kernel bounds them itself, cut short and counted elsewhere.
printf '6.9\n%s\n' "$(uname -r)" | sort -VC || skip 'this kernel lacks loops without a provable bound (Linux 6.9)'
expect '^@: 100000$' "$ESPY" -e 'begin { for ($i : 0..100000) { @ += 1; } }'
expect '^@: 100000$' "$ESPY" -e 'begin { $n = 100000; while ($n > 0) { $n--; @++; } }'

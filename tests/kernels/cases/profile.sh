# Samples of what runs, with kernel stacks.
reading
expect '@\[dd\]: [0-9]+' "$ESPY" -e 'profile:hz:99 { @[comm] = count(); @k[kstack(3)] = count(); } i:s:1 { exit() }'

# A write to a variable of the kernel: the clock is.
address=$(awk '$3 == "jiffies_64" || $3 == "jiffies" { print $1; exit }' /proc/kallsyms)
expect '^tick' "$ESPY" -e "watchpoint:0x$address:8:w { printf(\"tick\n\"); exit() }"

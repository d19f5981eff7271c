# Long actions: helpers that are called hundreds of times are called by a function; what jumps do not reach is an error.
# kernels: 5.10 6.1
{ echo 'begin {'; for i in $(seq 600); do echo "  @a[$i] = $i;"; done; echo '  print(@a[600]); clear(@a); exit(); }'; } >long.bt
expect '^600$' "$ESPY" -q long.bt
{ echo 'begin {'; for i in $(seq 5000); do echo "  @a[$i] = $i; if (@a[$i] > 5) { @b[$i] = count(); }"; done; echo '}'; } >longer.bt
expect 'action is too long for the kernel' "$ESPY" -q --dry-run longer.bt

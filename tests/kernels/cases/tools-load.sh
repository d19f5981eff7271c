# Every tool is fit for this kernel, or needs something that it says.
for tool in "$(dirname -- "$ESPY")"/../tools/*.bt; do
  timeout "$seconds_per_command" "$ESPY" "$tool" -c true >out 2>&1 && grep -q '^Attached' out && continue
  grep -Eq 'no-such-probe|no-fentry' out && grep -Eq 'xfs|md_mod|/bin/bash|libssl' out && continue
  grep -q 'kfree_skb. has no argument .reason' out && continue  # before Linux 5.17
  echo "$tool:"
  cat out
  exit 1
done

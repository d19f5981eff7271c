# The language's tests in the language hold on every kernel that has what they need; a benchmark is measured.
for script in "$(dirname -- "$ESPY")"/../tests/language/*.bt; do
  status=0
  timeout "$seconds_per_command" "$ESPY" --test "$script" >test.out 2>&1 || status=$?
  [ "$status" = 0 ] || grep -q 'kernel-lacks' test.out || { echo "$script:"; grep -a -B3 -e FAILED -e error test.out; exit 1; }
done
expect '^count +[0-9]+ +[0-9]+$' "$ESPY" --bench -e 'bench:count { @ = count(); }'

# runner-ends-all.sh: has the runner of tests run one that does not end.
runner=$(dirname "$ESPY")/tests/golden_runner
tests=$(mktemp -d)/tests/live
mkdir -p "$tests"
mark=$tests/mark
# A process in the test's group, and one that left it and its parent; both have the mark among their arguments.
stay='tail -f /dev/null'
write_test() { # FILE [LINE]
  printf '%s\n' '// expect: never' "// run: (setsid $stay $mark >/dev/null 2>&1 &); $stay $mark >/dev/null 2>&1" '// ends: itself' "$2" 'begin { }' >"$1"
}
count() { pgrep -c -x -f "$stay $mark"; }

write_test "$tests/slow.bt" '// seconds: 1'
touch "$mark"
said=$("$runner" "$tests/slow.bt" | head -n 2 | sed "s#$tests/##" | tr '\n' ' ')
echo "slow: ${said% }; left: $(count)"

write_test "$tests/endless.bt" '// seconds: 100'
"$runner" "$tests/endless.bt" &
until [ "$(count)" = 2 ]; do sleep 0.05; done
kill -INT $!
wait $!
echo "interrupted: $?; left: $(count)"
rm -r "${tests%/tests/live}"

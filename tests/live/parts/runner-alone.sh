# runner-alone.sh: has the runner of tests run three beside each other: one passes, one passes when it runs again, one never.
runner=$(dirname "$ESPY")/tests/golden_runner
folder=$(mktemp -d)
tests=$folder/tests/live
mkdir -p "$tests"
write_test() { # NAME RUN [LINE]
  printf '%s\n' '// expect: ok' "// run: $2" '// ends: itself' ${3:+"$3"} 'begin { }' >"$tests/$1.bt"
}
write_test good 'echo ok'
write_test second "test -e $folder/seen && echo ok; touch $folder/seen"
write_test never 'echo no'
write_test alone "test -e $folder/seen && echo ok" '// alone: it comes after the others'
write_test own "test \$(stat -c %i \$BIN/programs/calls) != $(stat -c %i "$(dirname "$ESPY")/tests/live/programs/calls") && echo ok"
"$runner" --jobs 2 "$tests" | sed "s#$tests/##g" | grep -E '^(FAIL|passed when|[0-9]+ passed)'
rm -r "$folder"

#!/usr/bin/env bash
# scripts/campaign adds up what the rounds of a campaign count, also over machines, goes on with its seeds, stops on SIGTERM,
# and says so.
cd "$(dirname "$0")/../.." || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { printf '%s\n' "$*" "--- output" "$(cat "$scratch"/out "$scratch"/errors "$scratch"/state/*.log 2>/dev/null)"; exit 1; }
campaign() { scripts/campaign "$@" --state "$scratch/state" --kept "$scratch/kept.json" --build "$scratch/build" >"$scratch/out" 2>"$scratch/errors"; }
program() { # NAME LINE...: a campaign in Python
  local file=$scratch/$1
  { printf '#!/usr/bin/env python3\nimport os, pathlib, sys, time\nsys.dont_write_bytecode = True\n'
    printf 'sys.path.insert(0, "%s")\nimport common\n' "$PWD/tests/campaigns"
    printf 'it = common.Round("%s", "")\n' "$1"
    printf '%s\n' "${@:2}"; } >"$file"
  chmod +x "$file"
}
status_line() { campaign --status; cat "$scratch/out"; }

program well 'time.sleep(it.seconds)' 'it.add({"things": 3}, next_seed=it.seed + 10)' 'print("at seed", it.seed, os.nice(0))'
campaign "$scratch/well" --minutes 0.02 --round 1 || fail "a campaign that finds nothing: status $?"
grep -q '"things": [369]' "$scratch/state/well.json" || fail "the sums are $(cat "$scratch/state/well.json")"
things=$(sed -n 's/.*"things": \([0-9]*\).*/\1/p' "$scratch/state/well.json")
campaign "$scratch/well" --minutes 0.01 --round 1 || fail 'the second run'
grep -q "\"things\": $((things + 3))" "$scratch/state/well.json" || fail 'the second run does not add to the first'
grep -q "\"next_seed\": $(((things + 3) / 3 * 10 + 1))" "$scratch/state/well.json" || fail 'the seeds do not go on'
[[ $(status_line) = "well: stopped"*"$((things + 3)) things; at seed"*" 19" ]] || fail "the status is: $(status_line)"
campaign --table && grep -q "^| well .* $((things + 3)) things |" "$scratch/out" || fail 'the table'

seed=$(((things + 3) / 3 * 10 + 1))
campaign --keep || fail 'the sums are not kept'
[ ! -e "$scratch/state/well.json" ] || fail 'what is kept would be added twice'
rm -r "$scratch/state"
campaign "$scratch/well" --minutes 0.001 || fail 'a run with another state'
grep -q "\"next_seed\": $((seed + 10))" "$scratch/state/well.json" || fail 'the seeds that are kept do not go on'
campaign --table && grep -q "^| well .* $((things + 6)) things |" "$scratch/out" || fail 'the table is without what is kept'
campaign --keep && grep -q "\"things\": $((things + 6))" "$scratch/kept.json" || fail 'what is kept is not added to'

program bad 'it.find("it", "how")' 'sys.exit(it.status())'
campaign "$scratch/bad" --minutes 0.001; [ $? = 1 ] || fail 'the exit status does not report a find'
grep -q how "$scratch/state/bad-finds/it.txt" || fail 'the find is not kept'
grep -q '"rounds_with_finds": [1-9]' "$scratch/state/bad.json" || fail 'the find is not counted'
echo '{"bad": {"rounds_with_finds": 1, "cpu_seconds_since_find": 7200.0}}' >"$scratch/kept.json"
campaign --table && grep -Eq '^. bad . 0.0[0-9] . 0.00 . [2-9] of' "$scratch/out" || fail 'the hours before a find count as without one'

program broken 'print("no such thing here")' 'sys.exit(3)'
campaign "$scratch/broken"; [ $? = 2 ] || fail 'a campaign that cannot run'
grep -q 'cannot run (exit status 3): no such thing here' "$scratch/errors" || fail 'the reason is not reported'
campaign nothing; [ $? = 2 ] || fail 'a campaign that does not exist'

program long 'pathlib.Path(it.state, "began").touch()' 'while not it.is_over(): time.sleep(0.01)' 'it.add({"stopped": 1})'
campaign "$scratch/long" --hours 1 & pid=$!
until [ -e "$scratch/state/began" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
scripts/campaign --status --state "$scratch/state" | grep -q '^long: runs (pid' || fail 'the status of one that runs'
scripts/campaign "$scratch/long" --state "$scratch/state" 2>&1 | grep -q 'runs already' || fail 'the same campaign runs twice'
touch "$scratch/state/long.json"
campaign --keep; [[ $? = 2 && $(cat "$scratch/errors") = *"long still runs" ]] || fail 'the sums of one that runs are kept'
rm "$scratch/state/long.json"
kill -TERM "$(cat "$scratch/state/long.lock")"
wait $pid || fail "stopped: status $?"
grep -q '"stopped": 1' "$scratch/state/long.json" || fail 'a campaign that was stopped loses its sums'
exit 0

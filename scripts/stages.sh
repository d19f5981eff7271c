# Stages of .ci/run and scripts/nightly, which source this file: each is a command whose counts are added up.
log=$(mktemp)
failures=$(mktemp)
trap 'rm -f "$log" "$failures"' EXIT
passed=0 failed=0 skipped=0 times=''

# Runs a command, shows its output, and adds the counts of its last "N passed, N failed, N skipped". A command without counts
# is one that passed or failed.
stage() { # NAME COMMAND...
  local name=$1 status=0 counts
  shift
  local started=$SECONDS
  echo "=== $name"
  "$@" 2>&1 | tee "$log" || status=${PIPESTATUS[0]}
  counts=$(sed -nE 's/^(lint: )?([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\2 \3 \4/p' "$log" | tail -n 1)
  if [ -n "$counts" ]; then
    read -r p f s <<<"$counts"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    [ "$status" = 0 ] || [ "$f" != 0 ] || failed=$((failed + 1))
  elif [ "$status" != 0 ]; then
    echo "$name failed before it could count (exit status $status)"
    failed=$((failed + 1))
  fi
  [ "$status" = 0 ] || note_failures "$name"
  times+="$name $((SECONDS - started)) s, "
  echo "=== $name took $((SECONDS - started)) s"
}

# Keeps what the stage's log says of failures, to repeat it at the end: from "failed:" on, or the last lines.
note_failures() { # NAME
  local said
  said=$(sed -n '/^failed:$/,$p' "$log" | head -n 100)
  { echo "--- $1"; echo "${said:-$(tail -n 40 "$log")}"; } >>"$failures"
}

# The end: what failed, how long each stage took, and the sum. Its status is 0 if nothing failed.
sum_up() {
  echo "=== sum"
  cat "$failures"
  echo "${times%, }; all $SECONDS s"
  echo "$passed passed, $failed failed, $skipped skipped"
  [ $failed = 0 ]
}

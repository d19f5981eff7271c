# Two processes of one program, of which one is counted.
cp "$BIN/programs/verbs" "$SCRATCH/v"
cd "$SCRATCH" || exit 1
wait_for() { until "$@"; do sleep 0.05; done; }
# TITLE OPTION...: what espy counts with these options.
count() {
  title=$1
  shift
  rm -f go attached
  ./v 4 25 0 go done.1 &
  first=$!
  ./v 4 15 0 go done.2 &
  second=$!
  case $1 in
    one) set -- -p $first ;;
  esac
  "$ESPY" count "$@" ./v:work >"$title.txt" 2>attached &
  espy=$!
  wait_for grep -q Attached attached
  touch go
  wait $first $second
  wait $espy
  sed "s/^/$title: /" "$title.txt"
}
count one one

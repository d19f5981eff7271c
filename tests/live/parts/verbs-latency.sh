# Prints how many calls `espy latency` has measured.
cp "$BIN/programs/verbs" "$SCRATCH/v"
cd "$SCRATCH" || exit 1
wait_for() { until "$@"; do sleep 0.05; done; }
numbers() {
  python3 "${FILE%/*}/parts/verbs_latency.py" "$1"
}
"$ESPY" latency -q -f json -c './v 4 25 0' ./v:work | numbers work
"$ESPY" latency -q -f json -c './v 4 1 0' ./v:fact | numbers fact
"$ESPY" latency -q -f json -c './v 4 25 0' './v:work(name == "odd")' | numbers odd
"$ESPY" latency -q -f json -c './v 4 25 0' './v:work(return < 0)' | numbers negative
"$ESPY" latency -q -f json -c './v 4 10 0' './v:[wf]*t' './v:work' | numbers wildcard
"$ESPY" latency -q -f json -c './v 4 25 0' ./v:work --by name | numbers by

# Calls that still run.
touch go
"$ESPY" latency -q ./v:hold -c './v 1 1 3 go done never' >held.txt &
espy=$!
wait_for test -e done
kill -INT $espy
wait $espy
cat held.txt

# Calls that end with their thread.
"$ESPY" latency -q ./v:hold -c './v 1 1 3'

# A call that began before: the first byte of a line; the second call reads the newline.
mkfifo pipe
bash -c 'read -r line <>pipe; :' &
reader=$!
wait_for grep -q pipe_read "/proc/$reader/stack"
"$ESPY" latency read -p $reader >before.txt 2>attached.txt &
wait_for grep -q Attached attached.txt
echo x >pipe
wait
sed 's/^/begun before: /' before.txt

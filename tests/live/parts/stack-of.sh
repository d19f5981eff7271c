# stack-of.sh SCRIPT COMMAND...: runs SCRIPT while COMMAND runs, whose last word is the traced program.
script=$1
shift
"$@" 1000000000 >/dev/null &
command=$!
$ESPY -q "$script" "${!#}"
kill -KILL $(pgrep -P $command) $command
wait 2>/dev/null

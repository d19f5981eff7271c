# trace NAME ARGUMENT...: what espy shows with these arguments, below its NAME and without the lines of source. To be
# read by `.`; the command `as`, an array, says as whom it runs.
as=()
trace() {
  echo "$1:"
  shift
  timeout 10 "${as[@]}" "$ESPY" -q "$@" 2>&1 | grep -v '^ *[0-9]* |\|^$'
}

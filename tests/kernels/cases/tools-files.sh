# The tools that watch files, over a file that is made, read, and removed, and one that is not there; others each time, as
# what was not there is remembered.
tools=$(dirname -- "$ESPY")/../tools
workload() { echo "sh -c 'echo x > $1; cat $1 $1-nowhere; rm $1'"; }
expect 'rm +[0-9 ]+\.[0-9]{3} espy-1$' "$ESPY" "$tools/filelife.bt" -c "$(workload espy-1)"
expect 'cat +miss +espy-2-nowhere$' "$ESPY" "$tools/dcsnoop.bt" -c "$(workload espy-2)"
expect 'cat +fast +espy-3$' "$ESPY" "$tools/dcsnoop.bt" -c "$(workload espy-3)" -- --all
expect 'sh +0 +/[a-z/]*bin/cat +/[a-z/]*bin/cat$' "$ESPY" "$tools/elfsnoop.bt" -c "$(workload espy-4)"

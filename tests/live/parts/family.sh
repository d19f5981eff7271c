# family.sh: a shell whose children start readers and end before them, and a reader that outlives the shell. A reader
# begins when its parent has ended. The shell ends when the first twelve readers have ended, which closes their pipe.
read_when_alone() { # COUNT PARENT
  local parent=$2
  while [ "$parent" = "$2" ]; do
    read -r _ _ _ parent _ </proc/$BASHPID/stat
    sleep 0.01
  done
  exec dd if=/dev/zero of=/dev/null bs=1 count="$1" status=none
}
{
  for child in 1 2 3; do
    (parent=$BASHPID; for reader in 1 2 3 4; do read_when_alone 10 $parent 3>&1 & done) &
  done
} | cat
read_when_alone 5 $$ &

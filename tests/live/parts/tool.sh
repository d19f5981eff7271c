#!/usr/bin/env bash
# tool.sh: builds a tool of a script that needs an import and a header, and runs it where there is nothing else: first in
# an empty directory, then with /proc and /sys in it. `tool.sh true` only tries whether that can be had. ESPY is espy,
# SCRATCH a directory.
set -e
[ -n "$IN_OWN_MOUNTS" ] || IN_OWN_MOUNTS=1 exec unshare --mount --propagation private "$0" "$@"
root=$(mktemp -d)
mount -t tmpfs none "$root"
trap 'umount -l "$root"; rmdir "$root"' EXIT
mkdir "$root/proc" "$root/sys"
[ $# = 0 ] || { command -v chroot && command -v gcc; exit; } >/dev/null

cd "$SCRATCH"
cat >count.bt <<'SCRIPT'
#!/usr/bin/env espy
// count - a number of a header, and the system calls of the machine.
//
// This is not a part of the summary.
import "lib.bt"
#include "own.h"
rawtracepoint:sys_enter { @calls = count(); }
interval:ms:50 {
  if ((int64)@calls > 0) {
    show(NUMBER, sizeof(struct own));
    printf("tag %s, arguments %d %s\n", getopt("tag", "none", "a word to show"), $1, str($2));
    exit();
  }
}
SCRIPT
echo 'fn show($number : int64, $size : uint64) : void { printf("number %d, size %d\n", $number, $size); }' >lib.bt
printf '#define NUMBER 41\nstruct own { long a; char b[24]; };\n' >own.h
"$ESPY" build count.bt -o "$root/count" -q
rm lib.bt own.h count.bt

echo "--- help"
chroot "$root" /count --help | head -8
echo "--- version"
chroot "$root" /count --version
mount --rbind /proc "$root/proc"
mount --rbind /sys "$root/sys"
echo "--- run"
chroot "$root" /count --tag word 7 -o /out eight
cat "$root/out"
echo "--- wrong"
chroot "$root" /count --tga word 2>&1 || echo "status $?"
chroot "$root" /count --pid=x 2>&1 || echo "status $?"
ls "$root"

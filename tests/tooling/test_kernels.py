#!/usr/bin/env python3
"""scripts/test-kernels: a case or a row of docs/reference/kernels.md that fails beside others runs once more, alone, before it counts. The
emulator is replaced."""

import os
import pathlib
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# Says what is in SAID/KERNEL-FOLDER the first time, and then what is in SAID/KERNEL-FOLDER.alone.
VM_RUN = """#!/bin/bash
while [ "$1" != -- ]; do [ "$1" != -k ] || kernel=$2; shift; done
case $2 in
  */matrix) folder=matrix ;;
  */run-all) folder=cases ;;
  *) folder=$4 ;;
esac
said=$SAID/$kernel-$folder
[ ! -e "$said.seen" ] && [ $folder != matrix ] || said=$said.alone
touch "$SAID/$kernel-$folder.seen"
[ $folder = matrix ] && shift 3 || shift 4
echo "$kernel $folder: $*" >>"$SAID/calls"
cat "$said"
"""


class World:
    """A tree with the scripts, a page and machines that say what they are told."""

    def __init__(self, root):
        self.root, self.said = root, root / "said"
        for folder in ("scripts", "docs/reference", "tests/kernels", "build", "said", "cache/7.2", "cache/6.12", "bin"):
            (root / folder).mkdir(parents=True)
        for name in ("test-kernels", "kernel-matrix", "test_kernels.py"):
            shutil.copy(ROOT / "scripts" / name, root / "scripts")
        self.program("scripts/vm-run", VM_RUN)
        self.program("bin/qemu-system-x86_64", "#!/bin/sh\n")
        self.program("tests/kernels/matrix", "#!/bin/sh\nprintf 'kprobe\\tno: there are none\\nwhile\\tyes\\n'\n")
        (root / "build/espy").write_bytes(bytes(18) + b"\x3e\x00")
        (root / "docs/reference/kernels.md").write_text(
            "# Page\n\n| | 6.12 | 7.2 | 6.18, shut |\n|---|---|---|---|\n| kprobe | yes | yes | 1 |\n| while | yes | yes | yes |\n\n1. there are none\n")
        for kernel in ("6.12", "7.2"):
            self.say(f"{kernel}-cases", "=== cases\nslowest: a 1.0\n2 passed, 0 failed, 0 skipped\n=== matrix\nkprobe\tyes\nwhile\tyes\n")
        self.say("6.12-lockdown", "1 passed, 0 failed, 0 skipped\n")
        self.say("7.2-two-cpus", "1 passed, 0 failed, 1 skipped\nvirtio: said by the emulator\n")

    def program(self, name, text):
        (self.root / name).write_text(text)
        (self.root / name).chmod(0o755)

    def say(self, name, text):
        (self.said / name).write_text(text)

    def run(self):
        for path in [*self.said.glob("*.seen"), *self.said.glob("calls")]:
            path.unlink()
        environment = {**os.environ, "SAID": str(self.said), "VMLAB_CACHE": str(self.root / "cache"),
                       "PATH": f"{self.root}/bin:{os.environ['PATH']}"}
        done = subprocess.run([self.root / "scripts/test-kernels", "build", "6.12", "7.2"], env=environment,
                              capture_output=True, text=True, check=False)
        assert not done.stderr, done.stderr
        return done.returncode, done.stdout

    def calls(self):
        return (self.said / "calls").read_text().splitlines()


def expect(run, status, *texts):
    got, said = run
    assert got == status, said
    for text in texts:
        assert text in said, f"{text!r} is not in:\n{said}"
    return said


with tempfile.TemporaryDirectory() as scratch:
    world = World(pathlib.Path(scratch))
    expect(world.run(), 0, "kernel 7.2 with two CPUs: 1 passed, 0 failed, 1 skipped", "\n7 passed, 0 failed, 1 skipped\n")
    assert len(world.calls()) == 4, world.calls()

    failed = "=== cases\nFAIL b.sh\nexpected x\nslowest: a 1.0\n1 passed, 1 failed, 0 skipped\n=== matrix\nkprobe\tyes\nwhile\tyes\n"
    world.say("7.2-cases", failed)
    world.say("7.2-cases.alone", "slowest: b 1.0\n1 passed, 0 failed, 0 skipped\n")
    text = expect(world.run(), 0, "passed when run alone: kernel 7.2: b.sh", "expected x", "\n7 passed, 0 failed, 1 skipped\n")
    assert "FAIL" not in text, text
    assert world.calls()[-1] == "7.2 cases: all b", world.calls()

    world.say("7.2-cases.alone", "FAIL b.sh\nexpected y\nslowest: b 1.0\n0 passed, 1 failed, 0 skipped\n")
    expect(world.run(), 1, "FAIL kernel 7.2: b.sh\nexpected y", "\n6 passed, 1 failed, 1 skipped\n")
    world.say("7.2-cases.alone", "")  # the machine gives up
    expect(world.run(), 1, "FAIL kernel 7.2: b.sh", "\n6 passed, 1 failed, 1 skipped\n")

    for first in ("kprobe\tno: 0x1234\nwhile\tyes\n", "while\tyes\n"):  # it differs, or was not reached
        world.say("7.2-cases", f"=== cases\n2 passed, 0 failed, 0 skipped\n=== matrix\n{first}")
        world.say("7.2-matrix.alone", "kprobe\tyes\n")
        expect(world.run(), 0, "tried again alone: 7.2, kprobe: yes; first it was no", "\n7 passed, 0 failed, 1 skipped\n")
        assert world.calls()[-1] == "7.2 matrix: kprobe", world.calls()
        world.say("7.2-matrix.alone", "kprobe\tno: 0x1234\n")
        expect(world.run(), 1, "7.2, kprobe: no: 0x1234, the page says yes", "\n6 passed, 1 failed, 1 skipped\n")

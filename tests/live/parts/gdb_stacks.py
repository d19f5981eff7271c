"""What gdb finds on a program's stack."""

import subprocess

GDB = """
import gdb
gdb.execute("set pagination off")
gdb.execute("set debuginfod enabled off", to_string=True)
gdb.execute("set backtrace past-main on")
gdb.execute("handle SIGUSR1 SIGUSR2 nostop noprint pass", to_string=True)
gdb.execute("starti >/dev/null 2>&1", to_string=True)
gdb.execute("break *%d" % int(gdb.parse_and_eval("(long)&leaf")), to_string=True)
gdb.execute("continue", to_string=True)
while gdb.selected_inferior().pid:
    print("STACK")
    frame = gdb.newest_frame()
    while frame:
        shown = SHOW
        if shown:
            print("FRAME", *shown)
        frame = frame.older()
    gdb.execute("continue", to_string=True)
"""


def stacks_at_leaf(program, show):
    """Whenever the program comes to its function `leaf`, the stack there: of each frame the words of `show`, a Python
    expression about `frame` that gdb evaluates to a tuple, joined by blanks; None leaves a frame out."""
    commands = "python exec(" + repr(GDB.replace("SHOW", show)) + ")"
    text = subprocess.run(["gdb", "-nx", "-batch", "-ex", commands, program], capture_output=True, text=True,
                          timeout=60).stdout
    stacks = []
    for line in text.splitlines():
        if line == "STACK":
            stacks.append([])
        elif line.startswith("FRAME "):
            stacks[-1].append(line[len("FRAME "):])
    return stacks

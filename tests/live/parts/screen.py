"""A program in a terminal of its own, whose screen is kept as the terminal would show it. Sequences that the emulation
does not know are errors: they should not be used."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

LIMIT = float(os.environ.get("LIMIT", 60))  # seconds, far above what anything takes
SEQUENCE = re.compile(rb"\x1b\[(\??)([0-9;]*)([A-Za-z])")


class Screen:
    def __init__(self, command, columns=100, rows=30, environment=None):
        self.columns, self.rows = columns, rows
        self.normal, self.alternate = self.empty(), self.empty()
        self.lines, self.is_alternate, self.has_cursor = self.normal, False, True
        self.x = self.y = 0
        self.raw, self.rest, self.styles = b"", b"", set()
        self.master, slave = pty.openpty()
        self.slave = slave  # stays open, so that the settings can be read after the end
        self.resize(columns, rows)
        self.before = termios.tcgetattr(slave)
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for fd in (0, 1, 2):
                os.dup2(slave, fd)
            os.execvpe(command[0], command, {**os.environ, "TERM": "xterm", **(environment or {})})

    def empty(self):
        return [[" "] * self.columns for _ in range(self.rows)]

    def resize(self, columns, rows):
        self.columns, self.rows = columns, rows
        for lines in (self.normal, self.alternate):
            lines[:] = [(line + [" "] * columns)[:columns] for line in lines[:rows]]
            lines += [[" "] * columns for _ in range(rows - len(lines))]
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.lines)

    def row(self, part):
        """The first row with this part; "" if there is none."""
        return next((row for row in self.text().split("\n") if part in row), "")

    # ---- What the program writes

    def put(self, character):
        if self.x == self.columns:
            self.x = 0
            self.down()
        self.lines[self.y][self.x] = character
        self.x += 1

    def down(self):
        if self.y + 1 < self.rows:
            self.y += 1
        else:
            self.lines.append([" "] * self.columns)
            del self.lines[0]

    def control(self, private, numbers, letter):
        values = [int(n) for n in numbers.split(";") if n]
        if private and (values, letter) in (([1049], "h"), ([1049], "l")):
            self.is_alternate = letter == "h"
            self.lines = self.alternate if self.is_alternate else self.normal
        elif private and values == [25] and letter in "hl":
            self.has_cursor = letter == "h"
        elif not private and letter == "H":
            self.y, self.x = (values + [1, 1])[0] - 1, (values[1:] + [1])[0] - 1
            self.y = min(self.y, self.rows - 1)
        elif not private and letter == "K" and not values:
            self.lines[self.y][self.x:] = [" "] * (self.columns - self.x)
        elif not private and letter == "J" and values in ([], [2]):
            first = 0 if values else self.y
            self.lines[first:] = [[" "] * self.columns for _ in range(self.rows - first)]
        elif not private and letter == "m":
            self.styles.add(numbers)
        else:
            raise SystemExit(f"unknown sequence: {private}{numbers}{letter}")

    def feed(self, data):
        self.raw += data
        data = self.rest + data
        at = 0
        while at < len(data):
            if data[at] == 0x1B:
                match = SEQUENCE.match(data, at)
                if not match:
                    if len(data) - at > 20:
                        raise SystemExit(f"unknown sequence: {data[at:at + 20]}")
                    break
                self.control(match[1].decode(), match[2].decode(), match[3].decode())
                at = match.end()
                continue
            size = 1 if data[at] < 0xC0 else 2 if data[at] < 0xE0 else 3 if data[at] < 0xF0 else 4
            if at + size > len(data):
                break
            character = data[at:at + size].decode(errors="replace")
            if character == "\n":
                self.down()
            elif character == "\r":
                self.x = 0
            elif character >= " ":
                self.put(character)
            at += size
        self.rest = data[at:]

    def read(self, timeout=0.05):
        if select.select([self.master], [], [], timeout)[0]:
            self.feed(os.read(self.master, 65536))
            return True
        return False

    # ---- What its user does

    def until(self, condition, what=""):
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            if found := condition():
                return found
            self.read()
        raise SystemExit(f"waited in vain for {what}; the screen is\n{self.text()}")

    def shows(self, part):
        return self.until(lambda: self.row(part), repr(part))

    def type(self, keys):
        os.write(self.master, keys.encode())

    def has_keys_of_its_own(self):
        return not termios.tcgetattr(self.slave)[3] & termios.ICANON

    def is_restored(self):
        return not self.is_alternate and self.has_cursor and termios.tcgetattr(self.slave) == self.before

    def kill(self, number):
        os.kill(self.pid, number)

    def wait(self):
        """The status of the program: an exit code, or minus the number of a signal."""
        done = self.until(lambda: [s for p, s in [os.waitpid(self.pid, os.WNOHANG)] if p], "the end")
        while self.read(0):
            pass
        return os.waitstatus_to_exitcode(done[0])

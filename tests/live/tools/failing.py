"""System calls that fail: rmdir(2) 37 times, fchdir(2) 5 times."""
import os

for _ in range(37):
    try:
        os.rmdir("/nowhere/at-all")
    except FileNotFoundError:
        pass
for _ in range(5):
    try:
        os.fchdir(4711)
    except OSError:
        pass

"""A signal to itself, by a descriptor."""
import os
import signal

signal.pidfd_send_signal(os.pidfd_open(os.getpid()), signal.SIGWINCH)

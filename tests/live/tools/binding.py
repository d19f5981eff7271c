"""Binds sockets; prints the port that is in use."""
import socket

first = socket.socket()
first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
first.bind(("127.0.0.1", 0))
first.listen()
try:
    socket.socket().bind(first.getsockname())
except OSError:
    print(first.getsockname()[1])
socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).bind(("::1", 0))

"""udp_peers.py FILE: 40 packets of 1000 bytes over the loopback, which are read, then packets to a socket that nobody reads,
with a small buffer. Writes both ports, and how many of the latter the kernel says that it dropped (/proc/net/udp)."""
import socket
import sys

reader = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
reader.bind(("127.0.0.1", 0))
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.connect(reader.getsockname())
for _ in range(40):
    sender.send(b"x" * 1024)
    reader.recv(2000)
deaf = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
deaf.bind(("127.0.0.1", 0))
for _ in range(50):
    sender.sendto(b"x" * 1000, deaf.getsockname())
port = deaf.getsockname()[1]
with open("/proc/net/udp") as file:
    drops = next(line.split()[-1] for line in file if f":{port:04X} " in line)
with open(sys.argv[1], "w") as file:
    print(reader.getsockname()[1], port, drops, file=file)

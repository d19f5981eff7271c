"""tcp_loss.py FILE: a connection over the loopback of a network of its own, whose device is down for a second while segments are
sent, so that the kernel runs into a timeout, and then up again. Writes the port of the server."""
import socket
import subprocess
import sys
import time

listening = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listening.getsockname())
served, _ = listening.accept()
client.sendall(b"x" * 1000)
served.recv(1000)
subprocess.run(["ip", "link", "set", "lo", "down"], check=True)
client.sendall(b"x" * 1000)
time.sleep(1)
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
served.recv(1000)
for _ in range(20):
    client.sendall(b"x" * 1000)
    served.recv(1000)
    time.sleep(0.02)
with open(sys.argv[1], "w") as file:
    print(listening.getsockname()[1], file=file)

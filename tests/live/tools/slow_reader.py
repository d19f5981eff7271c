"""A TCP connection whose data waits for 0.25 s until it is read."""
import socket
import time

listening = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listening.getsockname())
served, _ = listening.accept()
client.sendall(b"x" * 1000)
time.sleep(0.25)
served.recv(1000)

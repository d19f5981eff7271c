"""Two ends of TCP connections over the loopback, for tests: 100 KiB one way, 5 KiB the other, on IPv4 and IPv6, then
an attempt on a port where nobody listens, and a connection over a Unix socket, which is no TCP."""
import socket


def receive(end, size):
    while size > 0:
        size -= len(end.recv(65536))


for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    listening = socket.create_server((address, 0), family=family, backlog=7)
    client = socket.create_connection(listening.getsockname()[:2])
    served, _ = listening.accept()
    client.sendall(b"x" * 102400)
    receive(served, 102400)
    served.sendall(b"y" * 5120)
    receive(client, 5120)
    served.close()
    client.recv(1)
    client.close()

nobody = socket.socket(socket.AF_INET6)
nobody.connect_ex(("::1", 9))

with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as client:
    listening.bind("")
    listening.listen()
    client.connect(listening.getsockname())
    listening.accept()

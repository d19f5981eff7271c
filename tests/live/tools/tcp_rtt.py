"""tcp_rtt.py FILE: a connection over the loopback on which segments go back and forth; writes the port of the server and what
the kernel says of the client in the end (TCP_INFO): the smoothed round-trip time in microseconds, the congestion window. One
more segment follows. The kernel fires tcp_probe before it looks at the segment, so the probe sees these very numbers."""
import socket
import struct
import sys

listening = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listening.getsockname())
served, _ = listening.accept()
for _ in range(50):
    client.sendall(b"x" * 1000)
    served.recv(1000)
    served.sendall(b"y")
    client.recv(1)
info = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
rtt, = struct.unpack_from("I", info, 68)
window, = struct.unpack_from("I", info, 80)
with open(sys.argv[1], "w") as file:
    print(listening.getsockname()[1], rtt, window, file=file)
served.sendall(b"z")
client.recv(1)

"""A server and a client of DNS, over UDP, on port 53 of the loopback: a name that there is, after 50 ms; one that there is not,
with nine parts; and a question without an answer."""
import socket
import struct
import threading
import time

server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))


def serve():
    for code in (0, 3):
        question, client = server.recvfrom(512)
        time.sleep(0.05)
        server.sendto(question[:2] + struct.pack(">H", 0x8180 | code) + question[4:], client)


def ask(name, kind, is_answered):
    parts = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.sendto(struct.pack(">6H", kind, 0x0100, 1, 0, 0, 0) + parts + b"\0" + struct.pack(">2H", kind, 1),
                  ("127.0.0.1", 53))
    if is_answered:
        client.recv(512)


thread = threading.Thread(target=serve)
thread.start()
ask("www.example.com", 28, True)
ask("a.b.c.d.e.f.g.h.example", 1, True)
thread.join()
ask("nobody.example", 1, False)

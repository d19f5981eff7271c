"""send_packets.py FILE: sends 20 UDP packets over $DEVICE; writes what the device has counted: packets and bytes sent."""
import os
import socket
import sys

sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for size in range(20):
    sender.sendto(b"x" * (size + 1) * 10, ("198.51.100.9", 9))
with open("/proc/net/dev") as file:
    numbers = next(line for line in file if f" {os.environ['DEVICE']}:" in f" {line.strip()}").split(":")[1].split()
with open(sys.argv[1], "w") as file:
    print(numbers[9], numbers[8], file=file)

# The tools for sockets that need kprobes.
# kernels: 6.12 7.2
tools=$(dirname -- "$ESPY")/../tools
[ -x /usr/bin/python3 ] || skip 'python3 is not installed'
ip link set lo up
# Five connections that nobody accepts, to a queue of two: three get in, as the kernel lets one more in than it says.
cat >full.py <<'P'
import socket, time
listening = socket.create_server(("127.0.0.1", 4711), backlog=2)
clients = [socket.socket() for _ in range(5)]
for client in clients:
    client.setblocking(False)
    client.connect_ex(("127.0.0.1", 4711))
time.sleep(1)
P
"$ESPY" -q "$tools/tcpsynbl.bt" -c '/usr/bin/python3 full.py' >out
grep -qx '@queued\[4711, 2\]:' out || { cat out; exit 1; }
grep -Eq '^\[2, 4\) +1 \|' out || { cat out; exit 1; }
# What goes over a Unix socket.
cat >said.py <<'P'
import socket
a, b = socket.socketpair()
a.sendall(b"over the socket\n")
b.recv(100)
P
expect '^[0-9:]{8} [0-9]+ +python3 +stream +16$' "$ESPY" -q "$tools/undump.bt" -c '/usr/bin/python3 said.py'
expect '^over the socket\\x0a$' "$ESPY" -q "$tools/undump.bt" -c '/usr/bin/python3 said.py'
# The tools for TCP, over connections that carry 100 KiB one way and 5 the other.
live=$(dirname -- "$ESPY")/../tests/live/tools
cat >peers.sh <<'P'
/usr/bin/python3 "$1/tcp_peers.py"
sleep "$2"
P
"$ESPY" -q "$tools/tcptop.bt" -c "sh peers.sh $live 2" >out
grep -Eq '^@sent_kib\[[0-9]+, python3, [0-9]+, 127\.0\.0\.1, [0-9]+\]: 100$' out || { cat out; exit 1; }
grep -Eq '^@received_kib\[[0-9]+, python3, [0-9]+, ::1, [0-9]+\]: 5$' out || { cat out; exit 1; }
expect '^[0-9:]{8} [0-9]+ +python3 +::1 +::1:[0-9]+ +[0-9]+$' "$ESPY" -q "$tools/tcpconnlat.bt" -c "sh peers.sh $live 0"
expect '^[0-9:]{8} [0-9]+ +[0-9]+ +::1:[0-9]+ +SYN_RECV +ESTABLISHED +[0-9]+$' "$ESPY" -q "$tools/tcpstates.bt" \
  -c "sh peers.sh $live 0"
expect '^@rtt_us_of\[::1\]:$' "$ESPY" -q "$tools/tcprtt.bt" -c "sh peers.sh $live 0" -- --hosts
expect '^[0-9:]{8} A [0-9]+ +python3 +::1:[0-9]+ +::1:[0-9]+ *$' "$ESPY" -q "$tools/tcptracer.bt" -c "sh peers.sh $live 0"
expect '^[0-9:]{8} [0-9]+ +got +::1:[0-9]+ +::1:9 +SYN_SENT$' "$ESPY" -q "$tools/tcpreset.bt" -c "sh peers.sh $live 0"
case $(uname -r) in
  5.10*) ;;  # tells only of resets that belong to a socket
  *) grep -Eq '^[0-9:]{8} [0-9]+ +sent +::1:9 +::1:[0-9]+ +-$' expect.out || { cat expect.out; exit 1; } ;;
esac
expect '^[0-9:]{8} [0-9]+ +python3 +[0-9]+ +::1:[0-9]+ +[0-9]+$' "$ESPY" -q "$tools/tcppktlat.bt" -c "sh peers.sh $live 0"
expect '^[0-9:]{8} [0-9]+ +python3 +0 TCP +7 +::1:[0-9]+$' "$ESPY" -q "$tools/solisten.bt" -c "sh peers.sh $live 0"
expect '^[0-9:]{8} [0-9]+ +python3 +111 +[0-9]+ TCP +::1:9$' "$ESPY" -q "$tools/soconnect.bt" -c "sh peers.sh $live 0"
# As many packets as the kernel counts (/proc/net/udp).
"$ESPY" -q "$tools/udpdrop.bt" -c "/usr/bin/python3 $live/udp_peers.py ports" >out
read -r _ port drops <ports
awk -v p="$port" -v d="$drops" '$2 == p && $3 == 12 { n++ } END { print n, d; exit n != d }' out

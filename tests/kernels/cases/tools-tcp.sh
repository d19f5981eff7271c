# Why the kernel threw a packet away; before Linux 5.17 only where.
tools=$(dirname -- "$ESPY")/../tools
command -v python3 >/dev/null || skip 'python3 is not installed'
expect '^[0-9:]{8} +127\.0\.0\.1:[0-9]+ +127\.0\.0\.1:9 +(SKB_DROP_REASON_NO_SOCKET|tcp_v4_rcv)$' "$ESPY" "$tools/tcpdrop.bt" \
  -c "python3 -c 'import socket; socket.socket().connect_ex((\"127.0.0.1\", 9))'"
# The first segment of a connection that nobody answers, sent again after a second.
unanswered=$(dirname -- "$ESPY")/../tests/live/tools/nobody_answers.sh
"$unanswered" true || skip 'no network namespace for an address that does not answer'
expect '^[0-9:]{8} +198\.51\.100\.1:[0-9]+ +198\.51\.100\.9:80 +(TCP_)?SYN_SENT$' "$ESPY" "$tools/tcpretrans.bt" -c "$unanswered"

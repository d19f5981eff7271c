#!/bin/sh
# nobody_answers.sh [COMMAND...]: a TCP connection to an address that takes segments and never answers, in a network of
# its own. Without root, a kernel with veth, and ip(8) it fails; `nobody_answers.sh true` only tries whether it can.
set -e
if [ -z "$IN_OWN_NETWORK" ]; then
  export IN_OWN_NETWORK=1
  exec unshare --net "$0" "$@"
fi
ip link set lo up
ip link add near type veth peer name far
ip addr add 198.51.100.1/24 dev near
ip link set far up
ip link set near up
ip neigh add 198.51.100.9 lladdr 02:00:00:00:00:01 dev near
[ $# = 0 ] || exec "$@"
python3 -c "import socket; s = socket.socket(); s.settimeout(1.5); s.connect_ex(('198.51.100.9', 80))"

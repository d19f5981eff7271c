#!/bin/sh
# own_device.sh COMMAND...: runs the command in a network of its own, with a device espynq0 that leads nowhere.
set -e
if [ -z "$IN_OWN_NETWORK" ]; then
  export IN_OWN_NETWORK=1
  exec unshare --net "$0" "$@"
fi
sysctl -q -w net.ipv6.conf.default.disable_ipv6=1
ip link add espynq0 type veth peer name espynq1
ip link set lo up
ip addr add 198.51.100.1/24 dev espynq0
ip link set espynq1 up
ip link set espynq0 up
ip neigh add 198.51.100.9 lladdr 02:00:00:00:00:01 dev espynq0
exec "$@"

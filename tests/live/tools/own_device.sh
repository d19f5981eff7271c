#!/bin/sh
# own_device.sh COMMAND...: runs the command in a network of its own, with a device $DEVICE (espyod) that leads nowhere.
set -e
export DEVICE="${DEVICE:-espyod}"
if [ -z "$IN_OWN_NETWORK" ]; then
  export IN_OWN_NETWORK=1
  exec unshare --net "$0" "$@"
fi
sysctl -q -w net.ipv6.conf.default.disable_ipv6=1
ip link add "$DEVICE" type veth peer name "${DEVICE}p"
ip link set lo up
ip addr add 198.51.100.1/24 dev "$DEVICE"
ip link set "${DEVICE}p" up
ip link set "$DEVICE" up
ip neigh add 198.51.100.9 lladdr 02:00:00:00:00:01 dev "$DEVICE"
exec "$@"

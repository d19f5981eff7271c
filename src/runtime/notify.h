// Notifications to a service manager, the protocol of sd_notify(3): a datagram to $NOTIFY_SOCKET.
#pragma once

#include <string_view>

namespace espy::runtime {

// `state`: lines of NAME=VALUE, as "READY=1". Does nothing if $NOTIFY_SOCKET is not set; ignores failures.
// Waits for a second for a manager that does not read.
void notify_manager(std::string_view state);

}  // namespace espy::runtime

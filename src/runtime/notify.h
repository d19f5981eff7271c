// Telling a service manager how far we are (sd_notify(3)), without its library: a datagram to $NOTIFY_SOCKET.
#pragma once

#include <string_view>

namespace espy::runtime {

// `state` is lines of NAME=VALUE: "READY=1". Does nothing where nobody wants to know; failures are of no interest.
void notify_manager(std::string_view state);

}  // namespace espy::runtime

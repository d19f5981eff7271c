// The mounts of a mount namespace: the lines of /proc/PID/mountinfo (proc_pid_mountinfo(5)).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace espy {

// The texts are views into the line.
struct Mount {
  uint64_t id = 0;
  uint64_t device = 0;     // as makedev(3) packs it
  std::string_view place;  // where it is mounted, with escapes
  std::string_view type;   // of the file system: "overlay"
};

// Parses "ID PARENT MAJOR:MINOR ROOT PLACE OPTIONS [TAGS] - TYPE SOURCE OPTIONS". Returns nullopt for another form.
std::optional<Mount> parse_mount(std::string_view line);

}  // namespace espy

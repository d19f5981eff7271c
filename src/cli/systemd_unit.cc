#include "cli/systemd_unit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/fatal.h"

namespace espy::cli {

namespace {

// %, which systemd expands, and control characters.
std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '%') out += '%';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out;
}

// What does not go with tracing is left out: ProtectProc, PrivateUsers and RestrictNamespaces hide the processes that
// are traced, or take the capabilities away.
constexpr std::string_view kSandbox = R"(NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
PrivateDevices=yes
PrivateNetwork=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelModules=yes
ProtectControlGroups=yes
RestrictAddressFamilies=AF_UNIX
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service bpf perf_event_open
SystemCallErrorNumber=EPERM
UMask=0077
)";

bool has(const std::vector<std::string_view>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

bool is_unit_name(std::string_view tool) {
  constexpr size_t kMostBytes = 255 - std::string_view(".service").size();  // UNIT_NAME_MAX
  constexpr std::string_view kMarks = ":-_.";
  const auto is_good = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || kMarks.find(c) != kMarks.npos;
  };
  return !tool.empty() && tool.size() <= kMostBytes && tool[0] != '-' && tool[0] != '.' &&
         std::ranges::all_of(tool, is_good);
}

std::string systemd_unit(const UnitRequest& request) {
  CHECK(is_unit_name(request.tool));
  const std::string capabilities = fmt::format("{}", fmt::join(request.capabilities, " "));
  // It takes CAP_SYSLOG away.
  const std::string_view logs = has(request.capabilities, "CAP_SYSLOG") ? "" : "ProtectKernelLogs=yes\n";
  return fmt::format(
      R"(# Made by `espy build --systemd`. To install it:
#   install -m 755 {0} /usr/local/bin/
#   install -m 644 {0}.service /etc/systemd/system/
#   systemctl daemon-reload && systemctl enable --now {0}
[Unit]
Description={1}
Wants=sys-kernel-tracing.mount
After=sys-kernel-tracing.mount
StartLimitIntervalSec=600
StartLimitBurst=5

[Service]
Type=notify
ExecStart=/usr/local/bin/{0}{5}
KillSignal=SIGINT
Restart=on-failure
RestartSec=10

# Of the machine's time and memory.
Nice=10
CPUQuota=20%
MemoryMax=512M
TasksMax=16

# A user without a name or files of its own, with these capabilities alone. Where kernel.perf_event_paranoid is above 2,
# as on Debian, perf events need CAP_SYS_ADMIN in both lines.
DynamicUser=yes
AmbientCapabilities={2}
CapabilityBoundingSet={2}
# Before Linux 5.11 what programs of BPF need counts as locked memory.
LimitMEMLOCK=infinity

# What it cannot do.
{3}{4}
[Install]
WantedBy=multi-user.target
)",
      request.tool, escape(request.description), capabilities, kSandbox, logs,
      request.has_budget ? "" : " --budget=2%%");
}

}  // namespace espy::cli

#include "cli/give_up_rights.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace espy::cli {

namespace {

constexpr uint64_t kBpf = uint64_t{1} << CAP_BPF;

}  // namespace

Status give_up_rights(const runtime::Identity& user, const std::vector<std::string_view>& used, Environment& e) {
  if (std::ranges::find(used, "CAP_SYSLOG") != used.end())
    while (e.symbols.read_kernel_ahead()) {
    }
  const auto fail_with = [&](int code) {
    return fail_errno(fmt::format("cannot become the user {}", user.name), code,
                      "--user needs root, or CAP_SETUID and CAP_SETGID");
  };
  if (::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) return fail_with(errno);
  if (const int code = runtime::become(user); code != 0) return fail_with(code);
  // The effective capabilities have gone with the ids.
  const bool keeps_bpf = e.machine->refuses_maps();
  if (const int code = runtime::drop_capabilities(keeps_bpf ? kBpf : 0); code != 0) return fail_with(code);
  if (keeps_bpf)
    std::fputs("WARNING: espy keeps CAP_BPF, without which this kernel does not let it read maps\n", stderr);
  return {};
}

}  // namespace espy::cli

#include "kernel/dangerous_functions.h"

#include <algorithm>
#include <iterator>

#include "base/strings.h"
#include "kernel/functions.h"

namespace espy::kernel {

namespace {

constexpr std::string_view kAtLock =
    "programs update maps and send records under such locks: when a probe's own lock is waited for or held, it would "
    "wait for itself";

// `only_return`: the entry is harmless, since the lock is not held yet.
struct Row {
  std::string_view function;
  bool only_return = false;
};

// Where machines hung: at the return of spin locks (iovisor/bcc issue 2300, bpftrace pull request 534), and at the slow
// paths of locks, where two programs on two CPUs wait for the locks of each other's maps (bpftrace issue 3144).
constexpr Row kLocks[] = {
    {"_raw_spin_lock", true},
    {"_raw_spin_lock_bh", true},
    {"_raw_spin_lock_irq", true},
    {"_raw_spin_lock_irqsave", true},
    {"_raw_spin_trylock", true},
    {"_raw_spin_unlock_irqrestore", true},
    {"native_queued_spin_lock_slowpath"},
    {"pv_queued_spin_lock_slowpath"},
    {"__pv_queued_spin_lock_slowpath"},
    {"queued_spin_lock_slowpath"},
    {"resilient_queued_spin_lock_slowpath"},
};

constexpr std::string_view kNoReturn[] = {
    "__ia32_sys_exit",
    "__ia32_sys_exit_group",
    "__kunit_abort",
    "kunit_try_catch_throw",
    "__module_put_and_kthread_exit",
    "__x64_sys_exit",
    "__x64_sys_exit_group",
    "do_exit",
    "do_group_exit",
    "kthread_complete_and_exit",
    "kthread_exit",
    "make_task_dead",
};

}  // namespace

bool never_returns(std::string_view function) { return std::ranges::find(kNoReturn, function) != std::end(kNoReturn); }

std::optional<std::string_view> why_dangerous(std::string_view function, bool is_return) {
  const auto* row = std::ranges::find(kLocks, function, &Row::function);
  if (row == std::end(kLocks) || (row->only_return && !is_return)) return std::nullopt;
  return kAtLock;
}

// Lines are `0xSTART-0xEND<tab>NAME`.
std::set<std::string, std::less<>> read_kprobe_blacklist(const std::string& path) {
  std::set<std::string, std::less<>> out;
  for_each_line(path, [&](std::string_view line) {
    if (const size_t tab = line.find('\t'); tab != line.npos) out.emplace(trim(line.substr(tab + 1)));
    return true;
  });
  return out;
}

}  // namespace espy::kernel

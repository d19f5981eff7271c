#include "strace/call_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/strings.h"

namespace espy::strace {

namespace {

using Calls = std::bitset<CallTable::kNumbers>;

bool has_path(const Call& call) {
  return std::ranges::any_of(call.arguments, [](const Argument& each) { return each.kind == Kind::k_path; });
}

bool has_descriptor(const Call& call) {
  constexpr Kind kKinds[] = {Kind::k_fd,     Kind::k_dirfd,   Kind::k_pollfds,
                             Kind::k_select, Kind::k_fd_pair, Kind::k_socketpair};
  return call.returns_fd || std::ranges::any_of(call.arguments, [&](const Argument& each) {
           return std::ranges::find(kKinds, each.kind) != std::end(kKinds);
         });
}

struct Class {
  std::string_view name, calls;             // names of calls, separated by blanks
  bool (*has)(const Call& call) = nullptr;  // and these
};

constexpr Class kClasses[] = {
    {"file", "getcwd", has_path},
    {"desc", "epoll_create epoll_create1", has_descriptor},
    {"network",
     "accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg recvmsg sendfile "
     "sendmmsg "
     "sendmsg sendto setsockopt shutdown socket socketpair"},
    {"process",
     "clone clone3 execve execveat exit exit_group fork kill pidfd_send_signal rt_sigqueueinfo rt_tgsigqueueinfo "
     "tgkill "
     "tkill vfork wait4 waitid"},
    {"memory",
     "brk get_mempolicy madvise map_shadow_stack mbind migrate_pages mincore mlock mlock2 mlockall mmap move_pages "
     "mprotect "
     "mremap mseal msync munlock munlockall munmap pkey_mprotect process_madvise remap_file_pages set_mempolicy "
     "set_mempolicy_home_node shmat shmdt"},
    {"signal",
     "kill pause pidfd_send_signal rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn "
     "rt_sigsuspend "
     "rt_sigtimedwait rt_tgsigqueueinfo sigaltstack signalfd signalfd4 tgkill tkill"},
    {"ipc", "msgctl msgget msgrcv msgsnd semctl semget semop semtimedop shmat shmctl shmdt shmget"},
};

Calls calls_where(const CallTable& table, const auto& is_wanted) {
  Calls out;
  for (uint32_t i = 0; i < CallTable::kNumbers; ++i)
    if (const std::string_view name = table.name_of(i); !name.empty() && is_wanted(name, table.find(i))) out.set(i);
  return out;
}

std::string class_names() {
  std::string out;
  for (const Class& each : kClasses) out += fmt::format("{}%{}", out.empty() ? "" : " ", each.name);
  return out;
}

Result<Calls> calls_of_class(const CallTable& table, std::string_view name) {
  const auto* found = std::ranges::find(kClasses, name, &Class::name);
  if (found == std::end(kClasses))
    return fail(fmt::format("there is no class `%{}`", printable_line(name)), 0, class_names());
  const std::vector<std::string_view> names = split(found->calls, ' ');
  return calls_where(table, [&](std::string_view call, const Call* row) {
    if (std::ranges::find(names, call) != names.end()) return true;
    return found->has != nullptr && row != nullptr && found->has(*row);
  });
}

Result<Calls> calls_of_name(const CallTable& table, std::string_view name) {
  const bool may_be_unknown = name.starts_with('?');
  if (may_be_unknown) name.remove_prefix(1);
  const Calls out = calls_where(table, [&](std::string_view call, const Call*) { return call == name; });
  if (out.any() || may_be_unknown) return out;
  std::vector<std::string_view> known;
  for (uint32_t i = 0; i < CallTable::kNumbers; ++i)
    if (!table.name_of(i).empty()) known.push_back(table.name_of(i));
  const std::string near = nearest(name, known);
  return fail(fmt::format("there is no system call `{}`", printable_line(name)), 0,
              near.empty() ? fmt::format("names of calls, {}, or /REGEX", class_names())
                           : fmt::format("did you mean `{}`?", near));
}

Result<Calls> calls_of_item(const CallTable& table, std::string_view item) {
  if (item.starts_with('%')) return calls_of_class(table, item.substr(1));
  if (item.starts_with('/')) {
    const Regex regex = TRY(Regex::compile(std::string(item.substr(1))));
    return calls_where(table,
                       [&](std::string_view call, const Call*) { return regex.matches_somewhere(std::string(call)); });
  }
  // Older spellings of classes, without `%`.
  const bool is_class = std::ranges::find(kClasses, item, &Class::name) != std::end(kClasses);
  return is_class ? calls_of_class(table, item) : calls_of_name(table, item);
}

Status choose_calls(const CallTable& table, std::string_view set, CallFilter& filter) {
  const bool is_negated = set.starts_with('!');
  if (is_negated) set.remove_prefix(1);
  Calls chosen;
  bool is_all = false;
  for (const std::string_view item : split(set, ',')) {
    if (item == "all") is_all = true;
    if (item == "all" || item == "none") continue;
    if (item.empty()) return fail("-e trace= has an empty name", 0, "-e trace=openat,read or -e %file");
    chosen |= TRY(calls_of_item(table, item));
  }
  if (is_all) chosen.set();
  filter.is_all = is_all != is_negated && (is_all || chosen.none());
  filter.calls = is_negated ? ~chosen : chosen;
  return {};
}

Status choose_results(std::string_view set, CallFilter& filter) {
  const bool is_negated = set.starts_with('!');
  if (is_negated) set.remove_prefix(1);
  constexpr std::string_view kKnown[] = {"successful", "failed", "unfinished", "unavailable",
                                         "detached",   "all",    "none"};
  const auto has = [&](std::string_view name) {
    const std::vector<std::string_view> items = split(set, ',');
    return (std::ranges::find(items, name) != items.end() || std::ranges::find(items, "all") != items.end()) !=
           is_negated;
  };
  for (const std::string_view item : split(set, ','))
    if (std::ranges::find(kKnown, item) == std::end(kKnown)) {
      const std::string near = nearest(item, kKnown);
      return fail(fmt::format("there is no status `{}`", printable_line(item)), 0,
                  near.empty() ? "successful, failed, unfinished" : fmt::format("did you mean `{}`?", near));
    }
  filter.shows_successful = has("successful");
  filter.shows_failed = has("failed");
  filter.shows_unfinished = has("unfinished");
  return {};
}

}  // namespace

Status apply_expression(const CallTable& table, std::string_view expression, CallFilter& filter) {
  const size_t equals = expression.find('=');
  if (equals == std::string_view::npos) return choose_calls(table, expression, filter);
  const std::string_view qualifier = expression.substr(0, equals), set = expression.substr(equals + 1);
  if (qualifier == "trace" || qualifier == "t") return choose_calls(table, set, filter);
  if (qualifier == "status") return choose_results(set, filter);
  constexpr std::string_view kOfSignals[] = {"signal", "signals", "s"};
  const bool is_of_signals = std::ranges::find(kOfSignals, qualifier) != std::end(kOfSignals);
  if (is_of_signals && (set == "none" || set == "!all" || set == "all")) {
    filter.shows_signals = set == "all";
    return {};
  }
  constexpr std::string_view kKnown[] = {"trace", "status", "signal"};
  const std::string near = nearest(qualifier, kKnown);
  return fail(
      fmt::format("`-e {}` cannot be used here", printable_line(expression)), 0,
      near.empty() ? "-e trace=SET, -e status=SET, -e signal=none" : fmt::format("did you mean `-e {}=`?", near));
}

}  // namespace espy::strace

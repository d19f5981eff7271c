#include "kernel/functions.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <map>

#include "base/files.h"
#include "base/strings.h"

namespace espy::kernel {

namespace {

// A line of kallsyms: "ffffffff81000000 T _text" or "... t name\t[module]".
struct Symbol {
  uint64_t address = 0;
  char kind = 0;
  std::string_view name;
  std::string_view module;  // with its brackets
};

std::optional<Symbol> parse_symbol(std::string_view line) {
  Symbol symbol;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), symbol.address, 16);
  const auto used = static_cast<size_t>(end - line.data());
  if (error != std::errc{} || line.size() < used + 4) return std::nullopt;
  symbol.kind = line[used + 1];
  line.remove_prefix(used + 3);
  const size_t tab = line.find('\t');
  symbol.name = line.substr(0, tab);
  if (tab != line.npos) symbol.module = line.substr(tab + 1);
  return symbol;
}

class FunctionList {
 public:
  explicit FunctionList(std::string_view glob) : glob_(glob) {}

  void add(std::string_view name, std::string_view module) {
    // ftrace's name for functions that the linker dropped.
    if (!glob_match(glob_, name) || name.starts_with("__ftrace_invalid_address")) return;
    names_.emplace_back(name);
    if (!module.empty()) names_.back().append(" ").append(module);
  }
  std::vector<std::string> take() { return std::move(names_); }

 private:
  std::string_view glob_;
  std::vector<std::string> names_;
};

}  // namespace

bool for_each_line(const std::string& path, const std::function<bool(std::string_view)>& visit) {
  const OwnedFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return false;
  std::vector<char> buffer(1 << 16);
  size_t held = 0;  // bytes of an incomplete line
  while (true) {
    if (held == buffer.size()) buffer.resize(buffer.size() * 2);
    const ssize_t got = read(file.get(), buffer.data() + held, buffer.size() - held);
    if (got < 0) return false;
    if (got == 0) break;
    const std::string_view text(buffer.data(), held + static_cast<size_t>(got));
    size_t start = 0;
    for (size_t end; (end = text.find('\n', start)) != text.npos; start = end + 1) {
      if (!visit(text.substr(start, end - start))) return true;
    }
    held = text.size() - start;
    std::memmove(buffer.data(), buffer.data() + start, held);
  }
  if (held > 0) visit(std::string_view(buffer.data(), held));
  return true;
}

namespace {

// Calls `visit(symbol)` for the functions in kallsyms that can run.
void for_each_function(const std::string& kallsyms, const std::function<void(const Symbol&)>& visit) {
  bool is_initial = false;  // the symbols of the kernel itself are in the order of their addresses
  for_each_line(kallsyms, [&](std::string_view line) {
    const auto symbol = parse_symbol(line);
    if (!symbol) return true;
    if (symbol->name == "_sinittext") is_initial = true;
    if (symbol->name == "_einittext") is_initial = false;
    // BPF programs and trampolines are listed like modules, but are not functions of the kernel.
    const bool is_ours = !is_initial && std::string_view("tTwW").find(symbol->kind) != std::string_view::npos &&
                         symbol->module != "[bpf]" && !symbol->module.starts_with("[__builtin");
    if (is_ours) visit(*symbol);
    return true;
  });
}

}  // namespace

std::vector<std::string> list_functions(const std::string& listed, const std::string& kallsyms, std::string_view glob) {
  FunctionList functions(glob);
  const bool is_listed = for_each_line(listed, [&](std::string_view line) {
    const size_t space = line.find(' ');
    functions.add(line.substr(0, space), space == line.npos ? std::string_view{} : line.substr(space + 1));
    return true;
  });
  if (!is_listed) for_each_function(kallsyms, [&](const Symbol& each) { functions.add(each.name, each.module); });
  return functions.take();
}

std::vector<std::string> list_code(const std::string& kallsyms, std::string_view glob) {
  std::vector<std::string> out;
  for_each_function(kallsyms, [&](const Symbol& each) {
    if (!glob_match(glob, each.name)) return;
    out.emplace_back(each.name);
    if (!each.module.empty()) out.back().append(" ").append(each.module);
  });
  return out;
}

std::vector<std::vector<uint64_t>> find_addresses(const std::string& kallsyms,
                                                  const std::vector<std::string>& functions) {
  std::map<std::string, size_t, std::less<>> wanted;
  for (size_t i = 0; i < functions.size(); ++i) wanted.emplace(functions[i], i);
  std::vector<std::vector<uint64_t>> out(functions.size());
  std::string text;
  for_each_function(kallsyms, [&](const Symbol& each) {
    text = each.name;
    if (!each.module.empty()) text.append(" ").append(each.module);
    const auto found = wanted.find(text);
    if (found != wanted.end() && each.address != 0) out[found->second].push_back(each.address);
  });
  return out;
}

std::optional<uint64_t> find_symbol(const std::string& kallsyms, std::string_view name) {
  uint64_t address = 0;
  for_each_line(kallsyms, [&](std::string_view line) {
    // Most lines do not match: compare the end before parsing the line.
    if (line.find(name) == line.npos) return true;
    const auto symbol = parse_symbol(line);
    if (symbol && symbol->name == name) address = symbol->address;
    return address == 0;
  });
  if (address == 0) return std::nullopt;
  return address;
}

std::string why_addresses_are_hidden() {
  const std::string restriction = read_file("/proc/sys/kernel/kptr_restrict").value_or("?");
  if (parse_int(trim(restriction)).value_or(0) >= 2)
    return "kernel.kptr_restrict = 2 hides the kernel's addresses in /proc/kallsyms from all users";
  return "/proc/kallsyms hides the kernel's addresses: CAP_SYSLOG is missing";
}

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

bool is_left_out_of_wildcard(std::string_view function, std::string_view glob) {
  for (const std::string_view beginning : {"rcu_", "arch_cpu_idle", "default_idle"})
    if (function.starts_with(beginning)) return !glob.starts_with(beginning);
  return false;
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

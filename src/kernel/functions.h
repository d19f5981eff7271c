// Kernel functions and symbols. The files that list them are long, so they are streamed and not kept in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace espy::kernel {

// Calls `visit(line)` for each line of the file, without its newline, until it returns false. Returns false on a read
// error.
bool for_each_line(const std::string& path, const std::function<bool(std::string_view)>& visit);

// Matching functions as "name" or "name [module]"; several of one name are each listed. They are read from `listed`,
// ftrace's list of traceable functions, if it is readable, else from `kallsyms`.
std::vector<std::string> list_functions(const std::string& listed, const std::string& kallsyms, std::string_view glob);

// Matching functions in `kallsyms`, including functions that ftrace does not list, in the same form. Functions with one
// name are each listed. Functions of the kernel start are skipped, because their memory is free.
std::vector<std::string> list_code(const std::string& kallsyms, std::string_view glob);

// The addresses in `kallsyms` of all functions that can run and have the name, for each of `functions` in the form
// above; none where addresses are hidden.
std::vector<std::vector<uint64_t>> find_addresses(const std::string& kallsyms,
                                                  const std::vector<std::string>& functions);

// The address of the first kernel symbol of this name; nullopt if there is none or addresses are hidden
// (kernel.kptr_restrict).
std::optional<uint64_t> find_symbol(const std::string& kallsyms, std::string_view name);

// Why /proc/kallsyms of the running kernel shows all addresses as zero to this process: a sentence that names the
// missing right. Requires that it does (kallsyms_show_value in kernel/ksyms_common.c).
std::string why_addresses_are_hidden();

// ---- Functions of the kernel that no program should or can be attached to.

// Returns why a function must not be probed, at its return or anywhere; nullopt if nothing is known against it.
std::optional<std::string_view> why_dangerous(std::string_view function, bool is_return);

// True for functions with which machines hung when programs were on all functions. The kernel's own tests skip them too
// (skip_entry() in tools/testing/selftests/bpf/trace_helpers.c). A wildcard has them if it begins with their name, such
// as `rcu_`.
bool is_left_out_of_wildcard(std::string_view function, std::string_view glob);

// True for functions that do not return, which the kernel lets no fexit program on since Linux 6.16 and some earlier
// stable releases (noreturn_deny in kernel/bpf/verifier.c).
bool never_returns(std::string_view function);

// Reads the functions that the kernel does not let kprobes on. Empty where the file cannot be read.
constexpr std::string_view kKprobeBlacklist = "/sys/kernel/debug/kprobes/blacklist";
std::set<std::string, std::less<>> read_kprobe_blacklist(const std::string& path);

}  // namespace espy::kernel

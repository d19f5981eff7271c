// Kernel functions and symbols: the files that list them are long, so they are read in a stream and never kept.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace espy::kernel {

// Calls `visit(line)` for each line of the file, without its newline, until it returns false. False if the file cannot
// be read to where the visitor stopped.
bool for_each_line(const std::string& path, const std::function<bool(std::string_view)>& visit);

// Functions that match, each once: "name" or "name [module]". From `listed`, ftrace's list of what can be traced, if
// that is readable, else every function of `kallsyms`.
std::vector<std::string> list_functions(const std::string& listed, const std::string& kallsyms, std::string_view glob);

// The address of a symbol of the kernel; of the first where several have the name. Nothing also where addresses are
// hidden from us.
std::optional<uint64_t> find_symbol(const std::string& kallsyms, std::string_view name);

}  // namespace espy::kernel

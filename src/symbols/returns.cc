#include "symbols/returns.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "kernel/arch/arch.h"
#include "symbols/demangle.h"
#include "symbols/elf_image.h"

namespace espy::symbols {

namespace {

constexpr std::string_view kCold = ".cold";

// The function that NAME.cold is a part of.
std::string_view function_of_part(std::string_view name) {
  return name.substr(0, std::min(name.find(kCold), name.size()));
}

// Libraries that unwind stacks, or that programs need which do.
bool is_unwinder(std::string_view library) {
  constexpr std::string_view kPrefixes[] = {"libstdc++.so", "libc++.so", "libc++abi.so", "libgcc_s.so",
                                            "libunwind.so.1"};
  return std::ranges::any_of(kPrefixes, [&](std::string_view prefix) { return library.starts_with(prefix); });
}

}  // namespace

bool may_be_unwound(const ElfFile& file) {
  const std::vector<std::string> libraries = file.image().dynamic_needs().libraries;
  if (std::ranges::any_of(libraries, is_unwinder)) return true;
  const auto has = [&](std::string_view function) { return file.find_function(function).has_value(); };
  if (has("__gxx_personality_v0") || has("rust_eh_personality") || has("__gnat_personality_v0")) return true;
  return file.image().has_section(".gcc_except_table") && !has("__libc_start_main");
}

bool switches_stacks(const ElfFile& file) {
  constexpr std::string_view kSwitches[] = {"swapcontext",   "setcontext",    "makecontext",   "sigaltstack",
                                            "jump_fcontext", "make_fcontext", "ontop_fcontext"};
  const std::string_view names = file.image().section_bytes(".dynstr");
  const auto is_in_names = [&](std::string_view function) {
    return names.find(std::string(1, '\0').append(function) + '\0') != names.npos;
  };
  const auto is_defined = [&](std::string_view function) { return file.find_function(function).has_value(); };
  const bool is_static = names.empty();
  const bool is_c_library = !is_static && is_in_names("__libc_start_main") && is_defined("__libc_start_main");
  if (is_c_library) return false;
  return std::ranges::any_of(kSwitches,
                             [&](std::string_view each) { return is_static ? is_defined(each) : is_in_names(each); });
}

Returns ReturnFinder::find(const ElfSymbol& function) {
  Returns out;
  // A landing pad need not be reached by a jump. It may be in a part that has no name here.
  if (file_.is_stripped()) out.why_incomplete = "the file is stripped";
  std::vector<Part> parts = {read(function)};
  const auto note = [&](const std::string& why) {
    if (out.why_incomplete.empty()) out.why_incomplete = why;
  };
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::vector<uint64_t> targets = parts[i].targets;
    for (const uint64_t target : targets) note(why_jump(function.name, target, parts));
  }
  for (const ElfSymbol& symbol : cold_parts(function.name)) {
    const auto is_read = [&](const Part& part) { return part.begin == symbol.file_offset; };
    if (std::ranges::any_of(parts, is_read)) continue;
    Part part = read(symbol);
    const auto is_back = [&](uint64_t target) {
      return std::ranges::any_of(parts, [&](const Part& each) { return each.contains(target); });
    };
    if (std::ranges::any_of(part.targets, is_back)) {
      const std::vector<uint64_t> targets = part.targets;
      parts.push_back(std::move(part));
      for (const uint64_t target : targets) note(why_jump(function.name, target, parts));
    } else if (!part.returns.empty() || !part.problem.empty()) {
      note(fmt::format("`{}` may be a part of it", symbol.name));
    }
  }
  for (const Part& part : parts) {
    note(part.problem);
    if (reads_all_ && out.why_incomplete.empty()) note(why_entered(function.name, part));
    out.file_offsets.insert(out.file_offsets.end(), part.returns.begin(), part.returns.end());
  }
  return out;
}

// Returns why a jump may lead out of the function; "" if it does not. Adds the part that it leads to.
std::string ReturnFinder::why_jump(const std::string& name, uint64_t target, std::vector<Part>& parts) const {
  for (const Part& part : parts) {
    if (!part.contains(target)) continue;
    return part.starts[target - part.begin] ? "" : "its code cannot be followed";
  }
  const auto other = file_.function_at_offset(target);
  if (!other) return "it ends in a jump to other code";
  if (other->name.find(kCold) == other->name.npos || function_of_part(other->name) != name)
    return fmt::format("it ends in a jump to `{}`", demangle(other->name, DemangleStyle::kName));
  parts.push_back(read(*other));
  return parts.back().contains(target) && parts.back().starts[target - parts.back().begin]
             ? ""
             : "its code cannot be followed";
}

// Returns why a return instruction of the part may end another function; "" if no other function jumps into it.
std::string ReturnFinder::why_entered(const std::string& name, const Part& part) {
  if (!jumps_between_) find_jumps_between();
  if (!has_read_all_) return "its file has too much code to look for jumps into it";
  // What leads to the first instruction is a call.
  for (auto each = jumps_between_->upper_bound(part.begin); each != jumps_between_->end() && each->first < part.end();
       ++each)
    if (function_of_part(each->second) != name)
      return fmt::format("`{}` jumps into it", demangle(each->second, DemangleStyle::kName));
  return "";
}

void ReturnFinder::find_jumps_between() {
  jumps_between_.emplace();
  std::vector<ElfSymbol> functions = file_.functions();
  std::ranges::sort(functions, {}, &ElfSymbol::file_offset);
  uint64_t end = 0;
  ReadCode code;
  for (const ElfSymbol& each : functions) {
    const bool is_read = each.file_offset + each.size <= end;  // by another name
    if (is_read || each.file_offset == 0) continue;
    end = each.file_offset + each.size;
    has_read_all_ = code.add(each);
    if (!has_read_all_) return;
    for (const uint64_t target : read(each).targets)
      if (target < each.file_offset || target >= end) jumps_between_->emplace(target, each.name);
  }
}

const std::vector<ElfSymbol>& ReturnFinder::cold_parts(const std::string& name) {
  if (!cold_parts_) {
    cold_parts_.emplace();
    for (ElfSymbol& each : file_.functions("*.cold*"))
      (*cold_parts_)[std::string(function_of_part(each.name))].push_back(std::move(each));
  }
  return (*cold_parts_)[name];
}

ReturnFinder::Part ReturnFinder::read(const ElfSymbol& symbol) const {
  Part out{.begin = symbol.file_offset};
  const std::string bytes = file_.bytes_at(symbol.file_offset, symbol.size);
  const std::span code(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  out.starts.resize(code.size());
  if (code.empty() || arch_.go.is_return == nullptr) out.problem = "its code cannot be read";
  if (arch_.go.is_return == nullptr) return out;
  uint32_t before = 0;  // the length of the instruction in front
  for (uint64_t at = 0; at < code.size();) {
    const uint32_t length = arch_.instruction_length(code.subspan(at));
    if (length == 0) {
      out.problem = "its code cannot be followed";
      break;
    }
    const auto instruction = code.subspan(at, length);
    const kernel::Flow flow = kernel::flow_of(arch_, code.subspan(at - before, before), instruction);
    using Kind = kernel::Flow::Kind;
    out.starts[at] = true;
    if (arch_.go.is_return(instruction)) out.returns.push_back(out.begin + at);
    if (flow.kind == Kind::kJump) out.targets.push_back(out.begin + at + static_cast<uint64_t>(flow.distance));
    if (flow.kind == Kind::kUnknown) out.problem = "it ends in a jump to an address that it has read";
    before = length;
    at += length;
  }
  std::ranges::sort(out.targets);
  const auto again = std::ranges::unique(out.targets);
  out.targets.erase(again.begin(), again.end());
  return out;
}

}  // namespace espy::symbols

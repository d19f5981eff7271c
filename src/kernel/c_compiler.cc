#include "kernel/c_compiler.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/byte_reader.h"
#include "base/files.h"
#include "base/strings.h"

namespace espy::kernel {

namespace {

// What a run of the compiler may write and use: a header can be endless.
constexpr uint64_t kMaxFileBytes = uint64_t{256} << 20;
constexpr uint64_t kMaxMemoryBytes = uint64_t{4} << 30;

constexpr const char* kGcc = "gcc";
constexpr std::string_view kNumbersSection = ".espy_numbers";

// Returns the bytes of a section of an object file; "" if there is none.
std::string_view section_of(std::string_view elf, std::string_view name) {
  const auto header = load_struct<Elf64_Ehdr>(elf, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return {};
  const auto section = [&](uint64_t index) {
    return load_struct<Elf64_Shdr>(elf, header->e_shoff + index * header->e_shentsize);
  };
  const auto names = section(header->e_shstrndx);
  for (uint64_t i = 0; names && i < header->e_shnum; ++i) {
    const auto candidate = section(i);
    if (!candidate || names->sh_offset + candidate->sh_name >= elf.size()) return {};
    const std::string_view rest = elf.substr(names->sh_offset + candidate->sh_name);
    if (rest.substr(0, rest.find('\0')) != name) continue;
    return candidate->sh_offset <= elf.size() ? elf.substr(candidate->sh_offset, candidate->sh_size)
                                              : std::string_view();
  }
  return {};
}

// Returns the line of `path` that a message of the compiler names, such as "/tmp/x/headers.c:12:1: error: ..."; or 0.
uint32_t named_line(std::string_view line, std::string_view path) {
  const size_t at = line.find(path);
  if (at == std::string_view::npos || line.substr(at + path.size()).substr(0, 1) != ":") return 0;
  const std::string_view rest = line.substr(at + path.size() + 1);
  return static_cast<uint32_t>(parse_int(rest.substr(0, rest.find_first_not_of("0123456789"))).value_or(0));
}

std::vector<CProblem> read_problems(std::string_view messages, std::string_view path) {
  constexpr std::string_view kMissing = ": No such file or directory";
  std::vector<CProblem> out;
  uint32_t last_named = 0;
  for (std::string_view line : split(messages, '\n')) {
    if (const uint32_t named = named_line(line, path)) last_named = named;
    const size_t error = line.find("error: ");
    if (error == std::string_view::npos) continue;
    CProblem problem{.line = last_named, .message = std::string(line.substr(error + 7))};
    const std::string_view where = line.substr(0, line.find(": "));
    if (!where.starts_with(path)) problem.where = where;
    problem.is_missing_file = problem.message.ends_with(kMissing);
    out.push_back(std::move(problem));
  }
  return out;
}

}  // namespace

Result<CCompiler> CCompiler::open(std::vector<std::string> flags, uint64_t max_seconds) {
  const char* named = std::getenv("CC");
  // GNU C predefines `linux` and `unix` as 1, which would replace the names in headers.
  std::vector<std::string> all = {named != nullptr && *named != '\0' ? named : kGcc, "-std=gnu11", "-Ulinux", "-Uunix"};
  all.insert(all.end(), flags.begin(), flags.end());
  return CCompiler(std::move(all), TRY(ScratchDirectory::make()), max_seconds);
}

Status CCompiler::write_source(std::string_view text) const {
  const OwnedFd file(::open(source_path().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file.valid()) return fail_errno("cannot write " + source_path(), errno);
  return write_all(file.get(), text);
}

Result<ProcessOutput> CCompiler::run(const std::string& text, std::initializer_list<std::string> arguments) {
  TRY_STATUS(write_source(text));
  std::vector<std::string> argv = flags_;
  argv.insert(argv.end(), {"-w", "-fno-diagnostics-show-caret", "-fdiagnostics-color=never"});
  argv.insert(argv.end(), arguments);
  argv.push_back(source_path());
  const ProcessLimits limits{max_seconds_, kMaxFileBytes, kMaxMemoryBytes};
  auto ran = run_process(argv, scratch_.path(), limits);
  if (!ran && ran.error().code == ENOENT && argv[0] == kGcc) {
    flags_[0] = argv[0] = "cc";
    ran = run_process(argv, scratch_.path(), limits);
  }
  if (!ran && ran.error().code == ETIME)
    return fail(fmt::format("the C compiler was ended after max_compile_seconds = {}", max_seconds_), ETIME,
                "raise it, in the config block or as BPFTRACE_MAX_COMPILE_SECONDS");
  ProcessOutput output = TRY(std::move(ran));
  const std::string_view said = trim(output.err);
  last_words_ = said.substr(said.rfind('\n') + 1);
  problems_ = output.status == 0 ? std::vector<CProblem>() : read_problems(output.err, source_path());
  return output;
}

Result<std::optional<CCompiler::Macros>> CCompiler::macros(const std::string& text) {
  const ProcessOutput output = TRY(run(text, {"-E", "-dM"}));
  if (output.status != 0) return std::nullopt;
  constexpr std::string_view kDefine = "#define ";
  Macros out;
  for (std::string_view line : split(output.out, '\n')) {
    if (!line.starts_with(kDefine)) continue;
    line.remove_prefix(kDefine.size());
    const size_t end = std::min(line.find_first_of(" ("), line.size());
    out.emplace(line.substr(0, end), line.substr(end));
  }
  return out;
}

// Defines a variable for each name, on a line of its own. A name whose line has an error is not an integer constant,
// and is omitted from the next attempt. `| 0` rejects pointers and floating-point numbers.
Result<std::optional<CCompiler::Compiled>> CCompiler::compile(const std::string& text,
                                                              const std::vector<std::string>& names) {
  constexpr int kMaxAttempts = 4;  // an error can hide others
  const auto first_line = static_cast<uint32_t>(std::ranges::count(text, '\n') + 1);
  const std::string object = scratch_.path() + "/headers.o";
  std::set<uint32_t> refused;
  for (int attempt = 1;; ++attempt) {
    std::string body = text;
    for (uint32_t i = 0; i < names.size(); ++i) {
      const std::string value = refused.contains(first_line + i) ? "0" : fmt::format("({}) | 0", names[i]);
      body += fmt::format("const long long espy_number_{} __attribute__((section(\"{}\"))) = {};\n", i, kNumbersSection,
                          value);
    }
    const ProcessOutput output = TRY(
        run(body, {"-O0", "-fno-toplevel-reorder", "-gbtf", "-fno-eliminate-unused-debug-types", "-c", "-o", object}));
    if (output.status == 0) break;
    bool is_known = false;
    for (const std::string_view line : split(output.err, '\n')) {
      const uint32_t named = named_line(line, source_path());
      if (named >= first_line) is_known |= refused.insert(named).second;
    }
    if (!is_known || attempt == kMaxAttempts) return std::nullopt;
  }
  const std::string elf = TRY(read_file(object));
  Compiled out{.btf = std::string(section_of(elf, ".BTF"))};
  const std::string_view numbers = section_of(elf, kNumbersSection);
  for (uint32_t i = 0; i < names.size(); ++i) {
    const auto value = load_struct<int64_t>(numbers, uint64_t{i} * sizeof(int64_t));
    if (value && !refused.contains(first_line + i)) out.numbers.emplace(names[i], *value);
  }
  return out;
}

std::optional<std::vector<std::string>> kernel_header_flags(const Arch& arch) {
  namespace fs = std::filesystem;
  const auto from = [](const char* name) -> std::string {
    const char* text = std::getenv(name);
    return text != nullptr ? text : "";
  };
  std::string source = from("BPFTRACE_KERNEL_SOURCE"), build = from("BPFTRACE_KERNEL_BUILD");
  utsname system = {};
  std::error_code ignored;
  if (source.empty() && build.empty() && ::uname(&system) == 0) {
    const std::string installed = fmt::format("/lib/modules/{}", system.release);
    build = installed + "/build";
    source = fs::exists(installed + "/source", ignored) ? installed + "/source" : build;
  }
  if (source.empty()) source = build;
  if (build.empty()) build = source;
  if (!fs::exists(source + "/include", ignored)) return std::nullopt;
  const std::string arch_directory = fmt::format("/arch/{}/include", arch.source_directory);
  std::vector<std::string> flags = {"-nostdinc", "-D__KERNEL__", "-DKBUILD_MODNAME=\"espy\""};
  for (const std::string& directory :
       {source + arch_directory, build + arch_directory + "/generated", build + "/include", source + "/include",
        source + arch_directory + "/uapi", build + arch_directory + "/generated/uapi", source + "/include/uapi",
        build + "/include/generated/uapi"})
    flags.push_back("-I" + directory);
  if (fs::exists(source + "/include/linux/kconfig.h", ignored))
    flags.insert(flags.end(), {"-include", "linux/kconfig.h"});
  return flags;
}

}  // namespace espy::kernel

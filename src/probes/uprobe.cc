// uprobe, uretprobe: functions of programs and libraries.
//
// The problem: a user names a binary and a function, the kernel wants a file and an offset in it; wildcards stand for
// thousands of functions; a perf event each takes a system call to attach and a grace period to detach, a minute for a
// thousand.
//
// The trick: one uprobe_multi link (Linux 6.6) takes all offsets of a file, attaches in milliseconds, detaches in tens
// of them, and gives each offset a cookie: the probe's index. So all functions of an attach point share one program and
// one link, and a single function goes the same way. Where the kernel has no such link, or does not take its pid
// filter, a perf event each it is, and the closing is left to the helper process of `detach_all`.
//
// How a place is found: FUNCTION by the ELF symbol tables (symtab, then dynsym, then the separate debug file),
// FUNCTION+OFFSET behind it, 0xADDRESS as a virtual address of the file, cpp:"ns::f" by the demangled name, all
// overloads at once. Symbols give virtual addresses, the program headers make them file offsets. Several names of one
// address are one probe.
//
// A uprobe runs in the thread that hit it and may be preempted there: two threads can be in the same program on one
// CPU, so aggregations are atomic and scratch memory is taken by turns (lower/memory.cc).
//
// Left out: whether an offset is an instruction's boundary is checked by nobody here; the kernel refuses what it cannot
// single-step, not what is in the middle of an instruction. Local variables and arguments by name need DWARF.
#include <fmt/format.h>

#include <set>

#include "base/strings.h"
#include "load/machine.h"
#include "probes/all.h"
#include "probes/common.h"
#include "symbols/symbols.h"

namespace espy::probes {

namespace {

template <const spec::Provider& kRow>
class Binder {
 public:
  explicit Binder(spec::BindRequest& request) : request_(request) {}

  std::vector<spec::BoundProbe> bind() {
    const auto parts = request_.parts;
    if (parts.size() == 1 && request_.config.pid)
      return in_file(fmt::format("/proc/{}/exe", *request_.config.pid), parts);
    if (parts.size() < 2 || parts.size() > 3) return wrong_form(request_, kRow.form, "uprobe:/bin/bash:readline");
    const auto path = symbols::resolve_library(parts[0], request_.config.pid);
    if (!path) return environment_error(path.error());
    return in_file(*path, parts.subspan(1));
  }

 private:
  std::vector<spec::BoundProbe> environment_error(const Error& error) {
    request_.diagnostics.error("bad-target", request_.point.span, error.message, error.hint);
    return {};
  }

  std::vector<spec::BoundProbe> in_file(const std::string& path, std::span<const std::string> place) {
    const auto file = request_.symbols->elf_file(path);
    if (!file) return environment_error(file.error());
    path_ = path;
    const std::string& last = place.back();
    if (place.size() == 2 && place[0] == "cpp") {
      add_all((*file)->functions_by_demangled_name(last));
    } else if (const auto address = parse_int(last); address && *address >= 0) {
      add_address(**file, static_cast<uint64_t>(*address), last);
    } else if (has_wildcard(last)) {
      add_all((*file)->functions(last));
    } else {
      add_function(**file, last);
    }
    return std::move(out_);
  }

  void add_all(const std::vector<symbols::ElfSymbol>& found) {
    std::set<uint64_t> seen;
    for (const symbols::ElfSymbol& symbol : found) {
      if (symbol.is_ifunc || !seen.insert(symbol.file_offset).second) continue;
      add(symbol.name, symbol.file_offset, 0);
      out_.back().probe.is_optional = true;
    }
  }

  void add_function(const symbols::ElfFile& file, const std::string& text) {
    const Place place = split_place(text);
    const auto symbol = file.find_function(place.function);
    if (!symbol) return suggest(file, place.function);
    if (&kRow == &kUretprobe && place.offset > 0) {
      request_.diagnostics.error("offset-on-return", request_.point.span,
                                 "a uretprobe fires when a function returns: it takes no offset");
      return;
    }
    if (place.offset > 0 && place.offset >= symbol->size) {
      request_.diagnostics.error(
          "offset-outside", request_.point.span,
          fmt::format("`{}` is {} bytes long: offset {} is outside it", place.function, symbol->size, place.offset));
      return;
    }
    add(place.function, symbol->file_offset, place.offset);
  }

  void add_address(const symbols::ElfFile& file, uint64_t address, const std::string& text) {
    const auto offset = file.offset_of_address(address);
    if (!offset) {
      request_.diagnostics.error("address-outside", request_.point.span,
                                 fmt::format("{} has no code at {}", path_, text));
      return;
    }
    add(text, *offset, 0);
  }

  void suggest(const symbols::ElfFile& file, const std::string& name) {
    const std::vector<symbols::ElfSymbol> all = file.functions();
    std::vector<std::string_view> names;
    for (const symbols::ElfSymbol& symbol : all) names.push_back(symbol.name);
    const std::string near = nearest(name, names);
    if (near.empty()) return;  // the checker says that nothing matches
    request_.diagnostics.error("no-such-function", request_.point.span,
                               fmt::format("{} has no function `{}`", path_, name),
                               fmt::format("did you mean `{}`?", near));
  }

  void add(const std::string& function, uint64_t file_offset, uint64_t offset) {
    spec::BoundProbe bound;
    bound.probe.provider = kRow.name;
    bound.probe.target = path_;
    bound.probe.function = function;
    bound.probe.address = file_offset + offset;
    bound.probe.offset = offset;
    bound.probe.name = fmt::format("{}:{}:{}", kRow.name, path_, function);
    if (offset > 0) bound.probe.name += fmt::format("+{}", offset);
    bound.probe.span = request_.point.span;
    const bool is_multi = request_.kernel.has(kernel::Feature::kUprobeMulti);
    bound.share = is_multi ? "multi/" + path_ : "perf/" + bound.probe.name;
    out_.push_back(std::move(bound));
  }

  spec::BindRequest& request_;
  std::string path_;
  std::vector<spec::BoundProbe> out_;
};

template <const spec::Provider& kRow>
std::vector<spec::BoundProbe> bind(spec::BindRequest& request) {
  return Binder<kRow>(request).bind();
}

template <bool kIsReturn>
spec::ProbeContext context(spec::ContextRequest& request) {
  spec::ProbeContext out = uprobe_context(request, kIsReturn);
  add_frame(out, request.kernel.arch(), kIsReturn);
  return out;
}

template <bool kIsReturn>
Status attach(spec::AttachRequest& request) {
  return attach_uprobes(request, kIsReturn);
}

template <const spec::Provider& kRow>
std::vector<spec::ListedProbe> list(spec::ListRequest& request) {
  if (request.parts.empty() && !request.config.pid) return {};
  const std::string target =
      request.parts.empty() ? fmt::format("/proc/{}/exe", *request.config.pid) : request.parts[0];
  const auto path = symbols::resolve_library(target, request.config.pid);
  const auto file = path ? request.symbols->elf_file(*path) : fail("");
  if (!file) return {};
  std::vector<spec::ListedProbe> out;
  for (const symbols::ElfSymbol& symbol : (*file)->functions(request.parts.size() < 2 ? "*" : request.parts.back()))
    out.push_back({fmt::format("{}:{}:{}", kRow.name, *path, symbol.name), {}});
  return out;
}

}  // namespace

const spec::Provider kUprobe = {
    .name = "uprobe",
    .aliases = {"u"},
    .doc = "Fires when a function of a program or library is entered, or at an instruction inside it.",
    .form = "uprobe:BINARY:FUNCTION, uprobe:BINARY:FUNCTION+OFFSET or uprobe:BINARY:0xADDRESS",
    .bind = bind<kUprobe>,
    .context = context<false>,
    .attach = attach<false>,
    .list = list<kUprobe>,
    .needs_target_to_list = true,
    .example = "uprobe:libc:getaddrinfo { printf(\"%s asks for %s\\n\", comm, str(arg0)); }"};

const spec::Provider kUretprobe = {.name = "uretprobe",
                                   .aliases = {"ur"},
                                   .doc = "Fires when a function of a program or library returns.",
                                   .form = "uretprobe:BINARY:FUNCTION",
                                   .bind = bind<kUretprobe>,
                                   .context = context<true>,
                                   .attach = attach<true>,
                                   .list = list<kUretprobe>,
                                   .needs_target_to_list = true,
                                   .example = "uretprobe:/bin/bash:readline { printf(\"%s\\n\", str(retval)); }"};

}  // namespace espy::probes

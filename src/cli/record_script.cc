#include "cli/record_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "cli/attach_text.h"
#include "kernel/tracefs.h"

namespace espy::cli {

namespace {

using recording::FieldKind;

// The names of the probes that a target stands for.
Result<std::vector<std::string>> expand(const std::string& target, Environment& e) {
  const std::vector<std::string> parts = split_attach_point(target);
  const spec::Provider* provider = e.registry.find_provider(parts[0]);
  const spec::Provider* recorded = e.registry.find_provider("tracepoint");
  if (provider != recorded)
    return fail(fmt::format("`{}` cannot be recorded", target), 0,
                "tracepoints can: espy record tracepoint:CATEGORY:EVENT; both parts may have wildcards");
  const std::vector<std::string> patterns(parts.begin() + 1, parts.end());
  spec::ListRequest request{patterns, false, *e.kernel, e.types, &e.symbols, e.config};
  std::vector<std::string> out;
  for (spec::ListedProbe& probe : provider->list(request)) out.push_back(std::move(probe.name));
  if (out.empty())
    return fail(fmt::format("no probe matches `{}`", target), 0,
                can_read_tracefs() ? "espy -l lists probes" : "tracefs cannot be read");
  return out;
}

class ScriptWriter {
 public:
  ScriptWriter(Environment& environment, uint32_t max_text_bytes) : e_(environment) {
    out_.text = fmt::format("config = {{\n  max_strlen = {};\n  print_maps_on_exit = false;\n", max_text_bytes);
  }

  Status add(const std::string& name) {
    if (!names_.insert(name).second) return {};
    const std::vector<std::string> parts = split_attach_point(name);
    const kernel::Tracepoint tracepoint = TRY(e_.kernel->tracepoint(e_.types, parts[1], parts[2]));
    recording::Probe probe{name, {}};
    std::string format, values;
    for (const kernel::TracepointField& field : tracepoint.fields) add_field(field, probe, format, values);
    actions_ += fmt::format(
        "\n{} {{\n  printf(\"{} %d %d %d %d %d %d %d %s{}\", nsecs, cpu, pid, tid, uid, gid, cgroup, comm{});\n}}\n",
        name, out_.probes.size(), format, values);
    out_.probes.push_back(std::move(probe));
    out_.tracepoints.push_back({parts[1], parts[2], TRY(format_of(parts[1], parts[2]))});
    return {};
  }

  RecordScript finish() {
    // Each action may be a program of its own.
    out_.text += fmt::format("  max_probes = {0};\n  max_bpf_progs = {0};\n}}\n{1}",
                             std::max<size_t>(out_.probes.size(), 1024), actions_);
    return std::move(out_);
  }

 private:
  static void append(recording::Probe& probe, const std::string& name, FieldKind kind, const std::string& value,
                     std::string& format, std::string& values) {
    probe.fields.push_back({name, kind});
    format += kind == FieldKind::kText ? " %s" : " %d";
    values += ", " + value;
  }

  // Arrays of numbers and structs are left out.
  void add_field(const kernel::TracepointField& field, recording::Probe& probe, std::string& format,
                 std::string& values) {
    const types::Type& type = e_.types[field.type];
    const std::string value = "args." + field.name;
    if (type.kind == types::Kind::kString) {
      append(probe, field.name, FieldKind::kText, value, format, values);
      return;
    }
    const bool is_number = type.kind == types::Kind::kInt || type.kind == types::Kind::kEnum ||
                           type.kind == types::Kind::kBool || type.kind == types::Kind::kPointer;
    if (!is_number || field.is_data_loc || field.name == "__syscall_nr") return;
    append(probe, field.name, FieldKind::kNumber, fmt::format("({}){}", type.is_signed ? "int64" : "uint64", value),
           format, values);
    if (is_text_pointer(type, field.c_type))
      append(probe, field.name, FieldKind::kText, fmt::format("str({})", value), format, values);
  }

  // What `char *` leads to may be written by the call, and not be there yet.
  bool is_text_pointer(const types::Type& type, std::string_view c_type) const {
    if (type.kind != types::Kind::kPointer || c_type.find("const") == c_type.npos) return false;
    const types::Type& element = e_.types[type.element];
    return element.kind == types::Kind::kInt && element.size_bytes == 1 && element.char_like;
  }

  Result<std::string> format_of(const std::string& category, const std::string& event) const {
    return kernel::read_tracepoint_format(tracing_, category, event);
  }

  Environment& e_;
  std::string tracing_ = kernel::find_tracing("");
  RecordScript out_;
  std::string actions_;
  std::set<std::string> names_;
};

}  // namespace

Result<RecordScript> write_record_script(std::span<const std::string> targets, uint32_t max_text_bytes,
                                         Environment& environment) {
  ScriptWriter writer(environment, max_text_bytes);
  for (const std::string& target : targets)
    for (const std::string& name : TRY(expand(target, environment))) TRY_STATUS(writer.add(name));
  return writer.finish();
}

}  // namespace espy::cli

#include "runtime/handler_context.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_reader.h"
#include "runtime/child.h"

namespace espy::runtime {

namespace {

// The names in a list that spaces separate; a backslash makes the character behind it a part of the name.
std::vector<std::string> names_in(std::string_view list) {
  std::vector<std::string> out;
  bool is_inside = false;
  for (size_t i = 0; i < list.size(); ++i) {
    const bool is_space = list[i] == ' ';
    if (!is_space && !is_inside) out.emplace_back();
    is_inside = !is_space;
    if (list[i] == '\\' && i + 1 < list.size()) ++i;
    if (!is_space) out.back() += list[i];
  }
  return out;
}

output::SpanFilter span_filter(const spec::Config& config) {
  output::SpanFilter filter{
      static_cast<uint32_t>(config.spans.depth), config.spans.count, config.spans.slower_than_ns, {}};
  filter.order = names_in(config.spans.order);
  return filter;
}

// By ProbeId, a number from 1 on for each function, the same at its entry and at its return; 0 for probes of none.
std::vector<uint32_t> number_functions(const program::Program& program) {
  std::map<std::pair<std::string_view, std::string_view>, uint32_t> numbers;
  std::vector<uint32_t> out;
  for (const program::Probe& probe : program.probes) {
    const auto next = static_cast<uint32_t>(numbers.size() + 1);
    out.push_back(probe.function.empty() ? 0 : numbers.try_emplace({probe.target, probe.function}, next).first->second);
  }
  return out;
}

}  // namespace

SpanCollector::SpanCollector(const program::Program& program, const spec::Config& config, Show show)
    : program_(program),
      trees_(span_filter(config), program.page_size_bytes, std::move(show)),
      function_numbers_(number_functions(program)) {}

void SpanCollector::add(output::SpanEvent event, size_t probe_index, output::SpanPlace place) {
  if (probe_index < function_numbers_.size()) {
    place.function = function_numbers_[probe_index];
    const program::Probe& probe = program_.probes[program::ProbeId{static_cast<uint32_t>(probe_index)}];
    place.is_entry &= probe.offset == 0;  // a probe inside the function is not at its entry
    // The name of an exit without an enter; otherwise that of the enter replaces it.
    if (event.kind == output::SpanKind::kExit) event.name = probe.function.empty() ? probe.name : probe.function;
  }
  if (!place.is_entry && !place.is_return) place.frame = 0;
  trees_.add(std::move(event), place);
}

HandlerContext::HandlerContext(const RunParts& parts, const Services& services, StackDetail detail)
    : machine_(parts.machine),
      program_(parts.program),
      sources_(parts.sources),
      config_(parts.config),
      symbols_(parts.symbols),
      unwind_tables_(services.unwind_tables),
      control_(services.control),
      sink_(&parts.sink),
      decoder_(machine_, program_, parts.types, symbols_, services.unwound_stacks, config_, detail),
      spans_(program_, config_, [this](const output::SpanEvent& event) { sink_->span(event); }),
      maps_(machine_, program_, decoder_.context()) {}

void HandlerContext::add_span(output::SpanEvent event, size_t probe_index, output::SpanPlace place) {
  spans_.add(std::move(event), probe_index, place);
  if (wants_spans()) return;
  request_exit(EXIT_SUCCESS);
  control_.stop_programs();  // at once: a batch may hold many more records
}

Result<output::MapView> HandlerContext::read_map(program::ScriptMapId map, const MapReader::Wanted& wanted) {
  auto view = maps_.read(map, wanted);
  if (view) view->seen_share = seen_share_(map);
  return view;
}

void HandlerContext::print_map(program::ScriptMapId map, uint64_t top, uint64_t divisor, uint64_t until_ns,
                               bool is_by_key) {
  auto view = read_map(map, {.until_ns = until_ns, .is_compact = !is_by_key});
  if (!view) return report(view.error());
  if (is_by_key)
    std::ranges::stable_sort(view->entries, [](const output::MapEntry& a, const output::MapEntry& b) {
      return output::compare_keys(a.key, b.key) < 0;
    });
  view->top = top;
  view->divisor = divisor;
  sink_->map(*view);
}

// Of a map of aggregations: a histogram with its name, other values alone.
void HandlerContext::print_element(program::ScriptMapId map, std::span<const std::byte> key) {
  output::MapView view = maps_.read_element(map, key);
  view.seen_share = seen_share_(map);
  if (!view.entries.empty() && std::holds_alternative<output::StatsValue>(view.entries[0].value.node))
    sink_->value(view.entries[0].value);
  else
    sink_->map(view);
}

void HandlerContext::clear_map(program::ScriptMapId map) {
  if (const Status done = maps_.clear(map); !done) report(done.error());
  sink_->map_cleared(program_.script_maps[map].name);
}

void HandlerContext::zero_map(program::ScriptMapId map) {
  if (const Status done = maps_.zero(map); !done) report(done.error());
  sink_->map_cleared(program_.script_maps[map].name);
}

void HandlerContext::run_command(const std::string& command) {
  before_command_();
  has_run_command_ = true;
  const auto show = [this](std::string_view text) { sink_->text("syscall", text); };
  const ShellLimits limits{config_.limits.max_system_seconds, config_.limits.max_system_bytes, ends_late_commands_};
  const auto result = run_shell_command(command, limits, show);
  if (!result) return report(result.error());
  cut_commands_ += result->was_cut ? 1 : 0;
  if (result->status) return;
  has_left_command_ |= result->status.error().code == ETIMEDOUT;
  report(result->status.error());
}

std::span<const std::byte> EventRecord::tail(size_t index) const {
  const program::EventField& field = schema_.fields[index];
  const uint64_t offset = load_le(bytes_, field.offset_bytes, 4), size = load_le(bytes_, field.offset_bytes + 4, 4);
  const bool is_within = field.is_in_tail && offset <= bytes_.size() && size <= bytes_.size() - offset;
  return is_within ? bytes_.subspan(offset, size) : std::span<const std::byte>();
}

void HandlerContext::report(const Error& error) { sink_->message("runtime_error", error.message, "", 0, 0, 0); }

}  // namespace espy::runtime

#include "runtime/span_collector.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
      static_cast<uint32_t>(config.span_depth), config.span_count, config.span_slower_than_ns, {}};
  filter.order = names_in(config.span_order);
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

}  // namespace espy::runtime

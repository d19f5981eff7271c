#include "runtime/losses.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "base/byte_reader.h"
#include "base/end_request.h"
#include "program/layout.h"
#include "runtime/resolver.h"

namespace espy::runtime {

namespace {

using program::LossKind;
using program::ProbeId;
using program::ProgramId;

uint64_t& of_kind(output::Losses& losses, LossKind kind) { return losses[static_cast<size_t>(kind)]; }

std::optional<output::TreeCounts> count_trees(load::Machine& machine, const program::Program& program) {
  for (const program::MapId id : program.maps.ids()) {
    if (program.maps[id].name != program::kSpanOwnersMap) continue;
    const auto words = machine.memory(id);
    return output::TreeCounts{load_le(words, program::kTreesBegun), load_le(words, program::kTreesShown),
                              load_le(words, program::kTreesDropped), load_le(words, program::kTreesLeft)};
  }
  return std::nullopt;
}

uint64_t of_program(const std::map<ProgramId, uint64_t>& counts, ProgramId id) {
  const auto found = counts.find(id);
  return found == counts.end() ? 0 : found->second;
}

uint64_t sum_of(const std::map<ProgramId, uint64_t>& counts) {
  uint64_t sum = 0;
  for (const auto& [program, count] : counts) sum += count;
  return sum;
}

uint64_t unhandled_records(const UserLosses& losses) {
  return std::accumulate(losses.unhandled_by_program.begin(), losses.unhandled_by_program.end(), uint64_t{0});
}

// The report of a program, without its probes.
output::ActionReport report_of(load::Machine& machine, const program::Program& program,
                               std::span<const std::byte> globals, const UserLosses& losses, ProgramId id) {
  output::ActionReport report;
  for (const program::LossCounter& counter : program.loss_counters)
    if (counter.program == id) of_kind(report.losses, counter.kind) += load_le(globals, counter.offset_bytes);
  const auto skipped = machine.skipped_runs(id);
  (skipped && skipped->are_calls ? report.skipped_calls : report.skipped) = skipped ? skipped->count : 0;
  of_kind(report.losses, LossKind::kMissed) += report.skipped + report.skipped_calls;
  report.is_missed_known = skipped.has_value();
  if (losses.over_budget) {
    const SkippedEvents over_budget = losses.over_budget(id);
    of_kind(report.losses, LossKind::kSlice) = over_budget.sum();
    report.is_slice_estimated = over_budget.estimated > 0;
  }
  of_kind(report.losses, LossKind::kRecord) +=
      of_program(losses.dropped_by_program, id) + of_program(losses.unfinished_by_program, id) +
      (id.index < losses.unhandled_by_program.size() ? losses.unhandled_by_program[id.index] : 0);
  of_kind(report.losses, LossKind::kString) += of_program(losses.truncated_by_program, id);
  return report;
}

void report_count(output::Sink& sink, std::string_view what, uint64_t count, const source::Extent& at = {}) {
  if (count == 0) return;
  sink.message("runtime_error", output::counted(count, what), at.source, at.line, at.begin_column, at.end_column);
}

// A sentence for each kind of loss, and for each place where it is shown, with the sum over programs.
void report_counters(const program::Program& program, std::span<const std::byte> globals,
                     const source::Sources& sources, output::Sink& sink) {
  std::vector<std::pair<const program::LossCounter*, uint64_t>> sentences;
  for (const program::LossCounter& counter : program.loss_counters) {
    if (counter.what.empty()) continue;
    const uint64_t count = load_le(globals, counter.offset_bytes);
    const auto same = std::ranges::find_if(sentences, [&](const auto& sentence) {
      return sentence.first->what == counter.what && sentence.first->span == counter.span;
    });
    if (same == sentences.end())
      sentences.emplace_back(&counter, count);
    else
      same->second += count;
  }
  for (const auto& [counter, count] : sentences)
    report_count(sink, counter->what, count, counter->span.valid() ? sources.extent(counter->span) : source::Extent{});
}

// Keys that the kernel evicted. It does so before the map is full: each CPU keeps up to 128 free elements for itself,
// and a value that replaces another one takes a new element first (kernel/bpf/bpf_lru_list.c).
std::vector<std::string> evicted_keys(load::Machine& machine, const program::Program& program,
                                      std::span<const std::byte> globals) {
  std::vector<std::string> out;
  for (const program::ScriptMap& map : program.script_maps) {
    const uint64_t added = map.keys_offset ? load_le(globals, map.keys_offset) : 0;
    if (added == 0) continue;
    uint64_t present = 0;
    const auto count = [&](std::span<const std::byte>, std::span<const std::byte>) { ++present; };
    if (!machine.for_each(map.map, count) || added <= present) continue;
    out.push_back(output::counted(
        added - present, fmt::format("key(s) evicted from {}, which has room for {} (declare `let {} = lruhash(N);`)",
                                     map.name, program.maps[map.map].max_entries, map.name)));
  }
  return out;
}

void report_over_budget(const output::LossReport& loss_report, output::Sink& sink) {
  const uint64_t count = loss_report.totals[static_cast<size_t>(LossKind::kSlice)];
  if (count == 0) return;
  const bool is_estimated = std::ranges::any_of(loss_report.actions, &output::ActionReport::is_slice_estimated);
  sink.message("runtime_error",
               (is_estimated ? "about " : "") +
                   output::counted(count, "event(s) skipped while probes were off to keep the budget"),
               "", 0, 0, 0);
}

}  // namespace

output::LossReport make_loss_report(load::Machine& machine, const program::Program& program, const UserLosses& losses) {
  const auto globals = machine.memory(program.globals);
  output::LossReport loss_report;
  for (const ProgramId id : program.programs.ids())
    loss_report.actions.push_back(report_of(machine, program, globals, losses, id));
  // Probes of one name and program, such as the locations of a USDT probe, share a row.
  std::map<std::pair<ProgramId, std::string_view>, size_t> rows;
  for (const ProbeId probe : program.probes.ids()) {
    const program::Probe& each = program.probes[probe];
    if (!each.program.valid()) continue;
    std::vector<output::ProbeHits>& report = loss_report.actions[each.program.index].probes;
    const auto [row, is_new] = rows.try_emplace({each.program, each.name}, report.size());
    if (is_new) report.push_back({each.name, 0});
    report[row->second].hits += hits_of(machine, program, probe);
  }
  for (const output::ActionReport& action : loss_report.actions)
    for (size_t kind = 0; kind < output::kLossKinds; ++kind) loss_report.totals[kind] += action.losses[kind];
  // Programs without probes are internal.
  std::erase_if(loss_report.actions, [](const output::ActionReport& action) { return action.probes.empty(); });
  of_kind(loss_report.totals, LossKind::kRecord) =
      losses.lost_records + losses.unfinished_records + sum_of(losses.unfinished_by_program) +
      sum_of(losses.dropped_by_program) + unhandled_records(losses) + losses.gaps.lost_records;
  loss_report.gaps = losses.gaps.sentences;
  loss_report.file_changes = losses.file_changes;
  loss_report.others = losses.others;
  std::ranges::move(evicted_keys(machine, program, globals), std::back_inserter(loss_report.others));
  if (const std::vector<uint32_t> cpus = machine.unwatched_cpus(); !cpus.empty())
    loss_report.others.push_back(
        fmt::format("CPU {} went offline or came online during the run: profile and other per-CPU probes missed "
                    "events there",
                    fmt::join(cpus, ", ")));
  if (const double step = wall_clock_step_seconds(); step != 0)
    loss_report.others.push_back(fmt::format(
        "the clock was set by {:.3f} s during the run: dates and times may be from the old or the new clock", step));
  loss_report.uncertain_addresses = losses.uncertain_addresses;
  // The reports of programs have the strings of records, but not the strings of maps.
  of_kind(loss_report.totals, LossKind::kString) +=
      losses.truncated_strings.count - sum_of(losses.truncated_by_program);
  loss_report.trees = count_trees(machine, program);
  for (const load::Machine::SkippedProbe& each : machine.skipped_probes())
    loss_report.skipped_probes.push_back({each.name, each.reason});
  return loss_report;
}

void report_losses(load::Machine& machine, const program::Program& program, const UserLosses& losses,
                   const output::LossReport& loss_report, const source::Sources& sources, const spec::Config& config,
                   output::Sink& sink) {
  report_counters(program, machine.memory(program.globals), sources, sink);
  for (const std::string& other : loss_report.others) sink.message("runtime_error", other, "", 0, 0, 0);
  // The trailer shows a cut string where it is printed.
  if (config.print.trunc_trailer.empty())
    report_count(
        sink,
        fmt::format("string(s) truncated at max_strlen = {} (raise max_strlen)", losses.truncated_strings.limit_bytes),
        losses.truncated_strings.count);
  const auto& skipped_probes = machine.skipped_probes();
  report_count(
      sink, "matching place(s) skipped, which cannot be probed",
      static_cast<uint64_t>(std::ranges::count(skipped_probes, false, &load::Machine::SkippedProbe::is_named)));
  uint64_t skipped = 0, skipped_calls = 0;
  for (const output::ActionReport& action : loss_report.actions) {
    skipped += action.skipped;
    skipped_calls += action.skipped_calls;
  }
  report_count(sink,
               "event(s) skipped by the kernel: the probe fired within a probe on the same CPU, or while one was "
               "preempted there",
               skipped);
  report_count(sink,
               "call(s) skipped by the kernel: too many were in progress, or they came within a probe on the same CPU "
               "(fexit follows all)",
               skipped_calls);
  uint64_t unfollowed = 0;
  for (const auto& [tracepoint, id] : program.following.programs)
    if (const auto runs = machine.skipped_runs(id)) unfollowed += runs->count;
  report_count(sink, "process event(s) skipped by the kernel: -p and --follow may miss processes", unfollowed);
  report_over_budget(loss_report, sink);
  report_count(sink, "record(s) dropped: a signal ended the run before they were printed",
               sum_of(losses.dropped_by_program));
  report_count(sink, "action(s) not in the output: they still waited for memory of their process at the end",
               sum_of(losses.unfinished_by_program));
  report_count(sink, "unfinished record(s) lost at the end, with all later records of the CPU",
               losses.unfinished_records);
  report_count(sink, "record(s) dropped: memory had run out", unhandled_records(losses));
  if (losses.lost_records > 0) sink.total_lost(losses.lost_records);
}

namespace {

uint64_t count_of(std::span<const std::byte> globals, const program::HitCounters& counters, program::ProbeId probe,
                  uint32_t cpu) {
  if (counters.stride_bytes == 0) return 0;
  return load_le(globals, counters.offset_bytes + uint64_t{cpu} * counters.stride_bytes + probe.index * 8);
}

}  // namespace

uint64_t hits_of(load::Machine& machine, const program::Program& program, program::ProbeId probe) {
  uint64_t sum = 0;
  const auto globals = machine.memory(program.globals);
  for (uint32_t cpu = 0; cpu < program.cpu_count; ++cpu) sum += count_of(globals, program.hits, probe, cpu);
  return sum;
}

uint64_t count_on_cpu(std::span<const std::byte> globals, const program::Program& program,
                      const program::HitCounters& counters, program::ProgramId id, uint32_t cpu) {
  uint64_t sum = 0;
  for (const program::ProbeId probe : program.probes.ids())
    if (program.probes[probe].program == id) sum += count_of(globals, counters, probe, cpu);
  return sum;
}

FirstLosses::FirstLosses(load::Machine& machine, const program::Program& program, output::Sink& sink)
    : machine_(machine), program_(program), sink_(sink) {
  for (const program::LossCounter& counter : program.loss_counters) {
    const bool is_full = counter.kind == program::LossKind::kUpdate || counter.kind == program::LossKind::kStack;
    if (!is_full || counter.what.empty()) continue;
    auto same = std::ranges::find(waiting_, counter.what, &Loss::what);
    if (same == waiting_.end()) same = waiting_.insert(same, {counter.what, {}});
    same->offsets_bytes.push_back(counter.offset_bytes);
  }
}

void FirstLosses::look() {
  if (waiting_.empty() || monotonic_ns() < next_look_ns_) return;
  next_look_ns_ = monotonic_ns() + uint64_t{kIntervalMs} * 1'000'000;
  const auto globals = machine_.memory(program_.globals);
  std::erase_if(waiting_, [&](const Loss& loss) {
    uint64_t count = 0;
    for (const uint32_t offset : loss.offsets_bytes) count += load_le(globals, offset);
    if (count == 0) return false;
    std::string text = output::counted(count, loss.what);
    text.insert(std::min(text.find(':'), text.size()), " so far");
    sink_.message("runtime_error", text, "", 0, 0, 0);
    return true;
  });
}

}  // namespace espy::runtime

#include "runtime/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/byte_reader.h"

namespace espy::runtime {

namespace {

using program::LossKind;
using program::ProbeId;
using program::ProgramId;

uint64_t& of_kind(output::Losses& losses, LossKind kind) { return losses[static_cast<size_t>(kind)]; }

uint64_t hits_of(const program::Program& program, std::span<const std::byte> globals, ProbeId probe) {
  uint64_t sum = 0;
  if (program.hits.stride_bytes == 0) return sum;
  for (uint32_t cpu = 0; cpu < program.cpu_count; ++cpu)
    sum += load_le(globals, program.hits.offset_bytes + uint64_t{cpu} * program.hits.stride_bytes + probe.index * 8);
  return sum;
}

// All but the probes.
output::ActionAccount account_of(load::Machine& machine, const program::Program& program,
                                 std::span<const std::byte> globals, const SeenLosses& seen, ProgramId id) {
  output::ActionAccount account;
  for (const program::LossCounter& counter : program.loss_counters)
    if (counter.program == id) of_kind(account.losses, counter.kind) += load_le(globals, counter.offset_bytes);
  const auto skipped = machine.skipped_runs(id);
  account.skipped = skipped.value_or(0);
  of_kind(account.losses, LossKind::kMissed) += account.skipped;
  account.is_missed_known = skipped.has_value();
  if (const auto cut = seen.cut_strings_by.find(id); cut != seen.cut_strings_by.end())
    of_kind(account.losses, LossKind::kString) = cut->second;
  return account;
}

void say(output::Sink& sink, std::string_view what, uint64_t count) {
  if (count > 0) sink.message("runtime_error", fmt::format("{}: {}", what, count), "", 0, 0, 0);
}

}  // namespace

output::Ledger make_ledger(load::Machine& machine, const program::Program& program, const SeenLosses& seen) {
  const auto globals = machine.memory(program.globals);
  output::Ledger ledger;
  for (const ProgramId id : program.programs.ids())
    ledger.actions.push_back(account_of(machine, program, globals, seen, id));
  // Probes of one name that share a program, as the places of a USDT probe, are one.
  std::map<std::pair<ProgramId, std::string_view>, size_t> rows;
  for (const ProbeId probe : program.probes.ids()) {
    const program::Probe& fired = program.probes[probe];
    if (!fired.program.valid()) continue;
    std::vector<output::ProbeAccount>& accounts = ledger.actions[fired.program.index].probes;
    const auto [row, is_new] = rows.try_emplace({fired.program, fired.name}, accounts.size());
    if (is_new) accounts.push_back({fired.name, 0});
    accounts[row->second].fired += hits_of(program, globals, probe);
  }
  for (const output::ActionAccount& action : ledger.actions)
    for (size_t kind = 0; kind < output::kLossKinds; ++kind) ledger.totals[kind] += action.losses[kind];
  // Programs without probes are espy's own.
  std::erase_if(ledger.actions, [](const output::ActionAccount& action) { return action.probes.empty(); });
  of_kind(ledger.totals, LossKind::kRecord) = seen.lost_records;
  of_kind(ledger.totals, LossKind::kString) = seen.cut_strings.count;
  for (const load::Machine::LeftOut& each : machine.left_out()) ledger.left_out.push_back({each.name, each.reason});
  return ledger;
}

void show_losses(load::Machine& machine, const program::Program& program, const SeenLosses& seen,
                 const output::Ledger& ledger, output::Sink& sink) {
  const auto globals = machine.memory(program.globals);
  std::vector<std::pair<std::string_view, uint64_t>> sentences;
  for (const program::LossCounter& counter : program.loss_counters) {
    if (counter.what.empty()) continue;
    const uint64_t count = load_le(globals, counter.offset_bytes);
    const auto same = std::ranges::find(sentences, counter.what, &decltype(sentences)::value_type::first);
    if (same == sentences.end())
      sentences.emplace_back(counter.what, count);
    else
      same->second += count;
  }
  for (const auto& [what, count] : sentences) say(sink, what, count);
  say(sink,
      fmt::format("strings that did not fit max_strlen = {} were shown cut (raise it)", seen.cut_strings.limit_bytes),
      seen.cut_strings.count);
  say(sink, "functions that a wildcard matches and the kernel lets nobody probe were left out", ledger.left_out.size());
  uint64_t skipped = 0;
  for (const output::ActionAccount& action : ledger.actions) skipped += action.skipped;
  say(sink, "probes that fired within a probe on the same CPU were skipped by the kernel", skipped);
  if (seen.lost_records > 0) sink.total_lost(seen.lost_records);
}

}  // namespace espy::runtime

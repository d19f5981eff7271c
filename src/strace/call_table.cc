#include "strace/call_table.h"

#include <sys/epoll.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "base/fatal.h"
#include "base/strings.h"
#include "kernel/abi_constants.h"

namespace espy::strace {

namespace {

constexpr KindRow kKindRows[] = {
#define KIND(name, capture, number) {#name, Capture::capture, number},
#include "strace/kinds.def"
#undef KIND
};

struct CallRow {
  std::string_view name, arguments;
};
constexpr CallRow kCallRows[] = {
#define CALL(name, arguments) {#name, arguments},
#include "strace/calls.def"
#undef CALL
};

struct SetRow {
  std::string_view name, unknown, names;
};
constexpr SetRow kSetRows[] = {
#define SET(name, unknown, names) {#name, unknown, names},
#include "strace/constants.def"
#undef SET
};

constexpr std::pair<std::string_view, ResultKind> kResults[] = {
    {"addr", ResultKind::kAddress},  {"fd", ResultKind::kNumber},     {"fcntl", ResultKind::kFcntl},
    {"hex", ResultKind::kHex},       {"mode", ResultKind::kMode},     {"none", ResultKind::kNone},
    {"off", ResultKind::kNumber},    {"pid", ResultKind::kNumber},    {"poll", ResultKind::kPoll},
    {"select", ResultKind::kSelect}, {"signal", ResultKind::kSignal}, {"time", ResultKind::kNumber},
    {"uid", ResultKind::kUnsigned},  {"ulong", ResultKind::kUnsigned}};

Argument argument_of(std::string_view word) {
  Argument out;
  out.is_filled = word.starts_with('>');
  if (out.is_filled) word.remove_prefix(1);
  const std::vector<std::string_view> parts = split(word, ':');
  const auto* row = std::ranges::find(kKindRows, parts[0], &KindRow::name);
  CHECK(row != std::end(kKindRows));
  out.kind = static_cast<Kind>(row - kKindRows);
  if (parts.size() < 2) return out;
  if (parts[1] == "result")
    out.by = kByResult;
  else if (parts[1][0] >= '0' && parts[1][0] <= '5')
    out.by = static_cast<int8_t>(parts[1][0] - '0');
  else
    out.set = parts[1];
  return out;
}

Call call_of(const CallRow& row) {
  Call out;
  out.name = row.name;
  for (const std::string_view word : split(row.arguments, ' ')) {
    if (word.empty()) continue;
    if (word[0] != '=') {
      out.arguments.push_back(argument_of(word));
      continue;
    }
    const auto* result = std::ranges::find(kResults, word.substr(1), &std::pair<std::string_view, ResultKind>::first);
    CHECK(result != std::end(kResults));
    out.result = result->second;
    out.returns_fd = word == "=fd";
  }
  return out;
}

}  // namespace

const KindRow& row_of(Kind kind) { return kKindRows[static_cast<size_t>(kind)]; }

std::string_view ConstantSet::name_of(uint64_t value) const {
  const auto found = std::ranges::find(names, value, &std::pair<std::string_view, uint64_t>::second);
  return found == names.end() ? std::string_view() : found->first;
}

CallTable::CallTable(const kernel::Arch& arch) : arch_(arch) {
  calls_.reserve(std::size(kCallRows));
  for (const CallRow& row : kCallRows) calls_.push_back(call_of(row));
  for (const kernel::Syscall& each : arch.syscalls) {
    if (each.number >= kNumbers) continue;
    names_[each.number] = each.name;
    const auto found = std::ranges::lower_bound(calls_, each.name, {}, &Call::name);
    if (found != calls_.end() && found->name == each.name) by_number_[each.number] = &*found;
  }
}

const ConstantSet& CallTable::set(std::string_view name) const {
  const auto known = std::ranges::find(sets_, name, &std::pair<std::string_view, ConstantSet>::first);
  if (known != sets_.end()) return known->second;
  const auto* row = std::ranges::find(kSetRows, name, &SetRow::name);
  CHECK(row != std::end(kSetRows));
  ConstantSet out{.unknown = row->unknown, .names = {}};
  for (const std::string_view word : split(row->names, ' ')) {
    const size_t equals = word.find('=');
    const std::string_view of = word.substr(0, equals);
    const auto value =
        equals == std::string_view::npos ? kernel::abi_constant(arch_, of) : parse_int(word.substr(equals + 1));
    if (value) out.names.emplace_back(of, static_cast<uint64_t>(*value));
  }
  sets_.reserve(std::size(kSetRows));  // references to sets stay valid
  sets_.emplace_back(name, std::move(out));
  return sets_.back().second;
}

}  // namespace espy::strace

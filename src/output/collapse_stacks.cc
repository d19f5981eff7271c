#include "output/collapse_stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "base/printable.h"
#include "base/strings.h"
#include "output/divide.h"

namespace espy::output {

namespace {

// The items of a key that is a tuple, otherwise the key.
std::vector<const Value*> parts_of(const Value& key) {
  std::vector<const Value*> parts;
  if (const auto* tuple = std::get_if<TupleValue>(&key.node)) {
    for (const Value& item : tuple->items) parts.push_back(&item);
  } else {
    parts.push_back(&key);
  }
  return parts;
}

FoldedFrame collapsed_frame(const Frame& frame, bool is_user) {
  const FrameKind kind = frame.is_inlined ? FrameKind::kInlined : is_user ? FrameKind::kUser : FrameKind::kKernel;
  if (!frame.symbol.empty()) return {printable_line(exact_utf8(frame.symbol)), kind};
  // One frame for all code of a stripped file is more useful than a frame for each address.
  const std::string_view file = base_name(frame.module);
  if (file.starts_with('[')) return {std::string(file), FrameKind::kUnknown};
  return {file.empty() ? "[unknown]" : fmt::format("[{}]", file), FrameKind::kUnknown};
}

uint64_t positive(int64_t value) { return value > 0 ? static_cast<uint64_t>(value) : 0; }

uint64_t sum_of(const std::vector<uint64_t>& buckets) {
  return std::accumulate(buckets.begin(), buckets.end(), uint64_t{0});
}

struct Weight {
  uint64_t operator()(bool value) const { return value ? 1 : 0; }
  uint64_t operator()(int64_t value) const { return positive(value); }
  uint64_t operator()(uint64_t value) const { return value; }
  uint64_t operator()(const HistValue& value) const { return sum_of(value.buckets); }
  uint64_t operator()(const LhistValue& value) const { return sum_of(value.buckets); }
  uint64_t operator()(const StatsValue& value) const {
    const int64_t number = value.only_average ? average(value) : value.total;
    return value.is_signed ? positive(number) : static_cast<uint64_t>(number);
  }
  template <class Other>
  uint64_t operator()(const Other&) const {
    return 1;
  }
};

void append_stacks(std::vector<FoldedFrame>& out, const std::vector<const Value*>& parts, bool is_user) {
  for (const Value* part : parts) {
    const auto* stack = std::get_if<StackValue>(&part->node);
    if (stack == nullptr || stack->is_user != is_user) continue;
    for (auto frame = stack->frames.rbegin(); frame != stack->frames.rend(); ++frame)
      out.push_back(collapsed_frame(**frame, is_user));
  }
}

// "comm", "args.dev", but not "(uint64)x" or a text.
bool is_word(std::string_view name) {
  const auto is_part = [](char c) { return c == '_' || c == '.' || std::isalnum(static_cast<unsigned char>(c)) != 0; };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 && std::ranges::all_of(name, is_part);
}

}  // namespace

bool has_stacks(const MapView& map) {
  const auto is_stack = [](const Value* part) { return std::holds_alternative<StackValue>(part->node); };
  return !map.is_scalar && !map.entries.empty() && std::ranges::any_of(parts_of(map.entries.front().key), is_stack);
}

KeyStack split_key(const Value& key, std::span<const std::string> names) {
  const std::vector<const Value*> parts = parts_of(key);
  KeyStack out;
  std::vector<const StackValue*> user;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string other = i == 0 ? "key" : fmt::format("key{}", i + 1);
    if (const auto* stack = std::get_if<StackValue>(&parts[i]->node))
      (stack->is_user ? user : out.stacks).push_back(stack);
    else
      out.labels.emplace_back(i < names.size() && is_word(names[i]) ? names[i] : other, parts[i]);
  }
  out.stacks.insert(out.stacks.end(), user.begin(), user.end());
  return out;
}

uint64_t weight_of(const Value& value) { return std::visit(Weight(), value.node); }

std::vector<FoldedStack> collapse_stacks(const MapView& map, const TextStyle& style) {
  std::vector<FoldedStack> out;
  TextStyle exact = style;
  exact.is_for_terminal = true;
  for (const MapEntry& entry : shown_entries(map)) {
    const std::vector<const Value*> parts = parts_of(entry.key);
    FoldedStack stack;
    stack.weight = weight_of(divided(entry.value, map.divisor));
    for (const Value* part : parts)
      if (!std::holds_alternative<StackValue>(part->node))
        stack.frames.push_back({printable_line(to_text(*part, exact))});
    append_stacks(stack.frames, parts, true);
    append_stacks(stack.frames, parts, false);
    if (stack.weight > 0) out.push_back(std::move(stack));
  }
  return out;
}

std::string folded_name(const FoldedFrame& frame) {
  std::string out;
  const std::string_view separator = frame.kind == FrameKind::kText ? "\\x3b" : ":";
  for (const char c : frame.name) c == ';' ? void(out += separator) : out.push_back(c);
  if (frame.kind == FrameKind::kKernel) out += "_[k]";
  if (frame.kind == FrameKind::kInlined) out += "_[i]";
  return out;
}

}  // namespace espy::output

#include "replay/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/strings.h"

namespace espy::replay {

namespace {

using recording::FieldKind;

constexpr std::string_view kEnter = "sys_enter_";
constexpr std::string_view kExit = "sys_exit_";
constexpr size_t kRawWords = 12;
constexpr size_t kWordBytes = 8;
constexpr uint32_t kMaxRecordBytes = 64 << 10;

// A number of the event, and where it goes.
struct Place {
  size_t value = 0;  // index in Event::values
  uint32_t offset_bytes = 0;
  uint32_t size_bytes = 0;
};

// The index of a field; nullopt if the recording does not have it.
std::optional<size_t> find_field(const recording::Probe& probe, std::string_view name, FieldKind kind) {
  for (size_t i = 0; i < probe.fields.size(); ++i)
    if (probe.fields[i].name == name && probe.fields[i].kind == kind) return i;
  return std::nullopt;
}

class SyscallContext final : public Context {
 public:
  SyscallContext(simulator::Memory& memory, size_t registers_bytes) : registers_(registers_bytes) {
    memory.add_region(registers_, true);
    const auto address = reinterpret_cast<uint64_t>(registers_.data());
    std::memcpy(words_.data(), &address, sizeof(address));
  }

  void set_number(const kernel::Arch& arch, uint64_t number, bool is_enter) {
    std::memcpy(registers_.data() + arch.syscall_number_offset, &number, arch.syscall_number_bytes);
    if (is_enter) std::memcpy(words_.data() + kWordBytes, &number, sizeof(number));
  }
  void add_register(Place place) { places_.push_back(place); }
  void set_result(size_t value) { result_ = value; }

  std::span<std::byte> fill(const recording::Event& event) override {
    for (const Place& place : places_)
      std::memcpy(registers_.data() + place.offset_bytes, &event.values[place.value].number, kWordBytes);
    if (result_) std::memcpy(words_.data() + kWordBytes, &event.values[*result_].number, kWordBytes);
    return words_;
  }

 private:
  std::vector<std::byte> registers_;
  std::array<std::byte, 2 * kWordBytes> words_ = {};
  std::vector<Place> places_;
  std::optional<size_t> result_;
};

class RecordContext final : public Context {
 public:
  explicit RecordContext(size_t fixed_bytes) : fixed_bytes_(fixed_bytes), record_(fixed_bytes) {}

  void add_number(Place place) { numbers_.push_back(place); }
  void add_chars(Place place) { chars_.push_back(place); }
  // `base`: what the offset of the text is relative to.
  void add_text(Place place, uint32_t base) { texts_.push_back({place, base}); }

  std::span<std::byte> fill(const recording::Event& event) override {
    record_.assign(fixed_bytes_, std::byte{0});
    for (const Place& place : numbers_)
      std::memcpy(record_.data() + place.offset_bytes, &event.values[place.value].number, place.size_bytes);
    for (const Place& place : chars_) {
      const std::string_view text = event.values[place.value].text;
      std::memcpy(record_.data() + place.offset_bytes, text.data(), std::min<size_t>(text.size(), place.size_bytes));
    }
    for (const auto& [place, base] : texts_) append(place, base, event.values[place.value].text);
    record_.resize((record_.size() + kWordBytes - 1) / kWordBytes * kWordBytes);
    return record_;
  }

 private:
  void append(const Place& place, uint32_t base, std::string_view text) {
    const size_t where = record_.size();
    text = text.substr(0, kMaxRecordBytes / 2);
    if (where + text.size() >= kMaxRecordBytes) return;
    const auto locator = static_cast<uint32_t>((text.size() + 1) << 16 | (where - base));
    std::memcpy(record_.data() + place.offset_bytes, &locator, sizeof(locator));
    record_.resize(where + text.size() + 1);
    std::memcpy(record_.data() + where, text.data(), text.size());
  }

  size_t fixed_bytes_;
  std::vector<std::byte> record_;
  std::vector<Place> numbers_, chars_;
  std::vector<std::pair<Place, uint32_t>> texts_;
};

class EmptyContext final : public Context {
 public:
  std::span<std::byte> fill(const recording::Event&) override { return words_; }

 private:
  std::array<std::byte, kRawWords* kWordBytes> words_ = {};
};

}  // namespace

std::optional<TracepointName> tracepoint_name(std::string_view probe) {
  const std::vector<std::string_view> parts = split(probe, ':');
  if (parts.size() != 3) return std::nullopt;
  return TracepointName{std::string(parts[1]), std::string(parts[2])};
}

std::string raw_tracepoint_of_syscall(const TracepointName& name, kernel::Kernel& kernel) {
  if (name.category != "syscalls") return "";
  for (const std::string_view boundary : {kEnter, kExit})
    if (name.event.starts_with(boundary) && kernel.syscall_number(name.event.substr(boundary.size())))
      return std::string(boundary.substr(0, boundary.size() - 1));
  return "";
}

Result<std::unique_ptr<Context>> make_syscall_context(const TracepointName& name, const recording::Probe& probe,
                                                      kernel::Kernel& kernel, types::Types& types,
                                                      simulator::Memory& memory) {
  const kernel::Arch& arch = kernel.arch();
  const bool is_enter = name.event.starts_with(kEnter);
  const auto number = kernel.syscall_number(name.event.substr(is_enter ? kEnter.size() : kExit.size()));
  if (!number) return fail(fmt::format("there is no system call of {}", name.event));
  auto out = std::make_unique<SyscallContext>(memory, arch.pt_regs_size_bytes);
  out->set_number(arch, *number, is_enter);
  if (!is_enter) {
    if (const auto result = find_field(probe, "ret", FieldKind::kNumber)) out->set_result(*result);
    return std::unique_ptr<Context>(std::move(out));
  }
  const kernel::Tracepoint tracepoint = TRY(kernel.tracepoint(types, name.category, name.event));
  size_t argument = 0;
  for (const kernel::TracepointField& field : tracepoint.fields) {
    if (field.name == "__syscall_nr" || argument == arch.syscall_argument_offsets.size()) continue;
    const uint32_t offset = arch.syscall_argument_offsets[argument++];
    if (const auto value = find_field(probe, field.name, FieldKind::kNumber)) out->add_register({*value, offset, 8});
  }
  return std::unique_ptr<Context>(std::move(out));
}

Result<std::unique_ptr<Context>> make_record_context(const TracepointName& name, const recording::Probe& probe,
                                                     kernel::Kernel& kernel, types::Types& types) {
  const kernel::Tracepoint tracepoint = TRY(kernel.tracepoint(types, name.category, name.event));
  size_t size_bytes = 0;
  for (const kernel::TracepointField& field : tracepoint.fields) {
    if (field.offset_bytes > kMaxRecordBytes || field.size_bytes > kMaxRecordBytes)
      return fail(fmt::format("the recorded format of {}:{} makes no sense", name.category, name.event));
    size_bytes = std::max<size_t>(size_bytes, field.offset_bytes + field.size_bytes);
  }
  auto out = std::make_unique<RecordContext>(size_bytes);
  for (const kernel::TracepointField& field : tracepoint.fields) {
    const auto text = find_field(probe, field.name, FieldKind::kText);
    const auto number = find_field(probe, field.name, FieldKind::kNumber);
    if (number && field.size_bytes <= kWordBytes) out->add_number({*number, field.offset_bytes, field.size_bytes});
    if (!text || number) continue;  // the text behind a pointer is no part of the record
    const Place place{*text, field.offset_bytes, field.size_bytes};
    if (!field.is_data_loc) {
      out->add_chars(place);
    } else if (field.size_bytes >= sizeof(uint32_t)) {
      out->add_text(place, field.is_relative_loc ? field.offset_bytes + sizeof(uint32_t) : 0);
    }
  }
  return std::unique_ptr<Context>(std::move(out));
}

std::unique_ptr<Context> make_empty_context() { return std::make_unique<EmptyContext>(); }

}  // namespace espy::replay

// fuzz_events SECONDS
//
// Records and map values as no program of ours would write them: random types, fields that point anywhere, bytes at
// random, too few of them. Nothing may be read outside the bytes (each buffer is as long as it says, for the sanitizer
// to see), the two ways of printf must say the same, and each JSON line must be JSON.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "driver.h"
#include "json_reader.h"
#include "output/sink.h"
#include "program/layout.h"

namespace {

using namespace espy;
using fuzz::below;
using fuzz::Random;
using types::Kind;
using types::TypeId;

// ---- Random types and bytes -----------------------------------------------------------------------------------------

int64_t any_number(Random& random) {
  constexpr int64_t kEdges[] = {0, 1, -1, 2, 7, 8, 1024, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, -14};
  if (below(random, 2) == 0) return kEdges[below(random, std::size(kEdges))];
  return static_cast<int64_t>((uint64_t{random()} << 32 | random()) >> below(random, 64));
}

struct Members {
  std::vector<types::Member> list;
  uint32_t size_bytes = 0;
};

class Types {
 public:
  explicit Types(Random& random) : random_(random) {}

  TypeId any(int depth = 0) {
    const uint32_t kind = below(random_, depth > 2 ? 17 : 22);
    constexpr Kind kSimple[] = {Kind::kKernelSymbol, Kind::kUserSymbol, Kind::kInet,       Kind::kMac,
                                Kind::kUsername,     Kind::kTimestamp,  Kind::kCgroupPath, Kind::kProbeName,
                                Kind::kFunctionName, Kind::kProbeType};
    switch (kind) {
      case 0: return types.bool_type();
      case 1: return enumeration();
      case 2: return types.pointer(types.int64(), types::AddressSpace::kUser);
      case 3:
      case 4: return types.string(1 + below(random_, 40));
      case 5: return types.buffer(1 + below(random_, 40));
      case 6:
      case 7: return types.simple(kSimple[below(random_, std::size(kSimple))]);
      case 8: return types.stack(below(random_, 2) == 0, static_cast<types::StackMode>(below(random_, 4)), 8);
      case 9: return types.float_type(8);
      case 17: return types.array(any(depth + 1), below(random_, 5));
      case 18: return types.tuple({any(depth + 1), any(depth + 1)});
      case 19: return types.record({{"a", any(depth + 1)}, {"b", any(depth + 1)}});
      case 20:
      case 21: return structure(depth);
      default: return types.int_type(1U << below(random_, 4), below(random_, 2) == 0);
    }
  }

  TypeId aggregation() {
    constexpr Kind kPlain[] = {Kind::kCount, Kind::kSum, Kind::kMin, Kind::kMax, Kind::kAvg, Kind::kStats};
    constexpr Kind kSeries[] = {Kind::kVoid, Kind::kAvg, Kind::kMax, Kind::kMin, Kind::kSum};
    switch (below(random_, 6)) {
      case 0: return types.hist(static_cast<uint8_t>(below(random_, 6)));
      case 1: {
        const int64_t min = any_number(random_) / 4, step = 1 + std::abs(any_number(random_) / 8192);
        return types.lhist(min, min + step * (1 + below(random_, 1000)), step);
      }
      case 2:
        return types.tseries({1 + static_cast<uint64_t>(any_number(random_)) % 2000000000, 1 + below(random_, 20),
                              kSeries[below(random_, std::size(kSeries))]},
                             true);
      default: return types.simple(kPlain[below(random_, std::size(kPlain))], below(random_, 2) == 0);
    }
  }

  types::Types types;

 private:
  TypeId enumeration() {
    return types.define_enum("e" + std::to_string(++names_), {{"ONE", 1}, {"MINUS", -1}}, 1U << below(random_, 4),
                             below(random_, 2) == 0, {});
  }

  TypeId structure(int depth) {
    const TypeId id = types.declare_struct("s" + std::to_string(++names_), below(random_, 4) == 0, {});
    std::vector<types::Member> members;
    uint32_t size = 0;
    for (uint32_t i = below(random_, 5); i > 0; --i) {
      types::Member member{"m" + std::to_string(i), any(depth + 1), size * 8};
      const Kind kind = types[member.type].kind;
      const bool is_integer = kind == Kind::kInt || kind == Kind::kBool || kind == Kind::kEnum;
      if (is_integer && below(random_, 3) == 0) {
        member.bit_size = 1 + below(random_, types[member.type].size_bytes * 8);
        member.offset_bits += below(random_, 8);
      }
      size += types[member.type].size_bytes;
      members.push_back(member);
    }
    types.define_struct(id, members, size, 1);
    return id;
  }

  Random& random_;
  int names_ = 0;
};

// Exactly `size` bytes on the heap.
struct Bytes {
  std::unique_ptr<std::byte[]> at;
  size_t size = 0;
  operator std::span<const std::byte>() const { return {at.get(), size}; }
};

Bytes any_bytes(Random& random, size_t size) {
  Bytes out{std::make_unique<std::byte[]>(size), size};
  const uint32_t kind = below(random, 4);
  for (size_t i = 0; i < size; ++i)
    out.at[i] = kind == 0 ? std::byte{0xff} : kind == 1 && random() % 8 != 0 ? std::byte{0} : std::byte(random());
  for (uint32_t i = 0; i < 4 && size >= 8; ++i) {
    const int64_t number = any_number(random);
    std::memcpy(out.at.get() + below(random, size / 8) * 8, &number, 8);
  }
  return out;
}

size_t any_size(Random& random, size_t right) { return below(random, 3) == 0 ? below(random, right + 1) : right; }

std::string any_format(Random& random, size_t& conversions) {
  constexpr std::string_view kConversions[] = {"d", "i", "u", "o", "x", "X", "c", "p", "s", "r", "rx", "rh", "gr"};
  constexpr std::string_view kLengths[] = {"", "", "hh", "h", "l", "ll", "j", "z", "t"};
  std::string out;
  conversions = below(random, 6);
  for (size_t i = 0; i < conversions; ++i) {
    out += std::string_view("a%%, \n").substr(0, below(random, 6) & ~1U);
    out += '%';
    for (uint32_t n = below(random, 4); n > 1; --n) out += "-+ #0"[below(random, 5)];
    if (below(random, 3) == 0) out += below(random, 4) == 0 ? "*" : std::to_string(1 + below(random, 30));
    if (below(random, 3) == 0) out += below(random, 4) == 0 ? ".*" : "." + std::to_string(below(random, 30));
    out += kLengths[below(random, std::size(kLengths))];
    out += kConversions[below(random, std::size(kConversions))];
  }
  return out;
}

// ---- The sinks ------------------------------------------------------------------------------------------------------

output::Resolver some_resolver() {
  output::Resolver resolver;
  resolver.stack = [](TypeId, int64_t reference) {
    return std::vector<uint64_t>(static_cast<size_t>(reference) % 5, static_cast<uint64_t>(reference));
  };
  resolver.kernel_symbol = [](uint64_t address) {
    return output::Frame{address, address % 2 != 0 ? "f\"x\n" : "", address % 3, "m", {}};
  };
  resolver.user_symbol = [](uint32_t pid, uint64_t address) {
    return output::Frame{address, pid % 2 != 0 ? "g" : "", address % 3, "", "ab"};
  };
  resolver.user_frames = [](uint32_t pid, uint64_t address, types::StackMode, bool is_caller) {
    std::vector<output::Frame> out(1 + address % 2, {address, pid % 2 != 0 ? "g" : "", address % 3, "", "ab"});
    out.front().file = is_caller ? "f\n.c" : "";
    out.front().is_inlined = out.size() > 1;
    return out;
  };
  resolver.timestamp = [](std::string_view format, uint64_t ns, uint32_t) {
    return std::string(format) + std::to_string(ns);
  };
  return resolver;
}

class Sinks {
 public:
  Sinks()
      : memory_(::memfd_create("lines", MFD_CLOEXEC)),
        null_(::open("/dev/null", O_WRONLY | O_CLOEXEC)),
        json_writer_(memory_.get(), output::Buffering::kFull),
        text_writer_(null_.get(), output::Buffering::kFull),
        json_(output::find_sink("json")->create(json_writer_, {}, true)),
        otlp_(output::find_sink("otlp")->create(json_writer_, {}, true)),
        text_(output::find_sink("text")->create(text_writer_, {}, true)) {
    otlp_->begin({.now_ns = [] { return uint64_t{1}; },
                  .wall_ns = [](uint64_t ns) { return ns; },
                  .random = [] { return uint64_t{1}; },
                  .host = [] { return std::string("host"); }});
  }

  void show(const output::Value& value) {
    json_->value(value);
    otlp_->value(value);
    text_->value(value);
  }
  void show(const output::MapView& map) {
    json_->map(map);
    otlp_->map(map);
    text_->map(map);
  }
  void show(std::string_view text) {
    json_->text("printf", text);
    otlp_->text("printf", text);
    text_->text("printf", text);
  }

  void check_json() {
    otlp_->finish();
    json_writer_.flush();
    text_writer_.flush();
    const off_t size = ::lseek(memory_.get(), 0, SEEK_CUR);
    std::string lines(static_cast<size_t>(size), ' ');
    if (::pread(memory_.get(), lines.data(), lines.size(), 0) != size) std::abort();
    if (::ftruncate(memory_.get(), 0) != 0 || ::lseek(memory_.get(), 0, SEEK_SET) != 0) std::abort();
    for (size_t begin = 0; begin < lines.size();) {
      const size_t end = lines.find('\n', begin);
      const std::string_view line = std::string_view(lines).substr(begin, end - begin);
      if (end == std::string::npos || !fuzz::JsonReader(line).is_value_alone()) {
        std::fprintf(stderr, "not JSON: %s\n", std::string(line).c_str());
        std::abort();
      }
      begin = end + 1;
    }
  }

 private:
  OwnedFd memory_, null_;
  output::Writer json_writer_, text_writer_;
  std::unique_ptr<output::Sink> json_, otlp_, text_;
};

// ---- One input: a number from which all follows ---------------------------------------------------------------------

void try_record(Random& random, Types& types, const output::DecodeContext& context, Sinks& sinks) {
  program::EventSchema schema;
  uint32_t offset = sizeof(program::RecordHeader);
  for (uint32_t i = below(random, 8); i > 0; --i) {
    program::EventField field{types.any(), offset};
    const Kind kind = types.types[field.type].kind;
    field.is_in_tail = (kind == Kind::kString || kind == Kind::kBuffer) && below(random, 2) == 0;
    offset += field.is_in_tail ? 8 : types.types[field.type].size_bytes;
    if (below(random, 10) == 0) field.offset_bytes = static_cast<uint32_t>(any_number(random));
    schema.fields.push_back(field);
  }
  const Bytes record = any_bytes(random, any_size(random, offset + below(random, 32)));
  std::vector<output::Argument> values;
  for (const program::EventField& field : schema.fields) {
    values.push_back({output::decode_field(context, field, record), output::is_c_int(types.types[field.type])});
    sinks.show(values.back().value);
  }
  size_t conversions = 0;
  const std::string format = any_format(random, conversions);
  const auto formatter = output::Formatter::create(format);
  if (!formatter) std::abort();
  std::string from_values, from_record;
  formatter->append(from_values, values, {});
  formatter->append_record(from_record, context, schema, 0, record, {});
  if (from_values != from_record) {
    std::fprintf(stderr, "format %s\nvalues: %s\nrecord: %s\n", format.c_str(), from_values.c_str(),
                 from_record.c_str());
    std::abort();
  }
  sinks.show(from_record);
}

// The entries that are kept as bytes must be shown as the Values are.
void compare_entries(output::MapView& view) {
  view.compact.sort();
  for (size_t i = 0; i < view.entries.size(); ++i) {
    const output::MapEntry entry = view.compact.at(i);
    const std::string text = output::to_text(entry.key, {}) + ": " + output::to_text(entry.value, {});
    const std::string expected =
        output::to_text(view.entries[i].key, {}) + ": " + output::to_text(view.entries[i].value, {});
    if (text == expected) continue;
    std::fprintf(stderr, "entry %zu is \"%s\" by bytes, \"%s\" by values\n", i, text.c_str(), expected.c_str());
    std::abort();
  }
}

void try_map(Random& random, Types& types, const output::DecodeContext& context, Sinks& sinks) {
  output::MapView view{.name = "@x", .is_scalar = below(random, 4) == 0};
  const TypeId key = types.any();
  const bool is_aggregation = below(random, 2) == 0;
  const TypeId value = is_aggregation ? types.aggregation() : types.any();
  const uint32_t cpus = 1 + below(random, 4);
  const bool fits = !view.is_scalar && output::CompactEntries::fits(types.types, key, value);
  if (fits) view.compact = output::CompactEntries(context, key);
  for (uint32_t i = view.is_scalar ? 1 : below(random, 8); i > 0; --i) {
    const size_t value_size = types.types[value].size_bytes;
    const Bytes key_bytes = any_bytes(random, any_size(random, types.types[key].size_bytes));
    const Bytes value_bytes =
        any_bytes(random, any_size(random, is_aggregation ? (value_size + 7) / 8 * 8 * cpus : value_size));
    view.entries.push_back({output::decode(context, key, key_bytes),
                            is_aggregation ? output::decode_per_cpu(context, value, value_bytes, cpus)
                                           : output::decode(context, value, value_bytes)});
    output::is_unset(value_bytes, cpus, below(random, 64));
    if (fits) view.compact.add(key_bytes, view.entries.back().value);
  }
  output::sort_for_display(view.entries);
  sinks.show(view);
  if (fits) compare_entries(view);
  view.top = below(random, 5);
  view.divisor = static_cast<uint64_t>(any_number(random));
  sinks.show(view);
  for (const output::MapEntry& entry : view.entries) sinks.show(entry.value);
}

void try_one(const std::string& input, fuzz::Counts&) {
  Random random(static_cast<uint32_t>(std::stoul(input)));
  Types types(random);
  const output::Resolver resolver = below(random, 2) == 0 ? some_resolver() : output::Resolver{};
  const std::vector<std::string> literals = {"%H", "x"};
  const output::DecodeContext context{types.types, resolver, literals};
  Sinks sinks;
  for (int i = 0; i < 4; ++i) try_record(random, types, context, sinks);
  for (int i = 0; i < 2; ++i) try_map(random, types, context, sinks);
  sinks.check_json();
}

}  // namespace

int main(int argc, char** argv) {
  const auto next = [](Random& random) { return std::to_string(static_cast<uint32_t>(random())); };
  if (argc > 2) {  // fuzz_events 0 INPUT: once more
    fuzz::Counts counts = {};
    try_one(argv[2], counts);
    return 0;
  }
  return fuzz::drive("events", argc > 1 ? std::atoi(argv[1]) : 5, 1, {next, try_one, {}});
}

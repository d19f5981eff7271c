#include "output/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/strings.h"

namespace espy::output {

namespace {

constexpr int kNone = -1;
constexpr int kFromArgument = -2;
constexpr std::string_view kFlags = "-+ #0";
constexpr int kMaxWidth = 65536;
constexpr std::array<std::string_view, 7> kLengths = {"hh", "ll", "h", "l", "j", "z", "t"};
constexpr std::array<std::string_view, 14> kConversions = {"rx", "rh", "gr", "d", "i", "u", "o",
                                                           "x",  "X",  "c",  "f", "p", "s", "r"};

// Parses one conversion, after its `%`.
class ConversionReader {
 public:
  ConversionReader(std::string_view format, size_t at) : format_(format), at_(at) {}

  // Returns a Conversion without `conversion` if there is none.
  Result<Conversion> read() {
    Conversion out;
    out.begin = at_ - 1;
    while (at_ < format_.size() && kFlags.find(format_[at_]) != std::string_view::npos) out.flags += format_[at_++];
    out.width = read_number();
    if (at_ < format_.size() && format_[at_] == '.') {
      ++at_;
      out.precision = std::max(read_number(), kFromArgument);
      if (out.precision == kNone) out.precision = 0;
    }
    out.length = take_one_of(kLengths);
    out.conversion = take_one_of(kConversions);
    out.end = at_;
    if (out.conversion.empty() && at_ < format_.size() &&
        std::string_view("FeEgGaA").find(format_[at_]) != std::string_view::npos)
      return fail(fmt::format("there are no floating-point numbers: `%{}` cannot be used", format_[at_]),
                  static_cast<int>(out.begin), "`%f` prints an integer, or the quotient of two: `(a, b)`");
    return out;
  }

 private:
  int read_number() {
    if (at_ < format_.size() && format_[at_] == '*') {
      ++at_;
      return kFromArgument;
    }
    int value = kNone;
    for (; at_ < format_.size() && format_[at_] >= '0' && format_[at_] <= '9'; ++at_)
      value = std::min(std::max(value, 0) * 10 + (format_[at_] - '0'), kMaxWidth);
    return value;
  }

  template <size_t kCount>
  std::string take_one_of(const std::array<std::string_view, kCount>& words) {
    for (const std::string_view word : words) {
      if (!format_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return std::string(word);
    }
    return {};
  }

  std::string_view format_;
  size_t at_;
};

// ---- Numbers --------------------------------------------------------------------------------------------------------

uint64_t bits_of(const Value& value) {
  if (const auto* v = std::get_if<int64_t>(&value.node)) return static_cast<uint64_t>(*v);
  if (const auto* v = std::get_if<uint64_t>(&value.node)) return *v;
  if (const auto* v = std::get_if<bool>(&value.node)) return *v ? 1 : 0;
  if (const auto* v = std::get_if<EnumValue>(&value.node)) return static_cast<uint64_t>(v->number);
  if (const auto* v = std::get_if<PointerValue>(&value.node)) return v->address;
  return 0;
}

// Truncates to C's length modifier, with the sign of the conversion.
uint64_t truncate(uint64_t value, const std::string& length, bool is_signed, bool is_c_int) {
  if (length.empty() && is_c_int)
    return is_signed ? static_cast<uint64_t>(int64_t{static_cast<int32_t>(value)}) : value & 0xffffffff;
  if (length == "hh") return is_signed ? static_cast<uint64_t>(int64_t{static_cast<int8_t>(value)}) : value & 0xff;
  if (length == "h") return is_signed ? static_cast<uint64_t>(int64_t{static_cast<int16_t>(value)}) : value & 0xffff;
  return value;
}

// `bits_per_digit`: 3 for octal, 4 for hexadecimal.
void append_power_of_two(std::string& out, uint64_t value, unsigned bits_per_digit, std::string_view digits) {
  char text[22];
  char* at = std::end(text);
  do {
    *--at = digits[value & ((1U << bits_per_digit) - 1)];
    value >>= bits_per_digit;
  } while (value != 0);
  out.append(at, std::end(text));
}

void append_digits(std::string& out, uint64_t value, char conversion) {
  switch (conversion) {
    case 'x':
    case 'p': return append_power_of_two(out, value, 4, "0123456789abcdef");
    case 'X': return append_power_of_two(out, value, 4, "0123456789ABCDEF");
    case 'o': return append_power_of_two(out, value, 3, "01234567");
    default: return append_decimal(out, value);
  }
}

bool has_flag(const Conversion& c, char flag) { return c.flags.find(flag) != std::string::npos; }

// Width and precision of one call: from the format, or from the arguments for `*`.
struct Sizes {
  int width = 0;
  int precision = kNone;
  bool is_left = false;
};

// As in C, a negative width means left-aligned and a negative precision none.
template <class Take>
Sizes sizes_of(const Conversion& c, Take&& take) {
  Sizes out{c.width, c.precision, has_flag(c, '-')};
  const auto number = [&] {
    return std::clamp<int64_t>(static_cast<int32_t>(bits_of(take().value)), -kMaxWidth, kMaxWidth);
  };
  if (c.width == kFromArgument) {
    const int64_t width = number();
    out.is_left |= width < 0;
    out.width = static_cast<int>(std::abs(width));
  }
  if (c.precision == kFromArgument) out.precision = static_cast<int>(std::max<int64_t>(number(), kNone));
  return out;
}

void pad(std::string& out, size_t start, const Sizes& sizes) {
  const size_t length = out.size() - start;
  if (sizes.width <= 0 || length >= static_cast<size_t>(sizes.width)) return;
  out.insert(sizes.is_left ? out.size() : start, static_cast<size_t>(sizes.width) - length, ' ');
}

std::string_view sign_of(const Conversion& c, bool is_negative) {
  if (is_negative) return "-";
  if (has_flag(c, '+')) return "+";
  return has_flag(c, ' ') ? " " : "";
}

std::string_view prefix_of(const Conversion& c, uint64_t value) {
  if (c.conversion == "p") return "0x";
  if (!has_flag(c, '#') || value == 0) return "";
  if (c.conversion == "x") return "0x";
  return c.conversion == "X" ? "0X" : "";
}

// As printf(3): sign or prefix, zeros up to the precision, digits, spaces or zeros up to the width. %d reads numbers as
// signed, others as unsigned, whatever their type.
void append_number(std::string& out, uint64_t bits, bool is_c_int, const Conversion& c, const Sizes& sizes) {
  const size_t start = out.size();
  const bool reads_sign = c.conversion == "d" || c.conversion == "i";
  uint64_t value = truncate(bits, c.length, reads_sign, is_c_int);
  const bool is_negative = reads_sign && static_cast<int64_t>(value) < 0;
  if (is_negative) value = 0 - value;
  out += reads_sign ? sign_of(c, is_negative) : prefix_of(c, value);
  const size_t digits = out.size();
  if (value != 0 || sizes.precision != 0) append_digits(out, value, c.conversion[0]);
  const size_t length = out.size() - digits;
  size_t wanted = sizes.precision > 0 ? static_cast<size_t>(sizes.precision) : 0;
  if (c.conversion == "o" && has_flag(c, '#') && (value != 0 || length == 0)) wanted = std::max(wanted, length + 1);
  const bool fills_with_zeros = has_flag(c, '0') && !sizes.is_left && sizes.precision == kNone;
  const size_t before = digits - start;
  if (fills_with_zeros && sizes.width > 0 && static_cast<size_t>(sizes.width) > before)
    wanted = std::max(wanted, static_cast<size_t>(sizes.width) - before);
  if (length < wanted) out.insert(digits, wanted - length, '0');
  pad(out, start, sizes);
}

// The number that %f prints: an integer, a floating-point member of a struct, or the quotient of a pair of these.
std::optional<long double> real_number(const Value& value) {
  if (const auto* v = std::get_if<int64_t>(&value.node)) return static_cast<long double>(*v);
  if (const auto* v = std::get_if<TextValue>(&value.node)) return std::strtold(v->text.c_str(), nullptr);
  const auto* pair = std::get_if<TupleValue>(&value.node);
  if (pair == nullptr) return static_cast<long double>(bits_of(value));
  if (pair->items.size() != 2) return std::nullopt;
  const auto dividend = real_number(pair->items[0]), divisor = real_number(pair->items[1]);
  if (!dividend || !divisor) return std::nullopt;
  return *dividend / *divisor;
}

void append_real_number(std::string& out, long double number, const Conversion& c, const Sizes& sizes) {
  constexpr int kDigits = 6, kMostDigits = 100;  // behind the point
  const size_t start = out.size();
  out += sign_of(c, std::signbit(number) && !std::isnan(number));
  const size_t digits = out.size();
  const int precision = sizes.precision == kNone ? kDigits : std::min(sizes.precision, kMostDigits);
  out += fmt::format("{:.{}f}", std::fabs(number), precision);
  const size_t width = static_cast<size_t>(std::max(sizes.width, 0)), length = out.size() - start;
  if (has_flag(c, '0') && !sizes.is_left && std::isfinite(number) && length < width)
    out.insert(digits, width - length, '0');
  pad(out, start, sizes);
}

// ---- Texts ----------------------------------------------------------------------------------------------------------

std::string bytes_of(const Value& value, const TextStyle& style) {
  if (const auto* v = std::get_if<BufferValue>(&value.node)) return v->bytes;
  return to_text(value, style);
}

std::string text_for(const Value& value, const Conversion& c, const TextStyle& style) {
  if (c.conversion == "r") return escaped(bytes_of(value, style));
  if (c.conversion == "rx") return all_escaped(bytes_of(value, style));
  if (c.conversion == "rh") return hexadecimal(bytes_of(value, style), " ");
  if (c.conversion == "gr") return gfp_flags(bits_of(value));
  if (c.conversion == "p") return "(nil)";
  if (const auto* text = std::get_if<StringValue>(&value.node); text != nullptr && text->is_memory)
    return shown_memory(text->text, style) + (text->is_truncated ? style.truncation_trailer : "");
  return to_text(value, style);
}

bool is_number(const Conversion& c) {
  return std::string_view("diuoxXp").find(c.conversion[0]) != std::string_view::npos && c.conversion.size() == 1;
}

void append_value(std::string& out, const Argument& argument, const Conversion& c, const Sizes& sizes,
                  const TextStyle& style) {
  const Value& value = argument.value;
  const bool is_null_pointer = c.conversion == "p" && bits_of(value) == 0;
  if (is_number(c) && !is_null_pointer) return append_number(out, bits_of(value), argument.is_c_int, c, sizes);
  if (const auto number = c.conversion == "f" ? real_number(value) : std::nullopt)
    return append_real_number(out, *number, c, sizes);
  const size_t start = out.size();
  if (c.conversion == "c") {
    out += static_cast<char>(bits_of(value));
  } else {
    const std::string text = text_for(value, c, style);
    const bool is_cut = sizes.precision >= 0 && !is_null_pointer;
    out.append(text, 0, is_cut ? static_cast<size_t>(sizes.precision) : std::string::npos);
  }
  pad(out, start, sizes);
}

// A conversion without flags, width and precision.
bool is_bare(const Conversion& c) { return c.flags.empty() && c.width == kNone && c.precision == kNone; }

uint64_t read_bits(std::span<const std::byte> record, size_t offset, size_t size) {
  uint64_t bits = 0;
  std::memcpy(&bits, record.data() + offset, size);
  return bits;
}

// Appends a string that was not truncated; false if it may have been.
bool append_string(std::string& out, const types::Type& type, const program::EventField& field,
                   std::span<const std::byte> record) {
  size_t offset = field.offset_bytes;
  size_t size = type.count;
  if (field.is_in_tail) {
    if (offset + 8 > record.size()) return false;
    size = read_bits(record, offset + 4, 4);
    offset = read_bits(record, offset, 4);
  }
  if (offset + size > record.size()) return false;
  const auto* text = reinterpret_cast<const char*>(record.data() + offset);
  const size_t length = ::strnlen(text, size);
  if (type.may_be_cut && length + 1 >= type.count) return false;
  out.append(text, length);
  return true;
}

// Appends the common cases directly from the record's bytes; false if a Value is needed.
bool append_plain(std::string& out, const types::Types& types, const program::EventField& field,
                  std::span<const std::byte> record, const Conversion& c, const TextStyle& style) {
  const types::Type& type = types[field.type];
  if (!is_bare(c) || c.conversion.size() != 1) return false;
  char conversion = c.conversion[0];
  if (type.kind == types::Kind::kString)
    return conversion == 's' && !style.is_for_terminal && append_string(out, type, field, record);
  if (type.kind != types::Kind::kInt || type.size_bytes > 8 || c.length.starts_with('h') ||
      field.offset_bytes + size_t{type.size_bytes} > record.size())
    return false;
  uint64_t bits = read_bits(record, field.offset_bytes, type.size_bytes);
  const int unused_bits = 64 - 8 * static_cast<int>(type.size_bytes);
  if (type.is_signed) bits = static_cast<uint64_t>(static_cast<int64_t>(bits << unused_bits) >> unused_bits);
  if (conversion == 's')
    conversion = type.is_signed ? 'd' : 'u';
  else
    bits = truncate(bits, c.length, conversion == 'd', is_c_int(type));
  switch (conversion) {
    case 'd':
      if (static_cast<int64_t>(bits) < 0) {
        out += '-';
        bits = 0 - bits;
      }
      [[fallthrough]];
    case 'u': append_decimal(out, bits); return true;
    case 'x': append_digits(out, bits, 'x'); return true;
    default: return false;
  }
}

// Calls `found` for each conversion and `stray` with the offset of each `%` that begins none.
template <class Found, class Stray>
Status scan(std::string_view format, const Found& found, const Stray& stray) {
  for (size_t at = format.find('%'); at != std::string_view::npos; at = format.find('%', at)) {
    if (at + 1 < format.size() && format[at + 1] == '%') {
      at += 2;
      continue;
    }
    Conversion conversion = TRY(ConversionReader(format, at + 1).read());
    if (conversion.conversion.empty()) {
      stray(at++);
      continue;
    }
    at = conversion.end;
    found(std::move(conversion));
  }
  return {};
}

std::string unescape_percent(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text.substr(i, 2) == "%%") ++i;
  }
  return out;
}

}  // namespace

Result<std::vector<Conversion>> parse_format(std::string_view format) {
  std::vector<Conversion> out;
  TRY_STATUS(scan(
      format, [&](Conversion each) { out.push_back(std::move(each)); }, [](size_t) {}));
  return out;
}

std::vector<size_t> stray_percents(std::string_view format) {
  std::vector<size_t> out;
  (void)scan(
      format, [](const Conversion&) {}, [&](size_t at) { out.push_back(at); });
  return out;
}

// As C promotes them.
bool is_c_int(const types::Type& type) { return types::is_integer(type) && type.size_bytes <= sizeof(int); }

Result<Formatter> Formatter::create(std::string_view format) {
  Formatter out;
  out.conversions_ = TRY(parse_format(format));
  size_t from = 0;
  for (const Conversion& c : out.conversions_) {
    out.literals_.push_back(unescape_percent(format.substr(from, c.begin - from)));
    from = c.end;
  }
  out.literals_.push_back(unescape_percent(format.substr(from)));
  return out;
}

void Formatter::append(std::string& out, std::span<const Argument> arguments, const TextStyle& style) const {
  size_t next = 0;
  const auto take = [&]() -> const Argument& {
    static const Argument missing;
    return next < arguments.size() ? arguments[next++] : missing;
  };
  for (size_t i = 0; i < conversions_.size(); ++i) {
    const Conversion& c = conversions_[i];
    out += literals_[i];
    const Sizes sizes = sizes_of(c, take);
    append_value(out, take(), c, sizes, style);
  }
  out += literals_.back();
}

void Formatter::append_record(std::string& out, const DecodeContext& context, const program::EventSchema& schema,
                              size_t first_field, std::span<const std::byte> record, const TextStyle& style) const {
  size_t next = first_field;
  const auto take = [&]() -> Argument {
    if (next >= schema.fields.size()) return {};
    const program::EventField& field = schema.fields[next++];
    return {decode_field(context, field, record), is_c_int(context.types[field.type])};
  };
  for (size_t i = 0; i < conversions_.size(); ++i) {
    const Conversion& c = conversions_[i];
    out += literals_[i];
    if (next < schema.fields.size() && append_plain(out, context.types, schema.fields[next], record, c, style)) {
      ++next;
      continue;
    }
    const Sizes sizes = sizes_of(c, take);
    append_value(out, take(), c, sizes, style);
  }
  out += literals_.back();
}

namespace {

struct Flag {
  std::string_view name;
  uint64_t bits;
};

constexpr uint64_t kIo = 0x40, kFs = 0x80, kZero = 0x100, kDirect = 0x400, kKswapd = 0x800;
constexpr uint64_t kReclaim = kDirect | kKswapd;
constexpr uint64_t kKernel = kReclaim | kIo | kFs;
constexpr uint64_t kHighmem = 0x02, kMovable = 0x08, kNoWarn = 0x2000, kHardwall = 0x100000, kAccount = 0x400000;
constexpr uint64_t kHighuserMovable = kKernel | kHardwall | kHighmem | kMovable;
constexpr uint64_t kTransparentHuge = (kHighuserMovable | 0x40000 | 0x80000 | kNoWarn) & ~kReclaim;

// Combinations precede their parts.
constexpr Flag kGfpFlags[] = {
    {"GFP_TRANSHUGE", kTransparentHuge | kDirect},
    {"GFP_TRANSHUGE_LIGHT", kTransparentHuge},
    {"GFP_HIGHUSER_MOVABLE", kHighuserMovable},
    {"GFP_HIGHUSER", kKernel | kHardwall | kHighmem},
    {"GFP_USER", kKernel | kHardwall},
    {"GFP_KERNEL_ACCOUNT", kKernel | kAccount},
    {"GFP_KERNEL", kKernel},
    {"GFP_NOFS", kReclaim | kIo},
    {"GFP_ATOMIC", 0x20 | kKswapd},
    {"GFP_NOIO", kReclaim},
    {"GFP_NOWAIT", kKswapd | kNoWarn},
    {"GFP_DMA", 0x01},
    {"__GFP_HIGHMEM", kHighmem},
    {"GFP_DMA32", 0x04},
    {"__GFP_MOVABLE", kMovable},
    {"__GFP_RECLAIMABLE", 0x10},
    {"__GFP_HIGH", 0x20},
    {"__GFP_IO", kIo},
    {"__GFP_FS", kFs},
    {"__GFP_ZERO", kZero},
    {"__GFP_DIRECT_RECLAIM", kDirect},
    {"__GFP_KSWAPD_RECLAIM", kKswapd},
    {"__GFP_WRITE", 0x1000},
    {"__GFP_NOWARN", kNoWarn},
    {"__GFP_RETRY_MAYFAIL", 0x4000},
    {"__GFP_NOFAIL", 0x8000},
    {"__GFP_NORETRY", 0x10000},
    {"__GFP_MEMALLOC", 0x20000},
    {"__GFP_COMP", 0x40000},
    {"__GFP_NOMEMALLOC", 0x80000},
    {"__GFP_HARDWALL", kHardwall},
    {"__GFP_THISNODE", 0x200000},
    {"__GFP_ACCOUNT", kAccount},
    {"__GFP_ZEROTAGS", 0x800000},
};

}  // namespace

std::string gfp_flags(uint64_t flags) {
  if (flags == 0) return "none";
  std::string out;
  for (const Flag& flag : kGfpFlags) {
    if ((flags & flag.bits) != flag.bits) continue;
    out += (out.empty() ? "" : "|") + std::string(flag.name);
    flags &= ~flag.bits;
  }
  if (flags != 0) out += fmt::format("{}{:#x}", out.empty() ? "" : "|", flags);
  return out;
}

}  // namespace espy::output

#include "output/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "output/gfp.h"

namespace espy::output {

namespace {

constexpr int kNone = -1;
constexpr int kFromArgument = -2;
constexpr std::string_view kFlags = "-+ #0";
constexpr std::array<std::string_view, 9> kLengths = {"hh", "ll", "h", "l", "j", "z", "t", "L", "q"};
constexpr std::array<std::string_view, 14> kConversions = {"rx", "rh", "gr", "d", "i", "u", "o",
                                                           "x",  "X",  "c",  "p", "s", "r", "b"};

// Reads one conversion behind its `%`.
class ConversionReader {
 public:
  ConversionReader(std::string_view format, size_t at) : format_(format), at_(at) {}

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
    if (out.conversion.empty()) return unknown(out);
    return out;
  }

 private:
  int read_number() {
    if (at_ < format_.size() && format_[at_] == '*') {
      ++at_;
      return kFromArgument;
    }
    int value = kNone;
    constexpr int kMaxWidth = 65536;
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

  tl::unexpected<Error> unknown(const Conversion& so_far) const {
    if (at_ >= format_.size())
      return fail("the format ends within a conversion", static_cast<int>(so_far.begin), "write %% for a percent sign");
    if (std::string_view("fFeEgGaA").find(format_[at_]) != std::string_view::npos)
      return fail(fmt::format("there are no floating-point numbers: `%{}` cannot be used", format_[at_]),
                  static_cast<int>(so_far.begin), "print an integer, scaled as you need it");
    return fail(fmt::format("`%{}` is not a conversion", format_[at_]), static_cast<int>(so_far.begin),
                "the conversions are d i u o x X c p s r rx rh gr");
  }

  std::string_view format_;
  size_t at_;
};

// ---- Numbers
// ----------------------------------------------------------------------------------------------------------

struct Bits {
  uint64_t value = 0;
  bool is_signed = false;
};

Bits bits_of(const Value& value) {
  if (const auto* v = std::get_if<int64_t>(&value.node)) return {static_cast<uint64_t>(*v), true};
  if (const auto* v = std::get_if<uint64_t>(&value.node)) return {*v, false};
  if (const auto* v = std::get_if<bool>(&value.node)) return {*v ? uint64_t{1} : 0, false};
  if (const auto* v = std::get_if<EnumValue>(&value.node)) return {static_cast<uint64_t>(v->number), true};
  if (const auto* v = std::get_if<PointerValue>(&value.node)) return {v->address, false};
  return {};
}

// C's length modifiers cut the number, with the sign that the conversion reads.
uint64_t cut(uint64_t value, const std::string& length, bool is_signed) {
  if (length == "hh") return is_signed ? static_cast<uint64_t>(int64_t{static_cast<int8_t>(value)}) : value & 0xff;
  if (length == "h") return is_signed ? static_cast<uint64_t>(int64_t{static_cast<int16_t>(value)}) : value & 0xffff;
  return value;
}

void append_decimal(std::string& out, uint64_t value) {
  const fmt::format_int text(value);
  out.append(text.data(), text.size());
}

bool has_flag(const Conversion& c, char flag) { return c.flags.find(flag) != std::string::npos; }

void pad(std::string& out, size_t start, const Conversion& c, int width) {
  const size_t length = out.size() - start;
  if (width <= 0 || length >= static_cast<size_t>(width)) return;
  const size_t missing = static_cast<size_t>(width) - length;
  out.insert(has_flag(c, '-') ? out.size() : start, missing, ' ');
}

void append_digits(std::string& out, uint64_t value, const std::string& conversion) {
  if (conversion == "x" || conversion == "p") {
    fmt::format_to(std::back_inserter(out), "{:x}", value);
  } else if (conversion == "X") {
    fmt::format_to(std::back_inserter(out), "{:X}", value);
  } else if (conversion == "o") {
    fmt::format_to(std::back_inserter(out), "{:o}", value);
  } else if (conversion == "b") {
    fmt::format_to(std::back_inserter(out), "{:b}", value);
  } else {
    append_decimal(out, value);
  }
}

std::string_view prefix_of(const Conversion& c, uint64_t value) {
  if (c.conversion == "p") return "0x";
  if (!has_flag(c, '#') || value == 0) return "";
  if (c.conversion == "x") return "0x";
  if (c.conversion == "X") return "0X";
  return c.conversion == "o" ? "0" : "";
}

// As printf(3): sign or prefix, zeros up to the precision, digits, spaces or zeros up to the width.
void append_number(std::string& out, Bits bits, const Conversion& c, int width, int precision) {
  const bool reads_sign = c.conversion == "d" || c.conversion == "i";
  uint64_t value = cut(bits.value, c.length, reads_sign);
  const size_t start = out.size();
  // An unsigned value of 64 bits stays what it is, even under %d.
  const bool is_negative = reads_sign && static_cast<int64_t>(value) < 0 && (bits.is_signed || !c.length.empty());
  if (is_negative) {
    out += '-';
    value = ~value + 1;
  } else if (reads_sign && has_flag(c, '+')) {
    out += '+';
  } else if (reads_sign && has_flag(c, ' ')) {
    out += ' ';
  }
  out += prefix_of(c, value);
  const size_t digits = out.size();
  if (value != 0 || precision != 0) append_digits(out, value, c.conversion);
  size_t wanted = precision > 0 ? static_cast<size_t>(precision) : 0;
  if (has_flag(c, '0') && !has_flag(c, '-') && precision == kNone && width > 0 &&
      static_cast<size_t>(width) > digits - start)
    wanted = static_cast<size_t>(width) - (digits - start);
  if (out.size() - digits < wanted) out.insert(digits, wanted - (out.size() - digits), '0');
  pad(out, start, c, width);
}

// ---- Buffers
// ----------------------------------------------------------------------------------------------------------

std::string bytes_of(const Value& value, const TextStyle& style) {
  if (const auto* v = std::get_if<BufferValue>(&value.node)) return v->bytes;
  return to_text(value, style);
}

std::string escaped(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '\\') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", byte);
    }
  }
  return out;
}

std::string hexadecimal(std::string_view bytes, std::string_view separator) {
  std::string out;
  for (const char c : bytes) {
    if (!out.empty()) out += separator;
    out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string text_for(const Value& value, const Conversion& c, const TextStyle& style) {
  if (c.conversion == "r") return escaped(bytes_of(value, style));
  if (c.conversion == "rx") return hexadecimal(bytes_of(value, style), "");
  if (c.conversion == "rh") return hexadecimal(bytes_of(value, style), " ");
  if (c.conversion == "gr") return gfp_flags(bits_of(value).value);
  return to_text(value, style);
}

bool is_number(const Conversion& c) {
  return std::string_view("diuoxXpb").find(c.conversion[0]) != std::string_view::npos && c.conversion.size() == 1;
}

void append_value(std::string& out, const Value& value, const Conversion& c, int width, int precision,
                  const TextStyle& style) {
  if (is_number(c)) return append_number(out, bits_of(value), c, width, precision);
  const size_t start = out.size();
  if (c.conversion == "c") {
    out += static_cast<char>(bits_of(value).value);
  } else {
    std::string text = text_for(value, c, style);
    if (precision >= 0 && text.size() > static_cast<size_t>(precision)) text.resize(static_cast<size_t>(precision));
    out += text;
  }
  pad(out, start, c, width);
}

// A plain `%d`, `%u`, `%s`: nothing but the value.
bool is_bare(const Conversion& c) { return c.flags.empty() && c.width == kNone && c.precision == kNone; }

// The common cases straight from the record's bytes; false where a Value has to be made.
bool append_plain(std::string& out, const types::Types& types, const program::EventField& field,
                  std::span<const std::byte> record, const Conversion& c) {
  const types::Type& type = types[field.type];
  if (!is_bare(c) || field.is_in_tail || field.offset_bytes + type.size_bytes > record.size()) return false;
  const std::byte* at = record.data() + field.offset_bytes;
  if (type.kind == types::Kind::kString && c.conversion == "s") {
    const auto* text = reinterpret_cast<const char*>(at);
    const size_t length = ::strnlen(text, type.count);
    if (length == type.count) return false;  // truncated: shown with the trailer
    out.append(text, length);
    return true;
  }
  const bool is_decimal = c.conversion == "d" || c.conversion == "u" || c.conversion == "s";
  if (type.kind != types::Kind::kInt || type.size_bytes > 8 || !is_decimal || c.length == "h" || c.length == "hh")
    return false;
  uint64_t bits = 0;
  std::memcpy(&bits, at, type.size_bytes);
  if (type.is_signed && c.conversion != "u") {
    const int unused = 64 - 8 * static_cast<int>(type.size_bytes);
    const fmt::format_int digits(static_cast<int64_t>(bits << unused) >> unused);
    out.append(digits.data(), digits.size());
  } else if (type.is_signed) {
    return false;
  } else {
    append_decimal(out, bits);
  }
  return true;
}

}  // namespace

Result<std::vector<Conversion>> parse_format(std::string_view format) {
  std::vector<Conversion> out;
  for (size_t at = format.find('%'); at != std::string_view::npos; at = format.find('%', at)) {
    if (at + 1 < format.size() && format[at + 1] == '%') {
      at += 2;
      continue;
    }
    out.push_back(TRY(ConversionReader(format, at + 1).read()));
    at = out.back().end;
  }
  return out;
}

namespace {

std::string unescape_percent(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text[i] == '%') ++i;
  }
  return out;
}

}  // namespace

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

void Formatter::append(std::string& out, std::span<const Value> values, const TextStyle& style) const {
  size_t next = 0;
  const auto take = [&]() -> const Value& {
    static const Value missing;
    return next < values.size() ? values[next++] : missing;
  };
  for (size_t i = 0; i < conversions_.size(); ++i) {
    const Conversion& c = conversions_[i];
    out += literals_[i];
    const int width = c.width == kFromArgument ? static_cast<int>(bits_of(take()).value) : c.width;
    const int precision = c.precision == kFromArgument ? static_cast<int>(bits_of(take()).value) : c.precision;
    append_value(out, take(), c, width, precision, style);
  }
  out += literals_.back();
}

void Formatter::append_record(std::string& out, const DecodeContext& context, const program::EventSchema& schema,
                              size_t first_field, std::span<const std::byte> record, const TextStyle& style) const {
  size_t next = first_field;
  const auto take = [&]() -> Value {
    return next < schema.fields.size() ? decode_field(context, schema.fields[next++], record) : Value{};
  };
  for (size_t i = 0; i < conversions_.size(); ++i) {
    const Conversion& c = conversions_[i];
    out += literals_[i];
    if (next < schema.fields.size() && append_plain(out, context.types, schema.fields[next], record, c)) {
      ++next;
      continue;
    }
    const int width = c.width == kFromArgument ? static_cast<int>(bits_of(take()).value) : c.width;
    const int precision = c.precision == kFromArgument ? static_cast<int>(bits_of(take()).value) : c.precision;
    append_value(out, take(), c, width, precision, style);
  }
  out += literals_.back();
}

}  // namespace espy::output

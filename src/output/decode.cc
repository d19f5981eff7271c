#include "output/decode.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <string_view>

#include "base/byte_reader.h"
#include "program/program.h"
#include "program/unwind_layout.h"
#include "types/parts.h"

namespace espy::output {

namespace {

using types::Kind;
using types::Type;
using types::TypeId;
using Bytes = std::span<const std::byte>;

Bytes part(Bytes bytes, size_t offset, size_t size) {
  if (offset >= bytes.size()) return {};
  return bytes.subspan(offset, std::min(size, bytes.size() - offset));
}

int64_t sign_extend(uint64_t value, uint32_t bits) {
  if (bits == 0 || bits >= 64) return static_cast<int64_t>(value);
  return static_cast<int64_t>(value << (64 - bits)) >> (64 - bits);
}

Value integer(const Type& type, uint64_t bits, uint32_t width_bits) {
  if (type.is_signed) return {sign_extend(bits, width_bits)};
  return {bits};
}

Value enumerated(const Type& type, uint64_t bits, uint32_t width_bits) {
  const int64_t number = type.is_signed ? sign_extend(bits, width_bits) : static_cast<int64_t>(bits);
  return {EnumValue{number, std::string(types::enumerator_name(type, number))}};
}

// "A|B" for a number whose bits all have names, "" for others. Enums of flags have three single bits or more, and
// hardly any other numbers: those that count have a third of them or more.
std::string flag_names(const Type& enumeration, uint64_t number) {
  constexpr size_t kFewestFlags = 3, kFlagsOfOther = 3;
  size_t flags = 0, others = 0;
  std::string out;
  uint64_t left = number;
  for (const types::Enumerator& each : enumeration.enumerators) {
    const auto bits = static_cast<uint64_t>(each.value);
    if (bits == 0) continue;
    ++(std::has_single_bit(bits) ? flags : others);
    if (!std::has_single_bit(bits) || (left & bits) == 0) continue;
    left &= ~bits;
    out += (out.empty() ? "" : "|") + each.name;
  }
  const bool are_flags = flags >= kFewestFlags && flags > kFlagsOfOther * others;
  return are_flags && left == 0 ? out : "";
}

std::string_view as_text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// A string that was read from memory and fills its buffer has probably been truncated. `bytes` may be shorter than the
// type.
StringValue string_value(const DecodeContext& context, const Type& type, Bytes bytes) {
  const std::string_view all = as_text(part(bytes, 0, type.count));
  std::string text(all.substr(0, all.find('\0')));
  const bool is_truncated = type.may_be_cut && text.size() + 1 >= type.count;
  TruncatedStrings* counter = context.truncated_strings;
  if (is_truncated && counter && type.count >= counter->limit_bytes) ++counter->count;
  return {std::move(text), is_truncated, type.may_be_cut};
}

std::string inet_text(Bytes bytes) {
  char text[INET6_ADDRSTRLEN] = "";
  const int family = static_cast<int>(load_le(bytes, 0, 4)) == AF_INET6 ? AF_INET6 : AF_INET;
  const Bytes address = part(bytes, 4, 16);
  if (address.size() == 16) ::inet_ntop(family, address.data(), text, sizeof(text));
  return text;
}

std::string mac_text(Bytes bytes) {
  const auto at = [&](size_t i) { return static_cast<unsigned>(load_le(bytes, i, 1)); };
  return fmt::format("{:02X}:{:02X}:{:02X}:{:02X}:{:02X}:{:02X}", at(0), at(1), at(2), at(3), at(4), at(5));
}

// The name without the offset, which only stacks show.
std::string symbol_text(const Frame& frame) {
  return frame.symbol.empty() ? fmt::format("{:#x}", frame.address) : frame.symbol;
}

// For display only. `long double` differs between CPUs.
std::string float_text(Bytes bytes, uint32_t size_bytes) {
  const uint64_t bits = load_le(bytes, 0, std::min(size_bytes, 8u));
  if (size_bytes == sizeof(float)) return fmt::format("{}", std::bit_cast<float>(static_cast<uint32_t>(bits)));
  return size_bytes == sizeof(double) ? fmt::format("{}", std::bit_cast<double>(bits)) : "null";
}

class Decoder {
 public:
  // Elements of an array may have many parts and few bytes, if that is what the program's author wants: those for which
  // nothing is left are null. A bit has one part, and structs around it.
  explicit Decoder(const DecodeContext& context, Bytes bytes)
      : context_(context), left_(kPartsWithoutBytes + kPartsOfByte * bytes.size()) {}

  Value decode(TypeId id, Bytes bytes) {
    if (left_ == 0) return {};
    --left_;
    const Type& type = context_.types[id];
    switch (type.kind) {
      case Kind::kVoid:
      case Kind::kFunction: return {};
      case Kind::kFloat: return {TextValue{float_text(bytes, type.size_bytes)}};
      case Kind::kBool: return {load_le(bytes, 0, 1) != 0};
      case Kind::kInt: return integer(type, load_le(bytes, 0, type.size_bytes), type.size_bytes * 8);
      case Kind::kEnum: return enumerated(type, load_le(bytes, 0, type.size_bytes), type.size_bytes * 8);
      case Kind::kPointer: return {PointerValue{load_le(bytes)}};
      case Kind::kArray: return array(type, bytes);
      case Kind::kString: return {string_value(context_, type, bytes)};
      case Kind::kBuffer:
        return {
            BufferValue{std::string(as_text(part(bytes, 4, std::min<uint64_t>(load_le(bytes, 0, 4), type.count))))}};
      case Kind::kTuple: return tuple(type, bytes);
      case Kind::kRecord:
      case Kind::kStruct: return record(type, bytes);
      default: return is_aggregation(type) ? aggregation(type, id, bytes) : resolved(type, id, bytes);
    }
  }

  // Decodes numbers that stand for something else.
  Value resolved(const Type& type, TypeId id, Bytes bytes) const {
    const Resolver& resolver = context_.resolver;
    const uint64_t number = load_le(bytes);
    switch (type.kind) {
      case Kind::kKernelStack:
      case Kind::kUserStack: return stack(type, id, bytes);
      case Kind::kKernelSymbol:
        return {TextValue{resolver.kernel_symbol ? symbol_text(resolver.kernel_symbol(number))
                                                 : fmt::format("{:#x}", number)}};
      case Kind::kUserSymbol: {
        const auto pid = static_cast<uint32_t>(load_le(bytes, 8, 4));
        if (load_le(bytes, 12, 4) != 0) return {TextValue{probe_text(Kind::kFunctionName, number)}};
        return {TextValue{resolver.user_symbol ? symbol_text(resolver.user_symbol(pid, number))
                                               : fmt::format("{:#x}", number)}};
      }
      case Kind::kInet: return {TextValue{inet_text(bytes)}};
      case Kind::kMac: return {TextValue{mac_text(bytes)}};
      case Kind::kUsername: {
        const auto uid = static_cast<uint32_t>(number & UINT32_MAX);
        return {TextValue{resolver.username ? resolver.username(uid) : std::to_string(uid)}};
      }
      case Kind::kTimestamp: return {TextValue{timestamp(number, bytes), true}};
      case Kind::kCgroupPath:
        return {TextValue{resolver.cgroup_path ? resolver.cgroup_path(number) : std::to_string(number)}};
      case Kind::kProbeName:
      case Kind::kFunctionName:
      case Kind::kProbeType: return {TextValue{probe_text(type.kind, number)}};
      default: return {number};
    }
  }

 private:
  std::string timestamp(uint64_t ns, Bytes bytes) const {
    const uint64_t index = load_le(bytes, 8, 4);
    if (!context_.resolver.timestamp || index >= context_.literals.size()) return std::to_string(ns);
    return context_.resolver.timestamp(context_.literals[index], ns, static_cast<uint32_t>(load_le(bytes, 12, 4)));
  }

  std::string probe_text(Kind kind, uint64_t index) const {
    const program::Probe* probe = context_.resolver.probe ? context_.resolver.probe(index) : nullptr;
    return probe == nullptr ? std::to_string(index) : program::probe_name_text(kind, *probe);
  }

  Value array(const Type& type, Bytes bytes) {
    ListValue out;
    const size_t size = context_.types[type.element].size_bytes;
    for (uint32_t i = 0; i < type.count; ++i) out.items.push_back(decode(type.element, part(bytes, i * size, size)));
    return {std::move(out)};
  }

  Value member(const types::Member& member, Bytes bytes) {
    const Type& type = context_.types[member.type];
    if (member.bit_size == 0) return decode(member.type, part(bytes, member.offset_bytes(), type.size_bytes));
    // A bit-field may start within a byte, and one that is packed reach into a ninth.
    const uint32_t shift = member.offset_bits % 8;
    uint64_t raw = load_le(bytes, member.offset_bytes()) >> shift;
    if (shift + member.bit_size > 64) raw |= load_le(bytes, member.offset_bytes() + 8, 1) << (64 - shift);
    const uint64_t bits = member.bit_size >= 64 ? raw : raw & ((uint64_t{1} << member.bit_size) - 1);
    if (type.kind == Kind::kEnum) return enumerated(type, bits, member.bit_size);
    if (type.kind == Kind::kBool) return {bits != 0};
    return integer(type, bits, member.bit_size);
  }

  Value tuple(const Type& type, Bytes bytes) {
    TupleValue out;
    out.items.reserve(type.members.size());
    for (const types::Member& each : type.members) out.items.push_back(member(each, bytes));
    return {std::move(out)};
  }

  Value record(const Type& type, Bytes bytes) {
    if (context_.shows_addresses && is_internet_address(type)) return {TextValue{address_text(bytes)}};
    RecordValue out;
    RecordNames names;
    if (!type.name.empty()) names.type = (type.is_union ? "union " : "struct ") + type.name;
    append_members(out, names.members, type, bytes);
    out.names = std::make_shared<const RecordNames>(std::move(names));
    return {std::move(out)};
  }

  // ---- Network addresses: most members have no type of their own, so names decide

  static constexpr uint32_t kMacBytes = 6, kIpv4Bytes = 4, kIpv6Bytes = 16;

  static bool is_internet_address(const Type& type) { return type.name == "in_addr" || type.name == "in6_addr"; }

  // `__be32 saddr` is an unsigned integer of four bytes, `unsigned char h_dest[ETH_ALEN]` an array of six.
  bool is_address(const types::Member& member, const Type& type) const {
    const std::string_view name = member.name;
    if (type.kind == Kind::kInt)
      return type.size_bytes == kIpv4Bytes && !type.is_signed && member.bit_size == 0 &&
             (name.ends_with("addr") || name.ends_with("address"));
    if (type.kind != Kind::kArray || type.size_bytes != kMacBytes || context_.types[type.element].size_bytes != 1)
      return false;
    return name.ends_with("addr") || name.ends_with("mac") || name == "h_dest" || name == "h_source";
  }

  static std::string address_text(Bytes bytes) {
    if (bytes.size() == kMacBytes) return mac_text(bytes);
    char text[INET6_ADDRSTRLEN] = "";
    if (bytes.size() == kIpv4Bytes) ::inet_ntop(AF_INET, bytes.data(), text, sizeof(text));
    if (bytes.size() == kIpv6Bytes) ::inet_ntop(AF_INET6, bytes.data(), text, sizeof(text));
    return text;
  }

  // Returns the name of the variant that a Rust enum has.
  static std::string variant_of(const Type& variants, const types::Member& discriminant, Bytes bytes) {
    const uint64_t number = load_le(bytes, discriminant.offset_bytes(), variants.size_bytes);
    return std::string(types::enumerator_name(variants, static_cast<int64_t>(number)));
  }

  // A member as print_addresses shows it.
  Value explained_member(const types::Member& each, const Type& type, Bytes bytes) {
    const Bytes own = part(bytes, each.offset_bytes(), type.size_bytes);
    if (is_address(each, type)) return {TextValue{address_text(own)}};
    if (each.is_big_endian) {
      uint64_t number = 0;
      for (const std::byte byte : own) number = number << 8 | std::to_integer<uint64_t>(byte);
      return {TextValue{fmt::format("{} (be{})", number, type.size_bytes * 8)}};
    }
    Value out = member(each, bytes);
    if (auto* value = std::get_if<EnumValue>(&out.node); value != nullptr && value->name.empty())
      value->name = flag_names(type, static_cast<uint64_t>(value->number));
    return out;
  }

  // Members of an anonymous struct or union are members of the outer one, as in C. Variants that the value does not
  // have are left out: their bytes are those of another one.
  void append_members(RecordValue& out, std::vector<std::string>& names, const Type& type, Bytes bytes) {
    const Type* variants = types::variants_of(context_.types, type);
    const std::string active = variants ? variant_of(*variants, type.members[0], bytes) : "";
    for (const types::Member& each : type.members) {
      if (variants && each.name != active && types::is_variant(*variants, each)) continue;
      const Type& inner = context_.types[each.type];
      if (each.name.empty() && inner.kind == Kind::kStruct) {
        if (left_ == 0) return;
        --left_;
        append_members(out, names, inner, part(bytes, each.offset_bytes(), inner.size_bytes));
        continue;
      }
      names.push_back(each.name);
      out.items.push_back(context_.shows_addresses ? explained_member(each, inner, bytes) : member(each, bytes));
    }
  }

  Value stack(const Type& type, TypeId id, Bytes bytes) const {
    StackValue out;
    out.mode = static_cast<uint8_t>(type.stack_mode);
    out.is_user = type.kind == Kind::kUserStack;
    const auto reference = static_cast<int64_t>(load_le(bytes));
    const auto pid = static_cast<uint32_t>(load_le(bytes, 8, 4));
    if (reference < 0) {
      // EFAULT: the thread has no user or kernel stack. EEXIST: no room (program::StackMaps).
      constexpr int64_t kLastError = -4095;
      if (reference == -EEXIST)
        out.problem = std::make_shared<const std::string>("stack missing: more different stacks than max_stacks");
      else if (reference != -EFAULT)
        out.problem = std::make_shared<const std::string>(
            fmt::format("stack missing: {}", std::strerror(static_cast<int>(-std::max(reference, kLastError)))));
      return {std::move(out)};
    }
    const bool is_unwound = out.is_user && load_le(bytes, 12, 4) != 0;
    const output::Resolver& resolver = context_.resolver;
    std::vector<uint64_t> addresses;
    if (is_unwound && resolver.unwound_stack)
      addresses = resolver.unwound_stack(id, static_cast<uint64_t>(reference));
    else if (!is_unwound && resolver.stack)
      addresses = resolver.stack(id, reference & UINT32_MAX);
    bool is_caller = false;
    for (const uint64_t address : addresses) {
      append_frames(out, {address, out.is_user ? pid : 0, out.is_user, is_caller, type.stack_mode});
      // A signal interrupts between two instructions: the address is not a return address.
      const std::string& symbol = out.frames.back()->symbol;
      is_caller = symbol.empty() || symbol != resolver.signal_trampoline;
    }
    const size_t limit = is_unwound ? type.count : std::min(type.count, program::kWholeStackFrames);
    const bool has_names = type.stack_mode == types::StackMode::kBpftrace || type.stack_mode == types::StackMode::kPerf;
    if (type.count >= program::kWholeStackFrames && addresses.size() >= limit && has_names) {
      static const auto kMark = std::make_shared<const Frame>(Frame{0, std::string(kTruncated), 0, {}, {}});
      out.frames.push_back(kMark);
    }
    return {std::move(out)};
  }

  void append_frames(StackValue& stack, const FrameKey& key) const {
    FrameCache none;
    const auto [known, is_new] = (context_.frames != nullptr ? *context_.frames : none).try_emplace(key);
    if (is_new)
      for (Frame& frame : frames_of(key)) known->second.push_back(std::make_shared<Frame>(std::move(frame)));
    stack.frames.insert(stack.frames.end(), known->second.begin(), known->second.end());
  }

  std::vector<Frame> frames_of(const FrameKey& key) const {
    const output::Resolver& resolver = context_.resolver;
    if (key.is_user && resolver.user_frames) return resolver.user_frames(key.pid, key.address, key.mode, key.is_caller);
    if (!key.is_user && resolver.kernel_symbol) return {resolver.kernel_symbol(key.address)};
    return {Frame{key.address, {}, 0, {}, {}}};
  }

  Value aggregation(const Type&, TypeId id, Bytes bytes) const { return decode_per_cpu(context_, id, bytes, 1); }

  static constexpr size_t kPartsWithoutBytes = 1 << 16;
  static constexpr size_t kPartsOfByte = 16;

  const DecodeContext& context_;
  size_t left_;  // parts that may be decoded
};

}  // namespace

Value decode(const DecodeContext& context, types::TypeId type, std::span<const std::byte> bytes) {
  return Decoder(context, bytes).decode(type, bytes);
}

Value decode_field(const DecodeContext& context, const program::EventField& field, std::span<const std::byte> record) {
  const types::Type& type = context.types[field.type];
  if (!field.is_in_tail) return decode(context, field.type, part(record, field.offset_bytes, type.size_bytes));
  const size_t offset = load_le(record, field.offset_bytes, 4);
  const size_t length = load_le(record, field.offset_bytes + 4, 4);
  if (type.kind == Kind::kBuffer) return {BufferValue{std::string(as_text(part(record, offset, length)))}};
  return {
      string_value(context, type, part(record, offset, std::min<size_t>(length, types::capacity_with_nul(type) - 1)))};
}

bool is_unset(std::span<const std::byte> bytes, uint32_t cpu_count, uint32_t stride_bytes) {
  for (uint32_t cpu = 0; cpu < cpu_count; ++cpu)
    if (load_le(bytes, size_t{cpu} * stride_bytes) != 0) return false;
  return true;
}

}  // namespace espy::output

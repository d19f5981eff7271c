// Network addresses.
#include <arpa/inet.h>
#include <sys/socket.h>

#include <cstring>

#include "builtins/common.h"

namespace espy::builtins {

namespace {

using check::Checker;
using ir::ValueId;
using lower::Lowering;
using lower::Operand;
using spec::CallSite;
using types::Kind;
using types::TypeId;

constexpr uint32_t kV4Bytes = 4;
constexpr uint32_t kV6Bytes = 16;
constexpr uint32_t kInetBytes = 20;
constexpr uint32_t kMacBytes = 6;

// ---- ntop([family,] address) ----------------------------------------------------------------------------------------

TypeId check_ntop(Checker& checker, const CallSite& call) {
  const syntax::ExprId address = call.arguments.back();
  const types::Type& type = checker.types()[checker.type(address)];
  const bool is_bytes = type.kind == Kind::kArray || type.kind == Kind::kString || type.kind == Kind::kBuffer;
  const uint32_t size = type.kind == Kind::kBuffer ? type.count : type.size_bytes;
  const bool fits =
      types::is_integer(type) || type.kind == Kind::kPointer || (is_bytes && (size == kV4Bytes || size == kV6Bytes));
  if (!fits) {
    checker.error("wrong-argument", checker.ast()[address].span,
                  "an address must be an integer or an array of 4 or 16 bytes, not " +
                      to_string(checker.types(), checker.type(address)));
  }
  if (call.arguments.size() > 1 && !types::is_integer(checker.types()[checker.type(call.arguments[0])]))
    checker.error("wrong-argument", checker.ast()[call.arguments[0]].span, "the family must be AF_INET or AF_INET6");
  return checker.types().simple(Kind::kInet);
}

// An integer is an IPv4 address in network byte order, as in memory.
Operand lower_ntop(Lowering& lowering, const CallSite& call) {
  ir::Builder& ir = lowering.ir();
  const syntax::ExprId given = call.arguments.back();
  const types::Type type = lowering.types()[lowering.type(given)];
  Operand out{lowering.types().simple(Kind::kInet), lowering.memory(kInetBytes, "inet"), true};
  lowering.zero(out.value, kInetBytes);
  const ValueId bytes_out = ir.binary(ir::Op::k_add, out.value, 4);
  uint32_t size = kV4Bytes;
  if (types::is_integer(type)) {
    ir.store(4, bytes_out, lowering.scalar(given));
  } else {
    const MemoryRef source = referenced_memory(lowering, given);
    const uint32_t size_bytes = type.kind == Kind::kBuffer ? type.count : type.size_bytes;
    const bool is_v6 = type.kind != Kind::kPointer && size_bytes >= kV6Bytes;
    const bool is_v6_behind_pointer =
        type.kind == Kind::kPointer && call.arguments.size() > 1 && lowering.integer(call.arguments[0]) == AF_INET6;
    if (is_v6 || is_v6_behind_pointer) size = kV6Bytes;
    // The address is at offset 4 of the value, which is not aligned for 16 bytes: read to an aligned buffer, then copy.
    const ValueId bytes = lowering.memory(size, "address");
    lowering.read(bytes, size, source.address, source.space);
    for (uint32_t at = 0; at < size; at += 4) ir.store(4, bytes_out, ir.load(4, bytes, at), at);
  }
  const ValueId family = call.arguments.size() > 1 ? lowering.scalar(call.arguments[0])
                                                   : ir.constant(size == kV6Bytes ? AF_INET6 : AF_INET);
  ir.store(4, out.value, family);
  return out;
}

// ---- pton("ADDRESS"): bytes at compile time -------------------------------------------------------------------------

std::string parse_address(const std::string& text) {
  char bytes[kV6Bytes];
  if (::inet_pton(AF_INET, text.c_str(), bytes) == 1) return {bytes, kV4Bytes};
  if (::inet_pton(AF_INET6, text.c_str(), bytes) == 1) return {bytes, kV6Bytes};
  return {};
}

TypeId check_pton(Checker& checker, const CallSite& call) {
  const auto text = checker.text(call.arguments[0]);
  const std::string bytes = text ? parse_address(*text) : std::string();
  if (text && bytes.empty()) {
    checker.error("bad-address", checker.ast()[call.arguments[0]].span,
                  "`" + *text + "` is neither an IPv4 nor an IPv6 address");
  }
  const auto size = static_cast<uint32_t>(bytes.empty() ? kV4Bytes : bytes.size());
  return checker.types().array(checker.types().int_type(1, false), size);
}

Operand lower_pton(Lowering& lowering, const CallSite& call) {
  const std::string bytes = parse_address(*lowering.text(call.arguments[0]));
  return {lowering.type(call.expr), lowering.constant_bytes(bytes), true};
}

// ---- macaddr, socket_cookie

// The helper accepts only trusted pointers: the arguments of fentry and fexit. For other pointers, the cookie is read
// from the socket; the kernel generates it on first use, so it can still be 0.
bool is_trusted(Lowering& lowering, syntax::ExprId socket) {
  const program::ProgramKind kind = lowering.unit().context.kind;
  if (kind != program::ProgramKind::kFentry && kind != program::ProgramKind::kFexit) return false;
  const types::Type& pointer = lowering.types()[lowering.type(socket)];
  return lowering.unit().fact(socket).field && pointer.kind == Kind::kPointer &&
         lowering.types()[pointer.element].name == "sock";
}

TypeId check_cookie(Checker& checker, const CallSite& call) {
  if (!checker.kernel().find_struct(checker.types(), "sock").valid())
    checker.error("no-btf", call.span, "`socket_cookie` needs the type information of the kernel (BTF)");
  return checker.types().uint64();
}

Operand lower_cookie(Lowering& lowering, const CallSite& call) {
  const TypeId result = lowering.types().uint64();
  const ir::ValueId socket = lowering.scalar(call.arguments[0]);
  if (is_trusted(lowering, call.arguments[0]))
    return lowering.scalar_operand(result, lowering.ir().call(ir::Helper::get_socket_cookie, {socket}));
  const TypeId sock = lowering.kernel().find_struct(lowering.types(), "sock");
  const Operand found = kernel_member(lowering, socket, sock, {"__sk_common", "skc_cookie", "counter"});
  return lowering.scalar_operand(result, found.value);
}

TypeId check_macaddr(Checker& checker, const CallSite& call) {
  const TypeId given = checker.type(call.arguments[0]);
  if (checker.types()[given].kind == Kind::kStruct) checker.kernel().complete(checker.types(), given);
  const types::Type& type = checker.types()[given];
  const bool is_address = types::is_integer(type) || type.kind == Kind::kPointer;
  if (!is_address && own_bytes(type).value_or(0) < kMacBytes)
    checker.error("wrong-argument", checker.ast()[call.arguments[0]].span,
                  "a hardware address must be at a pointer, or in at least 6 bytes, not `" +
                      to_string(checker.types(), given) + "`");
  return checker.types().simple(Kind::kMac);
}

Operand lower_macaddr(Lowering& lowering, const CallSite& call) {
  const MemoryRef source = referenced_memory(lowering, call.arguments[0]);
  Operand out{lowering.types().simple(Kind::kMac), lowering.memory(kMacBytes, "mac"), true};
  lowering.read(out.value, kMacBytes, source.address, source.space);
  return out;
}

constexpr spec::Builtin kRows[] = {
    {.sig = "inet ntop(any family, any address = family)",
     .doc = "An IP address, printed as text: from an integer (IPv4, in network byte order) or from 4 or 16 bytes. The "
            "address family is optional.",
     .check = check_ntop,
     .lower = lower_ntop,
     .example = "begin { printf(\"%s %s\\n\", ntop(0x0100007f), ntop(pton(\"::1\"))); }"},
    {.sig = "any pton(literal string address)",
     .doc = "The bytes of an IPv4 or IPv6 address, in network byte order.",
     .check = check_pton,
     .lower = lower_pton,
     .example = "begin { print(pton(\"127.0.0.1\")); }"},
    {.sig = "macaddr macaddr(any p)",
     .doc = "The hardware address in the 6 bytes at `p`.",
     .check = check_macaddr,
     .lower = lower_macaddr,
     .example = "begin { print(macaddr(\"abcdef\")); }"},
    {.sig = "any socket_cookie(pointer socket)",
     .doc = "The kernel's unique id of a `struct sock *`. fentry and fexit probes generate it on first use; in other "
            "probes it is 0 until something has generated it.",
     .check = check_cookie,
     .lower = lower_cookie,
     .kept = spec::Kept::kYes,
     .example = "rawtracepoint:tcp_retransmit_skb { print(socket_cookie(args.sk)); }"},
};

}  // namespace

extern const spec::BuiltinFamily kNet = {.title = "Addresses of networks", .rows = kRows};

}  // namespace espy::builtins

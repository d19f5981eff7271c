// skboutput(): writes packets to a file for packet analyzers.
//
// The format is pcap with nanoseconds: a file header of 24 bytes; for each packet, a header of 16 bytes and the
// captured bytes.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/files.h"
#include "builtins/builtin_support.h"
#include "runtime/handler_context.h"

namespace espy::builtins {

namespace {

using check::Checker;
using ir::Condition;
using ir::Helper;
using ir::Op;
using ir::ValueId;
using lower::Lowering;
using lower::Operand;
using runtime::EventRecord;
using spec::CallSite;
using types::TypeId;

constexpr uint32_t kMaxBytes = 9000;  // a jumbo frame
constexpr uint32_t kNsPerSecond = 1'000'000'000;

TypeId check_skboutput(Checker& checker, const CallSite& call) {
  if (!checker.kernel().find_struct(checker.types(), "sk_buff").valid())
    checker.error("no-btf", call.span, "`skboutput` needs the type information of the kernel (BTF)");
  return checker.types().int_type(4, false);
}

ValueId unsigned_min(Lowering& lowering, ValueId a, ValueId b) {
  return lowering.select(
      Condition::ult, a, b, [&] { return a; }, [&] { return b; });
}

// Reads the linear part of the packet: its headers, and its payload unless the driver put that in separate pages.
Operand lower_skboutput(Lowering& lowering, const CallSite& call) {
  ir::Builder& ir = lowering.ir();
  types::Types& types = lowering.types();
  const TypeId type = lowering.kernel().find_struct(types, "sk_buff");
  const auto member = [&](ValueId packet, std::string_view name) {
    return kernel_member(lowering, packet, type, {name}).value;
  };
  const ValueId packet = lowering.scalar(call.arguments[1]);
  const ValueId max_length = lowering.scalar(call.arguments[2]);
  const ValueId skipped = lowering.scalar(call.arguments[3]);
  const uint32_t capacity = static_cast<uint32_t>(
      std::clamp<int64_t>(lowering.integer(call.arguments[2]).value_or(kMaxBytes), 1, int64_t{kMaxBytes}));
  const ValueId length = member(packet, "len");
  const ValueId linear = ir.binary(Op::k_sub, length, member(packet, "data_len"));
  const ValueId available = lowering.select(
      Condition::ult, skipped, linear, [&] { return ir.binary(Op::k_sub, linear, skipped); },
      [&] { return ir.constant(0); });
  const ValueId size = bounded(lowering, unsigned_min(lowering, max_length, available), capacity);

  const TypeId buffer = types.buffer(capacity);
  const ValueId bytes = lowering.memory(types[buffer].size_bytes, "packet");
  lowering.zero(bytes, 8);
  // Small buffers are copied to the record in full, so all of their bytes must be initialized.
  if (capacity <= 64) lowering.zero(bytes, types[buffer].size_bytes);
  ir.store(4, bytes, size);
  const ValueId source = ir.binary(Op::k_add, member(packet, "data"), skipped);
  ir.call(Helper::probe_read_kernel, {ir.binary(Op::k_add, bytes, 4), size, source});

  const Operand now = lowering.scalar_operand(types.uint64(), ir.call(Helper::ktime_get_boot_ns, {}));
  const Operand original_length = lowering.scalar_operand(types.uint64(), ir.binary(Op::k_sub, length, skipped));
  lowering.emit_event("skboutput", {{{}, now}, {{}, original_length}, {{}, {buffer, bytes, true}}}, call.span,
                      {*lowering.text(call.arguments[0])});
  return lowering.scalar_operand(types.int_type(4, false), ir.constant(0));
}

// ---- The file

struct FileHeader {
  uint32_t magic = 0xa1b23c4d;  // nanoseconds
  uint16_t major = 2, minor = 4;
  uint32_t zone = 0, accuracy = 0;
  uint32_t max_packet_bytes = 65535;
  uint32_t link_type = 101;  // LINKTYPE_RAW: packets of IP
};
static_assert(sizeof(FileHeader) == 24);

struct PacketHeader {
  uint32_t seconds = 0, nanoseconds = 0;
  uint32_t captured_bytes = 0, original_bytes = 0;
};

std::string_view bytes_of(const EventRecord& event, size_t index) {
  const program::EventField& field = event.schema().fields[index];
  const auto* record = reinterpret_cast<const char*>(event.bytes().data());
  uint32_t offset_and_length[2] = {};  // in the tail: offset, length; otherwise: length, bytes
  std::memcpy(offset_and_length, record + field.offset_bytes, sizeof(offset_and_length));
  return field.is_in_tail ? std::string_view(record + offset_and_length[0], offset_and_length[1])
                          : std::string_view(record + field.offset_bytes + 4, offset_and_length[0]);
}

// Whether the file begins as one of packets that skboutput() writes. Packets come from other machines: they are not
// appended to a file that means something else by its lines.
bool has_header(int file) {
  FileHeader found;
  const FileHeader own;
  return ::pread(file, &found, sizeof(found), 0) == sizeof(found) && found.magic == own.magic &&
         found.link_type == own.link_type;
}

// Appends `packet` to the file whole, or not at all: readers of pcap find nothing behind a part of one.
Status append_packet(const std::string& path, std::string_view packet) {
  struct stat state = {};
  const bool is_stream = ::stat(path.c_str(), &state) == 0 && !S_ISREG(state.st_mode);
  const OwnedFd file = TRY(open_output(path, (is_stream ? O_WRONLY : O_RDWR) | O_CREAT | O_APPEND, 0600));
  const off_t end = is_stream ? -1 : ::lseek(file.get(), 0, SEEK_END);
  if (end > 0 && !has_header(file.get()))
    return fail(fmt::format("cannot write to {}: it has something else than packets of skboutput()", path));
  std::string out;
  if (end == 0) {
    const FileHeader header;
    out.append(reinterpret_cast<const char*>(&header), sizeof(header));
  }
  out.append(packet);
  const Status written = write_all(file.get(), out);
  if (!written && end >= 0 && ::ftruncate(file.get(), end) < 0) return fail_errno("cannot write to " + path, errno);
  return written ? Status() : fail_errno("cannot write to " + path, written.error().code);
}

// Appends to an existing file.
void handle_skboutput(EventRecord& event) {
  const std::string& path = event.schema().literals[0];
  const int64_t since_1970 =
      event.integer(0) + static_cast<int64_t>(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME));
  const std::string_view bytes = bytes_of(event, 2);
  const PacketHeader header{static_cast<uint32_t>(since_1970 / kNsPerSecond),
                            static_cast<uint32_t>(since_1970 % kNsPerSecond), static_cast<uint32_t>(bytes.size()),
                            static_cast<uint32_t>(event.integer(1))};
  std::string packet(reinterpret_cast<const char*>(&header), sizeof(header));
  packet.append(bytes);
  if (const Status done = append_packet(path, packet); !done)
    event.context().sink().message("runtime_error", done.error().message, "", 0, 0, 0);
}

constexpr spec::Builtin kPacketRows[] = {
    {.sig = "uint32 skboutput(literal string path, pointer packet, int length, int offset)",
     .doc = "Appends a packet, a `struct sk_buff *`, to a new pcap file. It writes at most `length` bytes from "
            "`offset` of "
            "the data, where the IP header begins. The file has packets without link layer headers, and only the "
            "linear part of each packet.",
     .check = check_skboutput,
     .lower = lower_skboutput,
     .handle = handle_skboutput,
     .example = "rawtracepoint:net_dev_queue { skboutput(\"packets.pcap\", args.skb, 1500, 14); }"},
};

}  // namespace

extern const spec::BuiltinFamily kPacket = {.title = "Packets", .rows = kPacketRows};

// ---- Network addresses.

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

constexpr spec::Builtin kNetRows[] = {
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

extern const spec::BuiltinFamily kNet = {.title = "Addresses of networks", .rows = kNetRows};

}  // namespace espy::builtins

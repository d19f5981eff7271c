// skboutput(): writes packets to a file for packet analyzers.
//
// The format is pcap with nanoseconds: a file header of 24 bytes; for each packet, a header of 16 bytes and the
// captured bytes.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/fd.h"
#include "base/output_file.h"
#include "builtins/common.h"
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

constexpr spec::Builtin kRows[] = {
    {.sig = "uint32 skboutput(literal string path, pointer packet, int length, int offset)",
     .doc = "Appends a packet, a `struct sk_buff *`, to a pcap file that it has made: at most `length` bytes, from "
            "`offset` of its "
            "data, where its IP header begins: the file is one of packets without link layer headers. Only the "
            "packet's linear part is captured.",
     .check = check_skboutput,
     .lower = lower_skboutput,
     .handle = handle_skboutput,
     .example = "rawtracepoint:net_dev_queue { skboutput(\"packets.pcap\", args.skb, 1500, 14); }"},
};

}  // namespace

extern const spec::BuiltinFamily kPacket = {.title = "Packets", .rows = kRows};

}  // namespace espy::builtins

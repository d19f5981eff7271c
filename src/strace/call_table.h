// strace: `espy strace`, system calls as strace(1) shows them.
//
// Takes the options of the command. The script of capture_script.h copies calls, and the memory that they point to, to
// records. call_decoder.h makes text of records, and call_tracer.h makes lines.
//
// The arguments of each call are in calls.def, their kinds in kinds.def, the names of flags in constants.def.
//
// CallTable: calls.def and constants.def for one CPU.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/arch/arch.h"

namespace espy::strace {

enum class Kind : uint8_t {
#define KIND(name, capture, number) k_##name,
#include "strace/kinds.def"
#undef KIND
  k_end
};

// The memory at an argument that is read.
enum class Capture : uint8_t {
  kNothing,
  kPath,        // up to its NUL
  kText,        // the same, as much of it as is shown
  kBytes,       // as many as another argument says, or as the result says
  kStruct,      // a known number of bytes
  kArray,       // elements of a known size, as many as another argument or the result says
  kSocket,      // an address of a socket: another argument is the length or, when it is filled, points to it
  kVector,      // iovecs, and what they point to
  kMessage,     // struct msghdr, and what it points to
  kTexts,       // an array of pointers to texts, which ends with a null pointer
  kCount,       // the same, only how many there are
  kEntries,     // of a directory, only how many there are
  kSelect,      // the sets of select(), and its timeout
  kSockOption,  // a value of a length that another argument says or points to
};

constexpr int8_t kByResult = 6;  // Argument::by
constexpr int8_t kByNothing = -1;

struct Argument {
  Kind kind = Kind::k_addr;
  bool is_filled = false;     // by the call: it is read when the call returns
  int8_t by = kByNothing;     // the index of another argument, or kByResult
  std::string_view set = {};  // of flags and enumerations
};

enum class ResultKind : uint8_t { kNumber, kUnsigned, kAddress, kHex, kMode, kNone, kFcntl, kPoll, kSelect, kSignal };

// A system call of calls.def.
struct Call {
  std::string_view name;
  std::vector<Argument> arguments;
  ResultKind result = ResultKind::kNumber;
  bool returns_fd = false;
};

struct KindRow {
  std::string_view name;
  Capture capture;
  uint16_t number;
};
const KindRow& row_of(Kind kind);

// Names of constants with their values on a CPU.
struct ConstantSet {
  std::string_view unknown;  // "MAP_???"
  std::vector<std::pair<std::string_view, uint64_t>> names;

  // Returns "" if no name has the value.
  std::string_view name_of(uint64_t value) const;
};

class CallTable {
 public:
  explicit CallTable(const kernel::Arch& arch);

  static constexpr uint32_t kNumbers = 512;  // calls from this number on have no row
  // Returns null if the number has no call, or its call no row.
  const Call* find(uint64_t number) const { return number < kNumbers ? by_number_[number] : nullptr; }
  // Returns the name in the table of the kernel, also for a call without a row; "" if there is no such call.
  std::string_view name_of(uint64_t number) const { return number < kNumbers ? names_[number] : std::string_view(); }
  // Requires a set of constants.def. Sets are made when they are first used.
  const ConstantSet& set(std::string_view name) const;
  const kernel::Arch& arch() const { return arch_; }

 private:
  const kernel::Arch& arch_;
  std::vector<Call> calls_;
  std::array<const Call*, kNumbers> by_number_ = {};
  std::array<std::string_view, kNumbers> names_ = {};
  mutable std::vector<std::pair<std::string_view, ConstantSet>> sets_;
};

}  // namespace espy::strace

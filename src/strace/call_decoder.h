// Decoder: the arguments and the result of a system call as text, as strace(1) 6.1 shows them.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strace/call_table.h"

namespace espy::strace {

struct Style {
  uint32_t text_bytes = 32;  // -s: of texts and buffers
  uint32_t hex_texts = 0;    // -x: 1: texts that cannot be printed, 2: all
  bool is_verbose = false;   // -v: all members
};

// The memory of a process that a call points to, as far as it was read.
class CallMemory {
 public:
  void add_bytes(uint64_t address, std::string_view bytes);
  void add_text(uint64_t address, std::string_view text);
  // Adds the memory that was read at the return of the call.
  void add_at_return(CallMemory later);

  // The bytes from an address on, at most `size_bytes`: the last ones that were read or, if `is_at_entry`, the first.
  // nullopt: none were.
  std::optional<std::string_view> bytes(uint64_t address, uint64_t size_bytes, bool is_at_entry = false) const;
  std::optional<std::string_view> text(uint64_t address) const;
  std::optional<uint64_t> pointer(uint64_t address) const;

 private:
  struct Piece {
    uint64_t address;
    std::string bytes;
    bool is_at_return = false;
  };
  std::vector<Piece> pieces_, texts_;
};

// A call of a thread.
struct CallState {
  const Call* call = nullptr;  // null: it has no row
  uint64_t number = 0;
  bool is_compat = false;  // of 32-bit code
  uint64_t arguments[6] = {};
  uint64_t began_ns = 0;
  uint64_t count = 0;  // of texts or entries; kUnknownCount
  bool has_returned = false;
  int64_t result = 0;
  CallMemory memory;
  size_t shown = 0;        // arguments that the line has already
  bool has_comma = false;  // the comma after them is there, too

  bool has_failed() const { return has_returned && result < 0 && result >= -4095; }
};

class Decoder {
 public:
  Decoder(const CallTable& table, const Style& style) : table_(table), style_(style) {}

  // Appends the name and the parenthesis.
  void show_name(const CallState& state, std::string& out);
  // Appends the arguments that are known. Before the return, it stops at the first one that the call fills, and
  // continues there after the return.
  void show_arguments(CallState& state, std::string& out);
  // Appends what follows `= `.
  void show_result(const CallState& state, std::string& out);
  // Appends `SIGCHLD {si_signo=...}`.
  void show_signal(int signal, std::string_view info, std::string& out);
  std::string name_of(const CallState& state) const;
  const Call* row_of_call(uint64_t number) const { return table_.find(number); }
  std::string signal_name(uint64_t signal) const;

  // Addresses that are shown because what they point to was not in memory.
  uint64_t missing() const { return missing_; }

 private:
#define KIND(name, capture, number) void show_##name();
#include "strace/kinds.def"
#undef KIND
  void show_argument(size_t index);
  bool is_optional_and_absent(size_t index) const;

  // ---- The current argument
  uint64_t value(size_t index) const { return state_->arguments[index]; }
  uint64_t value() const { return value(index_); }
  const Argument& argument() const { return state_->call->arguments[index_]; }
  uint64_t length() const;  // what `by` says
  bool has_failed() const { return state_->has_failed(); }
  bool is_named(std::string_view name) const { return state_->call->name == name; }

  static int64_t as_int(uint64_t number) { return static_cast<int32_t>(number); }
  static constexpr uint64_t kLow32Bits = 0xffffffff;

  // ---- Pieces of text
  void put(std::string_view text) { *out_ += text; }
  void next() { put(", "); }
  void decimal(int64_t number);
  void unsigned_decimal(uint64_t number);
  void hex(uint64_t number);      // 0 is "0"
  void pointer(uint64_t number);  // 0 is NULL
  void octal(uint64_t number);
  void flags(std::string_view set, uint64_t bits);
  bool flags_in(const ConstantSet& set, uint64_t& bits, bool is_first);  // returns whether one was shown
  void one_of(std::string_view set, uint64_t number);
  void quoted(std::string_view bytes, bool is_cut, bool is_hex = false);
  void text_at(uint64_t address, bool is_path);
  void bytes_at(uint64_t address, uint64_t size_bytes, bool is_hex = false);
  void file_mode(uint64_t mode);
  void open_flags(uint64_t bits);
  void signal_set(uint64_t bits);
  void device(uint64_t number);
  void date(int64_t seconds, int64_t nanoseconds);
  void time_at(uint64_t address, std::string_view fraction);
  void time_of(int64_t seconds, int64_t fraction, std::string_view name);
  // A struct itimerval or itimerspec: `fraction_name` is tv_usec or tv_nsec.
  void show_timer(std::string_view fraction_name);
  void socket_address(std::string_view bytes);
  void vector_at(uint64_t address, uint64_t count, uint64_t most_bytes);
  void control_messages(std::string_view bytes);
  void poll_results();
  void select_sets(bool is_result);
  bool set_of(size_t index, bool is_at_entry);
  void socket_type(uint64_t type);
  void socket_protocol(uint64_t domain, uint64_t protocol);
  void socket_option(bool is_read);
  void lock_at(uint64_t address, bool is_read);
  void signal_code(int signal, int64_t code);
  void raw_arguments(size_t first, size_t count);

  // Copies a struct from the memory of the process. Otherwise shows the address, or NULL, and returns false.
  template <class T>
  bool fetch(uint64_t address, T& to, bool is_at_entry = false) {
    const auto found = find(address, sizeof(T), is_at_entry);
    if (found) std::memcpy(&to, found->data(), sizeof(T));
    return found.has_value();
  }
  std::optional<std::string_view> find(uint64_t address, uint64_t size_bytes, bool is_at_entry = false);
  void not_there(uint64_t address);

  const CallTable& table_;
  const Style style_;
  CallState* state_ = nullptr;
  std::string* out_ = nullptr;
  size_t index_ = 0;
  bool is_missing_ = false;  // of the argument that is shown
  uint64_t missing_ = 0;
};

}  // namespace espy::strace

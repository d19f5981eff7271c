// Memory, pieces of text, flags, texts, results and signals. call_kinds.cc and call_sockets.cc have the kinds of
// arguments.
#include "strace/call_decoder.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "base/byte_reader.h"

namespace espy::strace {

// ---- CallMemory

void CallMemory::add_bytes(uint64_t address, std::string_view bytes) {
  pieces_.push_back({address, std::string(bytes)});
}

void CallMemory::add_text(uint64_t address, std::string_view text) { texts_.push_back({address, std::string(text)}); }

void CallMemory::add_at_return(CallMemory later) {
  for (Piece& piece : later.pieces_) {
    piece.is_at_return = true;
    pieces_.push_back(std::move(piece));
  }
  std::ranges::move(later.texts_, std::back_inserter(texts_));
}

std::optional<std::string_view> CallMemory::bytes(uint64_t address, uint64_t size_bytes, bool is_at_entry) const {
  std::optional<std::string_view> found;
  for (const Piece& piece : pieces_) {
    if (address < piece.address || address - piece.address >= piece.bytes.size()) continue;
    if (is_at_entry && piece.is_at_return) continue;
    const std::string_view part = std::string_view(piece.bytes).substr(address - piece.address, size_bytes);
    if (!found || part.size() >= found->size() || piece.is_at_return) found = part;
    if (is_at_entry) break;
  }
  return found;
}

std::optional<std::string_view> CallMemory::text(uint64_t address) const {
  for (const Piece& piece : texts_)
    if (piece.address == address) return piece.bytes;
  return std::nullopt;
}

std::optional<uint64_t> CallMemory::pointer(uint64_t address) const {
  const auto found = bytes(address, 8, true);
  return found && found->size() == 8 ? std::optional(load_le(*found)) : std::nullopt;
}

// ---- Calls

namespace {

using ShowKind = void (Decoder::*)();

// Arguments of these are what a call was given, or are shown in a way of their own after an error.
bool is_shown_after_error(Kind kind) {
  constexpr Kind kKinds[] = {Kind::k_clone_result, Kind::k_clone3_result, Kind::k_select,    Kind::k_socketpair,
                             Kind::k_getsockopt,   Kind::k_ioctl,         Kind::k_remaining, Kind::k_length};
  return std::ranges::find(kKinds, kind) != std::end(kKinds);
}

// These begin with a comma where they show something.
bool has_own_comma(Kind kind) { return kind == Kind::k_clone_result || kind == Kind::k_clone3_result; }

}  // namespace

std::string Decoder::name_of(const CallState& state) const {
  if (state.is_compat) return fmt::format("syscall_32bit_{:#x}", state.number);
  const std::string_view name = table_.name_of(state.number);
  return name.empty() ? fmt::format("syscall_{:#x}", state.number) : std::string(name);
}

void Decoder::show_name(const CallState& state, std::string& out) {
  out += name_of(state);
  out += '(';
}

void Decoder::show_arguments(CallState& state, std::string& out) {
  state_ = &state;
  out_ = &out;
  if (state.call == nullptr) {
    if (state.shown == 0) raw_arguments(0, 6);
    state.shown = 1;
    return;
  }
  const std::vector<Argument>& arguments = state.call->arguments;
  for (; state.shown < arguments.size(); ++state.shown) {
    const size_t index = state.shown;
    if (is_optional_and_absent(index)) return;
    const bool wants_comma = index > 0 && !has_own_comma(arguments[index].kind);
    if (wants_comma && !state.has_comma) next();
    state.has_comma = wants_comma;
    if (arguments[index].is_filled && !state.has_returned) return;
    const size_t start = out.size();
    is_missing_ = false;
    show_argument(index);
    if (is_missing_ && !state.has_returned) {  // it is read again when the call returns
      out.resize(start);
      return;
    }
    state.has_comma = false;
    if (is_missing_) ++missing_;
  }
}

void Decoder::show_argument(size_t index) {
  static constexpr ShowKind kShow[] = {
#define KIND(name, capture, number) &Decoder::show_##name,
#include "strace/kinds.def"
#undef KIND
  };
  index_ = index;
  const Argument& shown = argument();
  if (shown.is_filled && has_failed() && !is_shown_after_error(shown.kind)) return pointer(value());
  (this->*kShow[static_cast<size_t>(shown.kind)])();
}

// The mode of a file that open() does not create.
bool Decoder::is_optional_and_absent(size_t index) const {
  if (state_->call->arguments[index].kind != Kind::k_open_mode) return false;
  const uint64_t bits = value(index - 1);
  const ConstantSet& known = table_.set("open_more");
  for (const auto& [name, number] : known.names)
    if ((name == "O_CREAT" || name == "O_TMPFILE") && (bits & number) == number) return false;
  return true;
}

uint64_t Decoder::length() const {
  const int8_t by = argument().by;
  if (by == kByResult) return state_->result > 0 ? static_cast<uint64_t>(state_->result) : 0;
  return by == kByNothing ? 0 : value(static_cast<size_t>(by));
}

std::optional<std::string_view> Decoder::find(uint64_t address, uint64_t size_bytes, bool is_at_entry) {
  if (address == 0) {
    put("NULL");
    return std::nullopt;
  }
  const auto found = state_->memory.bytes(address, size_bytes, is_at_entry);
  if (found && found->size() >= size_bytes) return found;
  not_there(address);
  return std::nullopt;
}

// strace shows the address of what the kernel cannot read either.
void Decoder::not_there(uint64_t address) {
  pointer(address);
  constexpr int64_t kBadAddress = -14;
  if (state_->has_returned && state_->result == kBadAddress) return;
  is_missing_ = true;
  if (state_->has_returned) put(" /* not read */");
}

// ---- Numbers

void Decoder::decimal(int64_t number) { *out_ += fmt::format("{}", number); }
void Decoder::unsigned_decimal(uint64_t number) { *out_ += fmt::format("{}", number); }
void Decoder::hex(uint64_t number) { *out_ += number == 0 ? "0" : fmt::format("{:#x}", number); }
void Decoder::pointer(uint64_t number) { *out_ += number == 0 ? "NULL" : fmt::format("{:#x}", number); }
void Decoder::octal(uint64_t number) { *out_ += number == 0 ? "000" : fmt::format("0{:o}", number); }

bool Decoder::flags_in(const ConstantSet& set, uint64_t& bits, bool is_first) {
  bool is_shown = false;
  for (const auto& [name, value] : set.names) {
    if (value == 0 || (bits & value) != value) continue;
    if (!is_first || is_shown) put("|");
    put(name);
    bits &= ~value;
    is_shown = true;
  }
  return is_shown;
}

void Decoder::flags(std::string_view name, uint64_t bits) {
  const ConstantSet& set = table_.set(name);
  if (bits == 0) {
    const std::string_view zero = set.name_of(0);
    return put(zero.empty() ? "0" : zero);
  }
  if (flags_in(set, bits, true)) {
    if (bits != 0) *out_ += fmt::format("|{:#x}", bits);
    return;
  }
  *out_ += fmt::format("{:#x} /* {} */", bits, set.unknown);
}

void Decoder::one_of(std::string_view name, uint64_t number) {
  const ConstantSet& set = table_.set(name);
  const std::string_view known = set.name_of(number);
  if (!known.empty()) return put(known);
  *out_ += number == 0 ? fmt::format("0 /* {} */", set.unknown) : fmt::format("{:#x} /* {} */", number, set.unknown);
}

void Decoder::open_flags(uint64_t bits) {
  bits &= 0xffffffff;
  put(table_.set("open_access").name_of(bits & 3));
  bits &= ~uint64_t{3};
  flags_in(table_.set("open_more"), bits, false);
  if (bits != 0) *out_ += fmt::format("|{:#x}", bits);
}

void Decoder::file_mode(uint64_t mode) {
  constexpr uint64_t kTypeBits = 0170000;
  constexpr std::pair<uint64_t, std::string_view> kBits[] = {
      {04000, "S_ISUID"}, {02000, "S_ISGID"}, {01000, "S_ISVTX"}};
  const std::string_view type = table_.set("stat_type").name_of(mode & kTypeBits);
  if (!type.empty()) *out_ += fmt::format("{}|", type);
  for (const auto& [bit, name] : kBits)
    if (mode & bit) *out_ += fmt::format("{}|", name);
  octal(mode & 0777 & ~(type.empty() ? uint64_t{0} : kTypeBits));
}

void Decoder::device(uint64_t number) {
  const uint64_t major = ((number >> 8) & 0xfff) | ((number >> 32) & ~uint64_t{0xfff});
  const uint64_t minor = (number & 0xff) | ((number >> 12) & 0xffffff00);
  put("makedev(");
  hex(major);
  next();
  hex(minor);
  put(")");
}

void Decoder::date(int64_t seconds, int64_t nanoseconds) {
  if (seconds == 0 && nanoseconds == 0) return;
  const auto when = static_cast<time_t>(seconds);
  tm parts = {};
  if (::localtime_r(&when, &parts) == nullptr) return;
  char day[64], zone[16];
  ::strftime(day, sizeof(day), "%FT%T", &parts);
  ::strftime(zone, sizeof(zone), "%z", &parts);
  const std::string fraction = nanoseconds == 0 ? "" : fmt::format(".{:09}", nanoseconds);
  *out_ += fmt::format(" /* {}{}{} */", day, fraction, zone);
}

void Decoder::time_of(int64_t seconds, int64_t fraction, std::string_view name) {
  *out_ += fmt::format("{{tv_sec={}, {}={}}}", seconds, name, fraction);
}

void Decoder::time_at(uint64_t address, std::string_view fraction) {
  int64_t parts[2] = {};
  if (fetch(address, parts)) time_of(parts[0], parts[1], fraction);
}

// ---- Texts

void Decoder::quoted(std::string_view bytes, bool is_cut, bool is_hex) {
  const auto is_plain = [](unsigned char c) { return (c >= 0x20 && c < 0x7f) || (c >= 9 && c <= 13); };
  if (style_.hex_texts == 2 || (style_.hex_texts == 1 && !std::ranges::all_of(bytes, is_plain))) is_hex = true;
  put("\"");
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto c = static_cast<unsigned char>(bytes[i]);
    if (is_hex) {
      *out_ += fmt::format("\\x{:02x}", c);
      continue;
    }
    constexpr std::string_view kSpecial = "\"\\\t\n\v\f\r", kLetters = "\"\\tnvfr";
    const size_t special = kSpecial.find(static_cast<char>(c));
    const bool is_digit_next = i + 1 < bytes.size() && bytes[i + 1] >= '0' && bytes[i + 1] <= '9';
    if (special != std::string_view::npos) {
      *out_ += '\\';
      *out_ += kLetters[special];
    } else if (c >= 0x20 && c < 0x7f) {
      *out_ += static_cast<char>(c);
    } else {
      *out_ += is_digit_next ? fmt::format("\\{:03o}", c) : fmt::format("\\{:o}", c);
    }
  }
  put(is_cut ? "\"..." : "\"");
}

void Decoder::text_at(uint64_t address, bool is_path) {
  if (address == 0) return put("NULL");
  const auto text = state_->memory.text(address);
  if (!text) return not_there(address);
  const bool is_cut = !is_path && text->size() > style_.text_bytes;
  quoted(is_cut ? text->substr(0, style_.text_bytes) : *text, is_cut);
}

void Decoder::bytes_at(uint64_t address, uint64_t size_bytes, bool is_hex) {
  if (address == 0) return put("NULL");
  const uint64_t shown = std::min<uint64_t>(size_bytes, style_.text_bytes);
  if (shown == 0) return put(size_bytes > 0 ? "\"\"..." : "\"\"");
  const auto bytes = state_->memory.bytes(address, shown);
  if (!bytes || bytes->size() < shown) return not_there(address);
  quoted(*bytes, size_bytes > shown, is_hex);
}

// ---- Signals

namespace {

constexpr std::string_view kSignals[] = {
    "0",         "SIGHUP",  "SIGINT",    "SIGQUIT", "SIGILL",   "SIGTRAP", "SIGABRT", "SIGBUS",
    "SIGFPE",    "SIGKILL", "SIGUSR1",   "SIGSEGV", "SIGUSR2",  "SIGPIPE", "SIGALRM", "SIGTERM",
    "SIGSTKFLT", "SIGCHLD", "SIGCONT",   "SIGSTOP", "SIGTSTP",  "SIGTTIN", "SIGTTOU", "SIGURG",
    "SIGXCPU",   "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO",   "SIGPWR",  "SIGSYS"};
constexpr uint64_t kFirstRealTime = 32, kSignalCount = 64;

}  // namespace

// The numbers are those of asm-generic/signal.h, which all CPUs of espy have.
std::string Decoder::signal_name(uint64_t signal) const {
  if (signal < std::size(kSignals)) return std::string(kSignals[signal]);
  if (signal == kFirstRealTime) return "SIGRTMIN";
  if (signal <= kSignalCount) return fmt::format("SIGRT_{}", signal - kFirstRealTime);
  return fmt::format("{}", static_cast<int64_t>(static_cast<int32_t>(signal)));
}

void Decoder::signal_set(uint64_t bits) {
  uint64_t count = 0;
  for (uint64_t i = 0; i < kSignalCount; ++i) count += bits >> i & 1;
  const bool is_inverted = count >= kSignalCount * 2 / 3;
  if (is_inverted) bits = ~bits;
  put(is_inverted ? "~[" : "[");
  bool is_first = true;
  for (uint64_t i = 0; i < kSignalCount; ++i) {
    if (!(bits >> i & 1)) continue;
    if (!std::exchange(is_first, false)) put(" ");
    put(std::string_view(signal_name(i + 1)).substr(3));
  }
  put("]");
}

void Decoder::signal_code(int signal, int64_t code) {
  const std::string_view common = table_.set("si_code").name_of(static_cast<uint32_t>(code));
  if (!common.empty()) return put(common);
  constexpr std::pair<int, std::string_view> kOwn[] = {{SIGCHLD, "cld"},    {SIGSEGV, "si_segv"}, {SIGBUS, "si_bus"},
                                                       {SIGFPE, "si_fpe"},  {SIGILL, "si_ill"},   {SIGSYS, "si_sys"},
                                                       {SIGTRAP, "si_trap"}};
  const auto* own = std::ranges::find(kOwn, signal, &std::pair<int, std::string_view>::first);
  const std::string_view name =
      own == std::end(kOwn) ? "" : table_.set(own->second).name_of(static_cast<uint32_t>(code));
  if (!name.empty()) return put(name);
  *out_ += fmt::format("{:#x}", static_cast<uint32_t>(code));
}

// struct kernel_siginfo (include/uapi/asm-generic/siginfo.h), 48 bytes.
void Decoder::show_signal(int signal, std::string_view info, std::string& out) {
  out_ = &out;
  const auto word = [&](size_t at) { return static_cast<int32_t>(load_le(info, at, 4)); };
  const int32_t code = word(8);
  *out_ += fmt::format("{} {{si_signo={}, si_code=", signal_name(static_cast<uint64_t>(signal)),
                       signal_name(static_cast<uint64_t>(word(0))));
  signal_code(word(0), code);
  const auto sender = [&] {
    *out_ += fmt::format(", si_pid={}, si_uid={}", word(16), static_cast<uint32_t>(word(20)));
  };
  const bool is_fault = signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL;
  if (signal == SIGCHLD && code > 0) {
    sender();
    put(", si_status=");
    constexpr int32_t kExited = 1;
    *out_ += code == kExited ? fmt::format("{}", word(24)) : signal_name(static_cast<uint64_t>(word(24)));
    constexpr uint64_t kTicksPerSecond = 100;  // USER_HZ
    const auto ticks = [&](std::string_view name, uint64_t number) {
      *out_ += fmt::format(", {}={}", name, number);
      if (number > 0) *out_ += fmt::format(" /* {}.{:02} s */", number / kTicksPerSecond, number % kTicksPerSecond);
    };
    ticks("si_utime", load_le(info, 32));
    ticks("si_stime", load_le(info, 40));
  } else if (is_fault && code > 0) {
    put(", si_addr=");
    pointer(load_le(info, 16));
  } else if (code == SI_TIMER) {
    *out_ += fmt::format(", si_timerid={:#x}, si_overrun={}, si_value={{sival_int={}, sival_ptr=", word(16), word(20),
                         word(24));
    pointer(load_le(info, 24));
    put("}");
  } else if (code == SI_USER || code == SI_TKILL) {
    sender();
  } else if (code == SI_QUEUE) {
    sender();
    *out_ += fmt::format(", si_value={{sival_int={}, sival_ptr=", word(24));
    pointer(load_le(info, 24));
    put("}");
  } else if (signal == SIGSYS && code > 0) {
    put(", si_call_addr=");
    pointer(load_le(info, 16));
    *out_ += fmt::format(", si_syscall={}, si_arch={:#x}", word(24), static_cast<uint32_t>(word(28)));
  }
  put("}");
}

// ---- Results

namespace {

struct RestartCode {
  int64_t code;
  std::string_view name, meaning;
};
// include/linux/errno.h; programs never see them.
constexpr RestartCode kRestartCodes[] = {{512, "ERESTARTSYS", "To be restarted if SA_RESTART is set"},
                                         {513, "ERESTARTNOINTR", "To be restarted"},
                                         {514, "ERESTARTNOHAND", "To be restarted if no handler"},
                                         {516, "ERESTART_RESTARTBLOCK", "Interrupted by signal"}};

}  // namespace

void Decoder::show_result(const CallState& state, std::string& out) {
  state_ = const_cast<CallState*>(&state);
  out_ = &out;
  const int64_t result = state.result;
  if (state.has_failed()) {
    const auto* restart = std::ranges::find(kRestartCodes, -result, &RestartCode::code);
    if (restart != std::end(kRestartCodes)) {
      out += fmt::format("? {} ({})", restart->name, restart->meaning);
      return;
    }
    const char* name = ::strerrorname_np(static_cast<int>(-result));
    out += name == nullptr ? fmt::format("-1 (errno {})", -result)
                           : fmt::format("-1 {} ({})", name, ::strerrordesc_np(static_cast<int>(-result)));
    return;
  }
  const auto number = static_cast<uint64_t>(result);
  switch (state.call == nullptr ? ResultKind::kNumber : state.call->result) {
    case ResultKind::kNumber: return decimal(result);
    case ResultKind::kUnsigned: return unsigned_decimal(number);
    case ResultKind::kAddress:
    case ResultKind::kHex: return hex(number);
    case ResultKind::kMode: return octal(number);
    case ResultKind::kNone: return put("?");
    case ResultKind::kSignal:
      decimal(result);
      if (result > 0) *out_ += fmt::format(" ({})", signal_name(number));
      return;
    case ResultKind::kPoll: return poll_results();
    case ResultKind::kSelect: decimal(result); return select_sets(true);
    case ResultKind::kFcntl: break;
  }
  const std::string_view command = table_.set("fcntl").name_of(state.arguments[1]);
  if (command == "F_GETFL") {
    hex(number);
    put(" (flags ");
    open_flags(number);
    put(")");
  } else if (command == "F_GETFD" && number != 0) {
    hex(number);
    put(" (flags ");
    flags("fd_flags", number);
    put(")");
  } else {
    decimal(result);
  }
}

}  // namespace espy::strace

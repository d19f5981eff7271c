#include "symbols/demangle.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csetjmp>
#include <optional>
#include <utility>
#include <vector>

#include "base/fatal.h"
#include "base/limits.h"

#ifndef sigev_notify_thread_id  // glibc names it since 2.38 only
#define sigev_notify_thread_id _sigev_un._tid
#endif

// Of libstdc++ (libsupc++, cp-demangle.c): passes the demangled text piece by piece and allocates no memory. 0:
// success.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): not our name
extern "C" int __gcclibcxx_demangle_callback(const char* mangled, void (*take)(const char*, size_t, void*),
                                             void* opaque);

namespace espy::symbols {

namespace {

// References to what precedes them: `S_`, `S1A_`, `T0_`. Parts of identifiers can look the same.
size_t count_references(std::string_view mangled) {
  size_t out = 0;
  bool is_open = false;
  for (const char c : mangled) {
    if (c == '_') out += is_open ? 1 : 0;
    is_open = c == 'S' || c == 'T' || (is_open && (is_digit(c) || is_upper(c)));
  }
  return out;
}

thread_local std::atomic<void (*)()> ring_now = nullptr;

void on_alarm(int) {
  if (const auto ring = ring_now.load()) ring();
}

// SA_NODEFER: after longjmp(3) the signal must not stay blocked.
bool handle_alarm() {
  struct sigaction action = {};
  action.sa_handler = on_alarm;
  action.sa_flags = SA_NODEFER | SA_RESTART;
  return ::sigaction(SIGVTALRM, &action, nullptr) == 0;
}

sigset_t all_but_alarm() {
  sigset_t out;
  sigfillset(&out);
  for (const int taken : {SIGVTALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&out, taken);
  return out;
}

// Calls a function, from a signal handler (SIGVTALRM), once this thread has taken some CPU time, unless the object is
// destroyed before. The clock ticks every few milliseconds. The function may leave by longjmp(3), because this thread
// handles no other signal meanwhile: it would leave their handlers too. One object at a time for each thread.
class CpuAlarm {
 public:
  CpuAlarm(std::chrono::nanoseconds after, void (*ring)());
  ~CpuAlarm();
  CpuAlarm(const CpuAlarm&) = delete;
  CpuAlarm& operator=(const CpuAlarm&) = delete;

  // False if there is no timer, because they are limited: it never rings.
  bool is_set() const { return is_set_; }

 private:
  timer_t timer_ = {};
  bool is_set_ = false;
  sigset_t mask_before_ = {};
};

CpuAlarm::CpuAlarm(std::chrono::nanoseconds after, void (*ring)()) {
  static const bool is_handled = handle_alarm();
  static const sigset_t kOthers = all_but_alarm();
  CHECK(ring_now.load() == nullptr);
  ::pthread_sigmask(SIG_SETMASK, &kOthers, &mask_before_);
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGVTALRM;
  event.sigev_notify_thread_id = ::gettid();
  if (!is_handled || ::timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer_) != 0) return;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(after);
  itimerspec when = {};
  when.it_value.tv_sec = seconds.count();
  when.it_value.tv_nsec = (after - seconds).count();
  ring_now = ring;
  is_set_ = ::timer_settime(timer_, 0, &when, nullptr) == 0;
  if (!is_set_) ::timer_delete(timer_);
}

CpuAlarm::~CpuAlarm() {
  ring_now = nullptr;
  if (is_set_) ::timer_delete(timer_);
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

// Demangles a name of C++; "" if it is malformed, becomes too long (LongNames) or takes too long. A name of 200 bytes
// can stand for gigabytes, as each substitution may double what the one before it stands for, and the demangler can
// walk through all of that before it has made any text: so it is left in the middle. Without references it cannot.
//
// Why not cplus_demangle_v3_callback() of libiberty: it is the same code (cp-demangle.c), with a documented name. It
// takes 40 s for a name of 89 bytes, `_ZcvT_IT_I...` (c++filt 2.40), so that it would need the same alarm, and one
// library more. Its parser and its printer recurse in several places: a count of references that is low enough to bound
// them would refuse names of compilers, which have dozens. A child process for each such name would take longer than
// the name.
class CppDemangler {
 public:
  std::string demangle(const std::string& mangled) {
    constexpr size_t kFewReferences = 16;  // twice the time for each: at most milliseconds
    most_bytes_ = LongNames::of_thread().most_bytes(mangled.size());
    std::string out = count_references(mangled) > kFewReferences ? run_in_time(mangled) : run(mangled);
    LongNames::of_thread().count(mangled.size(), made_bytes_);
    return out;
  }

 private:
  // Compilers' names take less than a tenth of a millisecond. All that take longer share the spare time.
  std::string run_in_time(const std::string& mangled) {
    constexpr std::chrono::milliseconds kMostTime(5);
    constexpr std::chrono::milliseconds kLongTime(1);
    static thread_local TimeBudget spare{std::chrono::seconds(1)};
    if (spare.left() < kMostTime) return "";
    const auto begin = thread_cpu_time();
    std::string out;
    if (const CpuAlarm alarm(kMostTime, leave); alarm.is_set()) out = run(mangled);
    const auto taken = thread_cpu_time() - begin;
    if (taken > kLongTime) spare.take(taken);
    return out;
  }

  std::string run(const std::string& mangled) {
    // Below this frame are only functions of C and `take`, none of which has anything to destroy.
    const bool is_left = setjmp(too_long_) != 0;
    running_ = is_left ? nullptr : this;
    if (is_left) return "";
    const int error = __gcclibcxx_demangle_callback(mangled.c_str(), take, this);
    running_ = nullptr;
    return error == 0 ? std::move(text_) : "";
  }

  static void take(const char* piece, size_t size_bytes, void* self) {
    auto* demangler = static_cast<CppDemangler*>(self);
    demangler->made_bytes_ += size_bytes;
    if (demangler->made_bytes_ > demangler->most_bytes_) std::longjmp(demangler->too_long_, 1);
    demangler->is_taking_ = true;
    demangler->text_.append(piece, size_bytes);
    demangler->is_taking_ = false;
    if (demangler->is_late_) std::longjmp(demangler->too_long_, 1);
  }

  // Called by a signal handler, perhaps while `take` changes the text.
  static void leave() {
    CppDemangler* demangler = running_;
    if (demangler == nullptr) return;
    if (!demangler->is_taking_) std::longjmp(demangler->too_long_, 1);
    demangler->is_late_ = true;
  }

  static inline thread_local std::atomic<CppDemangler*> running_ = nullptr;
  std::string text_;
  size_t made_bytes_ = 0, most_bytes_ = 0;
  std::atomic<bool> is_taking_ = false, is_late_ = false;
  std::jmp_buf too_long_ = {};
};

// Returns the index of the `(` that matches the `)` at text[close]; npos if there is none.
size_t opening_of(std::string_view text, size_t close) {
  size_t depth = 0;
  for (size_t i = close + 1; i-- > 0;) {
    if (text[i] == ')') ++depth;
    if (text[i] == '(' && --depth == 0) return i;
  }
  return std::string_view::npos;
}

// Removes what can follow a parameter list: ` [clone .cold]`, ` const`, ` &&`.
std::string_view without_qualifiers(std::string_view signature) {
  constexpr std::array<std::string_view, 4> kQualifiers = {" const", " volatile", " &&", " &"};
  for (bool again = true; again;) {
    again = false;
    if (const size_t clone = signature.rfind(" [clone "); clone != signature.npos && signature.ends_with(']')) {
      signature = signature.substr(0, clone);
      again = true;
    }
    for (const std::string_view qualifier : kQualifiers) {
      if (!signature.ends_with(qualifier)) continue;
      signature.remove_suffix(qualifier.size());
      again = true;
    }
  }
  return signature;
}

// The return type precedes the name of a template: `void ns::f<int>`. The name begins after the last space outside all
// brackets, but spaces and angle brackets of operators (`operator new`, `operator<<`) belong to the name.
std::string_view without_return_type(std::string_view name) {
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (depth == 0 && name.substr(i).starts_with("operator") && (i == begin || name[i - 1] == ':')) break;
    if (c == '<' || c == '(' || c == '{' || c == '[') ++depth;
    if (c == '>' || c == ')' || c == '}' || c == ']') --depth;
    if (c == ' ' && depth == 0) begin = i + 1;
  }
  return name.substr(begin);
}

// `void ns::f<int>(int) const` -> `ns::f<int>`, or with `style` kOverload `ns::f<int>(int) const`. Text without a
// parameter list (data, Rust) is returned unchanged.
std::string_view part_of_signature(std::string_view signature, DemangleStyle style) {
  const std::string_view bare = without_qualifiers(signature);
  if (!bare.ends_with(')') || bare.find("thunk to ") != bare.npos) return signature;
  const size_t parameters = opening_of(bare, bare.size() - 1);
  if (parameters == bare.npos) return signature;
  std::string_view name = without_return_type(bare.substr(0, parameters));
  if (style == DemangleStyle::kOverload) return signature.substr(parameters - name.size());
  if (const size_t tag = name.rfind("[abi:"); tag != name.npos && name.ends_with(']')) name = name.substr(0, tag);
  return name;
}

}  // namespace

std::string_view name_of_signature(std::string_view signature) {
  return part_of_signature(signature, DemangleStyle::kName);
}

std::string_view without_template_arguments(std::string_view name) {
  int depth = 0;
  for (size_t i = name.ends_with('>') ? name.size() : 0; i-- > 0;) {
    if (name[i] == '>') ++depth;
    if (name[i] != '<' || --depth > 0) continue;
    name = name.substr(0, i);
    if (name.ends_with("::")) name.remove_suffix(2);
    break;
  }
  return name;
}

std::string demangle(std::string_view mangled, DemangleStyle style) {
  const bool maybe_cpp = mangled.starts_with("_Z");
  if (!maybe_cpp && !mangled.starts_with("_R")) return std::string(mangled);
  // Names of the legacy scheme of Rust are also valid names of C++, so Rust is tried first.
  if (std::string rust = demangle_rust(mangled); !rust.empty()) return rust;
  if (!maybe_cpp) return std::string(mangled);
  std::string text = CppDemangler().demangle(std::string(mangled));
  if (text.empty()) return std::string(mangled);
  if (style == DemangleStyle::kSignature) return text;
  return std::string(part_of_signature(text, style));
}

// ---- Rust's legacy scheme: a nested name of C++, `_ZN` (length identifier)* `E`, whose last identifier is a hash, `h`
// and 16 hex digits, which is not shown. Characters that linkers do not accept are `$LT$`, `$u7e$`, ..., and `..` is
// `::`.
//
// Why not rust_demangle of libiberty (20230104): its output and time are unbounded, and symbols are untrusted. A name
// of 239 bytes with nested back references becomes 400 MB in 6 s; one of 22 bytes with a large lifetime binder runs for
// more than 20 s. Of 105,679 names in rustc 1.95 it prints three wrong (128-bit constants) and drops `.cold` and other
// suffixes of 15,269; it does not decode escapes above ASCII. The static binary would be 20 KB smaller.

void append_utf8(std::string& out, uint32_t character) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((character >> shift) & 0x3f)); };
  if (character < 0x80) {
    out += static_cast<char>(character);
  } else if (character < 0x800) {
    out += static_cast<char>(0xc0 | (character >> 6));
    tail(0);
  } else if (character < 0x10000) {
    out += static_cast<char>(0xe0 | (character >> 12));
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xf0 | (character >> 18));
    tail(12), tail(6), tail(0);
  }
}

std::string_view visible_suffix(std::string_view suffix) {
  return suffix.starts_with(".llvm.") ? std::string_view{} : suffix;
}

std::string demangle_rust(std::string_view mangled) {
  if (mangled.starts_with("_ZN")) return demangle_rust_legacy(mangled.substr(3));
  if (mangled.size() < 3 || !mangled.starts_with("_R") || !is_upper(mangled[2])) return {};
  return demangle_rust_v0(mangled.substr(2));
}

namespace {

// One `$NAME$` of an identifier, without the dollars.
bool append_legacy_escape(std::string& out, std::string_view name) {
  struct Escape {
    std::string_view name;
    char character;
  };
  constexpr Escape kEscapes[] = {{"SP", '@'}, {"BP", '*'}, {"RF", '&'}, {"LT", '<'},
                                 {"GT", '>'}, {"LP", '('}, {"RP", ')'}, {"C", ','}};
  for (const Escape& escape : kEscapes) {
    if (escape.name != name) continue;
    out += escape.character;
    return true;
  }
  if (!name.starts_with('u') || name.size() < 2 || name.size() > 7) return false;
  uint32_t code = 0;
  for (const char c : name.substr(1)) {
    if (!is_lower_hex(c)) return false;
    code = code * 16 + static_cast<uint32_t>(is_digit(c) ? c - '0' : c - 'a' + 10);
  }
  append_utf8(out, code);
  return true;
}

void append_legacy_identifier(std::string& out, std::string_view identifier) {
  if (identifier.starts_with("_$")) identifier.remove_prefix(1);
  while (!identifier.empty()) {
    if (identifier.starts_with("..")) {
      out += "::";
      identifier.remove_prefix(2);
      continue;
    }
    const size_t close = identifier[0] == '$' ? identifier.find('$', 1) : std::string_view::npos;
    if (close != std::string_view::npos && append_legacy_escape(out, identifier.substr(1, close - 1))) {
      identifier.remove_prefix(close + 1);
      continue;
    }
    out += identifier[0];
    identifier.remove_prefix(1);
  }
}

bool is_legacy_hash(std::string_view identifier) {
  if (identifier.size() != 17 || identifier[0] != 'h') return false;
  for (const char c : identifier.substr(1)) {
    if (!is_lower_hex(c)) return false;
  }
  return true;
}

}  // namespace

std::string demangle_rust_legacy(std::string_view rest) {
  std::vector<std::string_view> path;
  while (!rest.empty() && is_digit(rest[0])) {
    size_t length = 0;
    while (!rest.empty() && is_digit(rest[0]) && length < kMaxDemangledBytes) {
      length = length * 10 + static_cast<size_t>(rest[0] - '0');
      rest.remove_prefix(1);
    }
    if (length == 0 || length > rest.size()) return {};
    path.push_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  if (!rest.starts_with('E') || path.size() < 2 || !is_legacy_hash(path.back())) return {};
  path.pop_back();
  std::string out;
  for (size_t i = 0; i < path.size(); ++i) {
    if (i > 0) out += "::";
    append_legacy_identifier(out, path[i]);
  }
  out += visible_suffix(rest.substr(1));
  return out;
}

// ---- Rust's v0 scheme (RFC 2603): `_R` and a grammar of paths, types and constants in prefix notation.
//
// A back reference, `B` and a base-62 offset from the byte after `_R`, stands for what is encoded there, so the parser
// is a recursive descent that can jump backwards. Symbols come from files of traced programs, so its work is bounded: a
// reference must point before itself, and the depth, the number of grammar nodes and the size of the output are
// limited. Lifetimes bound by `for<...>` are numbered from the innermost binder (de Bruijn). Structured constants
// (`&[1, 2]` and ADTs as const generics) are not read; stable Rust cannot produce them.

namespace {

constexpr int kMaxDepth = 256;
constexpr size_t kMaxNodes = 64 * 1024;
constexpr size_t kMaxPunycodeBytes = 256;  // decoding takes quadratic time
// Of identifiers, also those that are read again by back references. Decoding takes a hundred times as long.
constexpr size_t kMaxIdentifierBytes = 4 << 20;
constexpr size_t kPunycodeTimes = 100;

// Punycode (RFC 3492) as Rust writes it, with `_` between the ASCII characters and the insertions. nullopt if malformed
// or too long.
std::optional<std::string> decode_punycode(std::string_view text) {
  if (text.size() > kMaxPunycodeBytes) return std::nullopt;
  std::vector<uint32_t> characters;
  if (const size_t divider = text.rfind('_'); divider != text.npos) {
    characters.assign(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(divider));
    text.remove_prefix(divider + 1);
  }
  uint64_t code = 128, index = 0, bias = 72;
  for (bool first = true; !text.empty(); first = false) {
    const uint64_t before = index;
    uint64_t weight = 1;
    for (uint64_t k = 36;; k += 36) {
      if (text.empty() || (!is_lower(text[0]) && !is_digit(text[0]))) return std::nullopt;
      const auto digit = static_cast<uint64_t>(is_digit(text[0]) ? text[0] - '0' + 26 : text[0] - 'a');
      text.remove_prefix(1);
      index += digit * weight;
      if (index > UINT32_MAX) return std::nullopt;
      const uint64_t threshold = k <= bias ? 1 : (k >= bias + 26 ? 26 : k - bias);
      if (digit < threshold) break;
      weight *= 36 - threshold;
      if (weight > UINT32_MAX) return std::nullopt;
    }
    const uint64_t count = characters.size() + 1;
    uint64_t delta = (index - before) / (first ? 700 : 2);
    delta += delta / count;
    for (bias = 0; delta > 455; bias += 36) delta /= 35;
    bias += 36 * delta / (delta + 38);
    code += index / count;
    index %= count;
    if (code > 0x10ffff) return std::nullopt;
    characters.insert(characters.begin() + static_cast<std::ptrdiff_t>(index), static_cast<uint32_t>(code));
    ++index;
  }
  std::string out;
  for (const uint32_t c : characters) append_utf8(out, c);
  return out;
}

std::string_view basic_type(char tag) {
  switch (tag) {
    case 'a': return "i8";
    case 'b': return "bool";
    case 'c': return "char";
    case 'd': return "f64";
    case 'e': return "str";
    case 'f': return "f32";
    case 'h': return "u8";
    case 'i': return "isize";
    case 'j': return "usize";
    case 'l': return "i32";
    case 'm': return "u32";
    case 'n': return "i128";
    case 'o': return "u128";
    case 'p': return "_";
    case 's': return "i16";
    case 't': return "u16";
    case 'u': return "()";
    case 'v': return "...";
    case 'x': return "i64";
    case 'y': return "u64";
    case 'z': return "!";
    default: return {};
  }
}

// The lexical level: letters, numbers and identifiers. After the first error `failed` stays true and reads give
// nothing.
class V0Cursor {
 public:
  explicit V0Cursor(std::string_view text) : text_(text) {}

  struct Identifier {
    uint64_t disambiguator = 0;
    std::string name;
  };

  bool failed() const { return failed_; }
  void fail() { failed_ = true; }
  size_t offset() const { return at_; }  // from the byte after `_R`, as in back references
  void jump(size_t offset) { at_ = offset; }
  std::string_view rest() const { return text_.substr(at_); }
  size_t size() const { return text_.size(); }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char next() {
    if (at_ >= text_.size()) failed_ = true;
    return failed_ ? '\0' : text_[at_++];
  }
  bool eat(char c) {
    if (failed_ || peek() != c) return false;
    ++at_;
    return true;
  }

  // `_` is 0, `0_` 1, `Z_` 62.
  uint64_t base62() {
    if (eat('_')) return 0;
    uint64_t value = 0;
    while (!failed_) {
      const char c = next();
      if (c == '_') return value + 1;
      if (!is_digit(c) && !is_lower(c) && !is_upper(c)) break;
      const int digit = is_digit(c) ? c - '0' : (is_lower(c) ? c - 'a' + 10 : c - 'A' + 36);
      if (__builtin_mul_overflow(value, uint64_t{62}, &value)) break;
      if (__builtin_add_overflow(value, static_cast<uint64_t>(digit), &value)) break;
    }
    failed_ = true;
    return 0;
  }
  // The number after an optional tag, plus 1; 0 without the tag.
  uint64_t tagged_base62(char tag) { return eat(tag) ? base62() + 1 : 0; }

  std::string plain_identifier() {
    const bool punycode = eat('u');
    size_t length = 0;
    if (!is_digit(peek())) failed_ = true;
    if (!eat('0')) {
      while (!failed_ && is_digit(peek()) && length <= text_.size())
        length = length * 10 + static_cast<size_t>(next() - '0');
    }
    eat('_');
    if (failed_ || length > text_.size() - at_) {
      failed_ = true;
      return {};
    }
    const std::string_view bytes = text_.substr(at_, length);
    at_ += length;
    identifier_bytes_ += punycode ? length * kPunycodeTimes : length;
    if (identifier_bytes_ > kMaxIdentifierBytes) {
      failed_ = true;
      return {};
    }
    if (!punycode) return std::string(bytes);
    std::optional<std::string> decoded = decode_punycode(bytes);
    if (!decoded) failed_ = true;
    return std::move(decoded).value_or("");
  }
  Identifier identifier() {
    const uint64_t disambiguator = tagged_base62('s');
    return {disambiguator, plain_identifier()};
  }

  std::string_view hex_digits() {
    const size_t start = at_;
    while (is_lower_hex(peek())) ++at_;
    const std::string_view digits = text_.substr(start, at_ - start);
    if (!eat('_')) failed_ = true;
    return digits;
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
  size_t identifier_bytes_ = 0;
  bool failed_ = false;
};

uint64_t hex_value(std::string_view digits) {
  uint64_t value = 0;
  for (const char c : digits) value = value * 16 + static_cast<uint64_t>(is_digit(c) ? c - '0' : c - 'a' + 10);
  return value;
}

std::string read_integer(V0Cursor& in) {
  const std::string_view digits = in.hex_digits();
  return digits.size() > 16 ? "0x" + std::string(digits) : std::to_string(hex_value(digits));
}

std::string_view read_boolean(V0Cursor& in) {
  const std::string_view digits = in.hex_digits();
  if (digits != "0" && digits != "1") in.fail();
  return digits == "1" ? "true" : "false";
}

std::string read_character(V0Cursor& in) {
  const std::string_view digits = in.hex_digits();
  const auto code = static_cast<uint32_t>(hex_value(digits));
  if (digits.size() > 6 || code > 0x10ffff) in.fail();
  if (in.failed()) return {};
  std::string text;
  switch (code) {
    case '\'': text = "\\'"; break;
    case '\\': text = "\\\\"; break;
    case '\n': text = "\\n"; break;
    case '\r': text = "\\r"; break;
    case '\t': text = "\\t"; break;
    default: append_utf8(text, code);
  }
  return "'" + text + "'";
}

// The grammar: reads and prints in one pass. After an error nothing is printed, and loops end.
class V0Printer {
 public:
  explicit V0Printer(std::string_view text)
      : in_(text), mangled_bytes_(text.size()), most_bytes_(LongNames::of_thread().most_bytes(mangled_bytes_)) {}

  std::string run() {
    std::string out = print_all();
    LongNames::of_thread().count(mangled_bytes_, std::max(out_.size(), nodes_));
    return out;
  }

 private:
  std::string print_all() {
    path(true);
    // The crate that instantiated it is not shown.
    if (!in_.failed() && is_upper(in_.peek())) silent([&] { path(false); });
    if (in_.failed()) return {};
    const std::string_view suffix = in_.rest();
    if (!suffix.empty() && suffix[0] != '.' && suffix[0] != '$') return {};
    return out_ + std::string(visible_suffix(suffix));
  }

  void print(std::string_view piece) {
    if (in_.failed() || silent_) return;
    out_ += piece;
    if (out_.size() > most_bytes_) in_.fail();
  }
  template <class Read>
  void silent(Read read) {
    const bool before = silent_;
    silent_ = true;
    read();
    silent_ = before;
  }
  // Runs `read` for one node of the grammar, unless a limit is reached.
  template <class Read>
  void nested(Read read) {
    if (++depth_ > kMaxDepth || ++nodes_ > std::min(kMaxNodes, most_bytes_)) in_.fail();
    if (!in_.failed()) read();
    --depth_;
  }

  // Runs `read` at the place that a back reference names; not while silent, when only the length matters.
  template <class Read>
  void back_reference(Read read) {
    const size_t here = in_.offset() - 1;
    const uint64_t target = in_.base62();
    if (target >= here) in_.fail();
    if (in_.failed() || silent_) return;
    const size_t resume = in_.offset();
    in_.jump(target);
    read();
    in_.jump(resume);
  }

  // `in_value`: generic arguments of values are written `f::<T>`, those of types `T<U>`.
  void path(bool in_value) {
    nested([&] {
      switch (in_.next()) {
        case 'C': print(in_.identifier().name); break;
        case 'M':
          silent([&] { impl_path(); });
          print("<");
          type();
          print(">");
          break;
        case 'X':
          silent([&] { impl_path(); });
          qualified_self();
          break;
        case 'Y': qualified_self(); break;
        case 'N': nested_path(in_value); break;
        case 'I':
          path(in_value);
          print(in_value ? "::<" : "<");
          list([&] { generic_argument(); });
          print(">");
          break;
        case 'B': back_reference([&] { path(in_value); }); break;
        default: in_.fail();
      }
    });
  }
  void impl_path() {
    in_.tagged_base62('s');
    path(false);
  }
  void qualified_self() {
    print("<");
    type();
    print(" as ");
    path(false);
    print(">");
  }
  void nested_path(bool in_value) {
    const char space = in_.next();
    if (!is_lower(space) && !is_upper(space)) in_.fail();
    path(in_value);
    const V0Cursor::Identifier id = in_.identifier();
    if (is_lower(space)) {
      if (!id.name.empty()) print("::" + id.name);
      return;
    }
    print("::{");
    print(space == 'C' ? "closure" : (space == 'S' ? "shim" : std::string_view(&space, 1)));
    if (!id.name.empty()) print(":" + id.name);
    print("#" + std::to_string(id.disambiguator) + "}");
  }

  // Reads items up to the closing `E` and prints separators between them. Returns their number.
  template <class Read>
  size_t list(Read read, std::string_view separator = ", ") {
    size_t count = 0;
    for (; !in_.failed() && !in_.eat('E'); ++count) {
      if (++nodes_ > std::min(kMaxNodes, most_bytes_)) in_.fail();
      if (count > 0) print(separator);
      read();
    }
    return count;
  }
  void generic_argument() {
    if (in_.eat('L')) {
      lifetime(in_.base62());
    } else if (in_.eat('K')) {
      constant();
    } else {
      type();
    }
  }
  // 0 is the erased lifetime, 1 the innermost bound one.
  void lifetime(uint64_t index) {
    if (index == 0) return print("'_");
    if (index > bound_lifetimes_) {
      in_.fail();
      return;
    }
    const uint64_t from_outside = bound_lifetimes_ - index;
    if (from_outside < 26) return print(std::string("'") + static_cast<char>('a' + from_outside));
    print("'_" + std::to_string(from_outside));
  }
  // Reads an optional binder, then what it binds lifetimes in.
  template <class Read>
  void with_binder(Read read) {
    const uint64_t count = in_.tagged_base62('G');
    if (count > in_.size()) in_.fail();
    if (silent_) bound_lifetimes_ += in_.failed() ? 0 : count;
    if (count > 0 && !in_.failed() && !silent_) {
      print("for<");
      for (uint64_t i = 0; i < count && !in_.failed(); ++i) {
        if (i > 0) print(", ");
        ++bound_lifetimes_;
        lifetime(1);
      }
      print("> ");
    }
    read();
    bound_lifetimes_ -= in_.failed() ? 0 : count;
  }

  void type() {
    nested([&] {
      const char tag = in_.peek();
      if (const std::string_view basic = basic_type(tag); !basic.empty()) {
        in_.next();
        return print(basic);
      }
      switch (tag) {
        case 'C':
        case 'M':
        case 'X':
        case 'Y':
        case 'N':
        case 'I': return path(false);
        default: in_.next(); return compound_type(tag);
      }
    });
  }
  void compound_type(char tag) {
    switch (tag) {
      case 'R':
      case 'Q': return reference(tag == 'Q');
      case 'P': print("*const "); return type();
      case 'O': print("*mut "); return type();
      case 'A':
      case 'S': return sequence(tag == 'A');
      case 'T': return tuple();
      case 'F': return with_binder([&] { function_signature(); });
      case 'D': return dynamic_trait();
      case 'B': return back_reference([&] { type(); });
      default: in_.fail();
    }
  }
  void reference(bool is_mutable) {
    print("&");
    if (in_.eat('L')) {
      if (const uint64_t index = in_.base62(); index != 0) {
        lifetime(index);
        print(" ");
      }
    }
    if (is_mutable) print("mut ");
    type();
  }
  void sequence(bool has_length) {
    print("[");
    type();
    if (has_length) {
      print("; ");
      constant();
    }
    print("]");
  }
  void tuple() {
    print("(");
    if (list([&] { type(); }) == 1) print(",");
    print(")");
  }
  void function_signature() {
    if (in_.eat('U')) print("unsafe ");
    if (in_.eat('K')) {
      std::string abi = "C";
      if (!in_.eat('C')) abi = in_.plain_identifier();
      for (char& c : abi) c = c == '_' ? '-' : c;
      print("extern \"" + abi + "\" ");
    }
    print("fn(");
    list([&] { type(); });
    print(")");
    if (in_.eat('u')) return;  // `-> ()` is not written
    print(" -> ");
    type();
  }
  void dynamic_trait() {
    print("dyn ");
    with_binder([&] { list([&] { trait_with_bindings(); }, " + "); });
    if (!in_.eat('L')) in_.fail();
    if (const uint64_t index = in_.base62(); index != 0) {
      print(" + ");
      lifetime(index);
    }
  }
  // `Iterator<Item = u8>`: the bindings share the angle brackets of the trait's own generic arguments.
  void trait_with_bindings() {
    bool open = open_generic_path();
    while (in_.eat('p')) {
      print(open ? ", " : "<");
      open = true;
      print(in_.plain_identifier() + " = ");
      type();
    }
    if (open) print(">");
  }
  // Prints a path without the closing `>` of its generic arguments. Returns whether the caller must print it.
  bool open_generic_path() {
    bool open = false;
    nested([&] {
      if (in_.eat('B')) {
        back_reference([&] { open = open_generic_path(); });
      } else if (in_.eat('I')) {
        path(false);
        print("<");
        list([&] { generic_argument(); });
        open = true;
      } else {
        path(false);
      }
    });
    return open;
  }

  void constant() {
    nested([&] {
      if (in_.eat('B')) return back_reference([&] { constant(); });
      const char tag = in_.next();
      switch (tag) {
        case 'p': return print("_");
        case 'b': return print(read_boolean(in_));
        case 'c': return print(read_character(in_));
        case 'a':
        case 's':
        case 'l':
        case 'x':
        case 'n':
        case 'i':
          if (in_.eat('n')) print("-");
          return print(read_integer(in_));
        case 'h':
        case 't':
        case 'm':
        case 'y':
        case 'o':
        case 'j': return print(read_integer(in_));
        default: in_.fail();
      }
    });
  }
  V0Cursor in_;
  size_t mangled_bytes_, most_bytes_;
  std::string out_;
  uint64_t bound_lifetimes_ = 0;
  int depth_ = 0;
  size_t nodes_ = 0;
  bool silent_ = false;
};

}  // namespace

std::string demangle_rust_v0(std::string_view rest) {
  return rest.size() > kMaxDemangledBytes ? std::string() : V0Printer(rest).run();
}

}  // namespace espy::symbols

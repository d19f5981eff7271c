#include "symbols/demangle.h"

#include <array>
#include <atomic>
#include <chrono>
#include <csetjmp>
#include <utility>

#include "base/time_budget.h"
#include "base/time_limit.h"
#include "symbols/cpu_alarm.h"
#include "symbols/rust_names.h"

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

// Demangles a name of C++; "" if it is malformed, becomes too long (LongNames) or takes too long. A name of 200 bytes
// can stand for gigabytes, as each substitution may double what the one before it stands for, and the demangler can
// walk through all of that before it has made any text: so it is left in the middle. Without references it cannot.
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
    if (spare.left(TimeBudget::Moment::clock::now()) < kMostTime) return "";
    const auto begin = thread_cpu_time();
    std::string out;
    if (const CpuAlarm alarm(kMostTime, leave); alarm.is_set()) out = run(mangled);
    const auto taken = thread_cpu_time() - begin;
    if (taken > kLongTime) spare.take(taken, TimeBudget::Moment::clock::now());
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

}  // namespace espy::symbols

// Rust's v0 scheme (RFC 2603): `_R` and a grammar of paths, types and constants in prefix notation.
//
// Repetition is avoided by back references, `B` and a base-62 offset from behind the `_R`, so reading is a recursive
// descent that may jump backwards. Three things keep it finite on hostile input: a reference must point before itself,
// depth is limited, and so is the length of the output. Lifetimes bound by `for<...>` are numbered from the innermost
// binder (de Bruijn). Left out: structured constants (`&[1, 2]` and ADTs as const generics), which stable Rust cannot
// produce.
#include <optional>
#include <vector>

#include "symbols/rust_names.h"

namespace espy::symbols {
namespace {

constexpr int kMaxDepth = 256;

// Punycode (RFC 3492) as Rust writes it: `_` divides the plain letters from the insertions.
std::optional<std::string> decode_punycode(std::string_view text) {
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

// Reads and prints at once. The first error sets `failed_`, after which nothing is printed and loops end.
class V0Reader {
 public:
  explicit V0Reader(std::string_view text) : text_(text) {}

  std::string run() {
    path(true);
    if (!failed_ && at_ < text_.size() && is_upper(text_[at_])) {  // the crate that instantiated it: not shown
      silent([&] { path(false); });
    }
    if (failed_) return {};
    const std::string_view suffix = text_.substr(at_);
    if (!suffix.empty() && suffix[0] != '.' && suffix[0] != '$') return {};
    return out_ + std::string(visible_suffix(suffix));
  }

 private:
  struct Identifier {
    uint64_t disambiguator = 0;
    std::string name;
  };

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
  void print(std::string_view piece) {
    if (failed_ || silent_) return;
    out_ += piece;
    if (out_.size() > kMaxDemangledBytes) failed_ = true;
  }
  template <class Read>
  void silent(Read read) {
    const bool before = silent_;
    silent_ = true;
    read();
    silent_ = before;
  }
  // Runs `read` unless we are too deep.
  template <class Read>
  void nested(Read read) {
    if (++depth_ > kMaxDepth) failed_ = true;
    if (!failed_) read();
    --depth_;
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
  // The number behind an optional tag: 0 if the tag is absent, else one more than it says.
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
    if (!punycode) return std::string(bytes);
    std::optional<std::string> decoded = decode_punycode(bytes);
    if (!decoded) failed_ = true;
    return std::move(decoded).value_or("");
  }
  Identifier identifier() {
    const uint64_t disambiguator = tagged_base62('s');
    return {disambiguator, plain_identifier()};
  }

  // Reads again what stands at an earlier place. When nothing is printed there is no reason to.
  template <class Read>
  void back_reference(Read read) {
    const size_t here = at_ - 1;
    const uint64_t target = base62();
    if (target >= here) failed_ = true;
    if (failed_ || silent_) return;
    const size_t resume = at_;
    at_ = target;
    read();
    at_ = resume;
  }

  // `in_value`: generic arguments of values are written `f::<T>`, those of types `T<U>`.
  void path(bool in_value) {
    nested([&] {
      switch (next()) {
        case 'C': print(identifier().name); break;
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
        default: failed_ = true;
      }
    });
  }
  void impl_path() {
    tagged_base62('s');
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
    const char space = next();
    if (!is_lower(space) && !is_upper(space)) failed_ = true;
    path(in_value);
    const Identifier id = identifier();
    if (is_lower(space)) {
      if (!id.name.empty()) print("::" + id.name);
      return;
    }
    print("::{");
    print(space == 'C' ? "closure" : (space == 'S' ? "shim" : std::string_view(&space, 1)));
    if (!id.name.empty()) print(":" + id.name);
    print("#" + std::to_string(id.disambiguator) + "}");
  }

  // Items up to the closing `E`, with commas between; gives how many.
  template <class Read>
  size_t list(Read read, std::string_view separator = ", ") {
    size_t count = 0;
    for (; !failed_ && !eat('E'); ++count) {
      if (count > 0) print(separator);
      read();
    }
    return count;
  }
  void generic_argument() {
    if (eat('L')) {
      lifetime(base62());
    } else if (eat('K')) {
      constant();
    } else {
      type();
    }
  }
  // 0 is the erased lifetime, 1 the innermost bound one.
  void lifetime(uint64_t index) {
    if (index == 0) return print("'_");
    if (index > bound_lifetimes_) {
      failed_ = true;
      return;
    }
    const uint64_t from_outside = bound_lifetimes_ - index;
    if (from_outside < 26) return print({'\'', static_cast<char>('a' + from_outside)});
    print("'_" + std::to_string(from_outside));
  }
  void print(std::initializer_list<char> characters) { print(std::string_view(characters.begin(), characters.size())); }

  // Reads an optional binder, then what it binds in.
  template <class Read>
  void with_binder(Read read) {
    const uint64_t count = tagged_base62('G');
    if (count > text_.size()) failed_ = true;
    if (count > 0 && !failed_) {
      print("for<");
      for (uint64_t i = 0; i < count && !failed_; ++i) {
        if (i > 0) print(", ");
        ++bound_lifetimes_;
        lifetime(1);
      }
      print("> ");
    }
    read();
    bound_lifetimes_ -= failed_ ? 0 : count;
  }

  void type() {
    nested([&] {
      const char tag = peek();
      if (const std::string_view basic = basic_type(tag); !basic.empty()) {
        ++at_;
        return print(basic);
      }
      switch (tag) {
        case 'C':
        case 'M':
        case 'X':
        case 'Y':
        case 'N':
        case 'I': return path(false);
        default: ++at_; return compound_type(tag);
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
      default: failed_ = true;
    }
  }
  void reference(bool is_mutable) {
    print("&");
    if (eat('L')) {
      if (const uint64_t index = base62(); index != 0) {
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
    if (eat('U')) print("unsafe ");
    if (eat('K')) {
      std::string abi = "C";
      if (!eat('C')) abi = plain_identifier();
      for (char& c : abi) c = c == '_' ? '-' : c;
      print("extern \"" + abi + "\" ");
    }
    print("fn(");
    list([&] { type(); });
    print(")");
    if (eat('u')) return;  // `-> ()` is not written
    print(" -> ");
    type();
  }
  void dynamic_trait() {
    print("dyn ");
    with_binder([&] { list([&] { trait_with_bindings(); }, " + "); });
    if (!eat('L')) failed_ = true;
    if (const uint64_t index = base62(); index != 0) {
      print(" + ");
      lifetime(index);
    }
  }
  // `Iterator<Item = u8>`: the bindings share the angle brackets of the trait's own generic arguments.
  void trait_with_bindings() {
    bool open = open_generic_path();
    while (eat('p')) {
      print(open ? ", " : "<");
      open = true;
      print(plain_identifier() + " = ");
      type();
    }
    if (open) print(">");
  }
  // A path whose closing `>` is left to the caller; says whether one is due.
  bool open_generic_path() {
    bool open = false;
    nested([&] {
      if (eat('B')) {
        back_reference([&] { open = open_generic_path(); });
      } else if (eat('I')) {
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
      if (eat('B')) return back_reference([&] { constant(); });
      const char tag = next();
      switch (tag) {
        case 'p': return print("_");
        case 'b': return boolean();
        case 'c': return character();
        case 'a':
        case 's':
        case 'l':
        case 'x':
        case 'n':
        case 'i':
          if (eat('n')) print("-");
          return integer();
        case 'h':
        case 't':
        case 'm':
        case 'y':
        case 'o':
        case 'j': return integer();
        default: failed_ = true;
      }
    });
  }
  std::string_view hex_digits() {
    const size_t start = at_;
    while (is_lower_hex(peek())) ++at_;
    const std::string_view digits = text_.substr(start, at_ - start);
    if (!eat('_')) failed_ = true;
    return digits;
  }
  static uint64_t hex_value(std::string_view digits) {
    uint64_t value = 0;
    for (const char c : digits) value = value * 16 + static_cast<uint64_t>(is_digit(c) ? c - '0' : c - 'a' + 10);
    return value;
  }
  void integer() {
    const std::string_view digits = hex_digits();
    if (digits.size() > 16) return print("0x" + std::string(digits));
    print(std::to_string(hex_value(digits)));
  }
  void boolean() {
    const std::string_view digits = hex_digits();
    if (digits != "0" && digits != "1") failed_ = true;
    print(digits == "1" ? "true" : "false");
  }
  void character() {
    const std::string_view digits = hex_digits();
    if (digits.size() > 6) failed_ = true;
    const auto code = static_cast<uint32_t>(hex_value(digits));
    if (code > 0x10ffff) failed_ = true;
    if (failed_) return;
    std::string text;
    switch (code) {
      case '\'': text = "\\'"; break;
      case '\\': text = "\\\\"; break;
      case '\n': text = "\\n"; break;
      case '\r': text = "\\r"; break;
      case '\t': text = "\\t"; break;
      default: append_utf8(text, code);
    }
    print("'" + text + "'");
  }

  std::string_view text_;  // behind `_R`; back references count from here
  size_t at_ = 0;
  std::string out_;
  uint64_t bound_lifetimes_ = 0;
  int depth_ = 0;
  bool silent_ = false;
  bool failed_ = false;
};

}  // namespace

std::string demangle_rust_v0(std::string_view rest) { return V0Reader(rest).run(); }

}  // namespace espy::symbols

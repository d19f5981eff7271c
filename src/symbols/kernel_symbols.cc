// The kernel formats /proc/kallsyms for each reader: 120,000 to 250,000 lines such as
//
//   ffffffff8137c2d0 T vfs_read
//   ffffffffc0a41010 t nf_nat_setup_info	[nf_nat]
//
// That takes about 40 ms, nearly all of the cost. So a lookup by name searches the text as it arrives and stops at the
// first hit. A lookup by address needs the whole text, but no table of parsed symbols: addresses have a fixed number of
// hex digits, so lines compare by address as bytes, and the index holds only the offset of each line. Built-in symbols
// are already sorted; only those of modules, which follow, need sorting.
#include "symbols/kernel_symbols.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace espy::symbols {
namespace {

constexpr size_t kHexDigits = sizeof(void*) * 2;

// Parses "ADDRESS TYPE NAME" or "ADDRESS TYPE NAME\t[MODULE]"; all fields are 0 or empty if the line is malformed.
KernelSymbol parse_line(std::string_view line) {
  KernelSymbol out;
  if (line.size() < kHexDigits + 4) return out;
  std::from_chars(line.data(), line.data() + kHexDigits, out.address, 16);
  out.name = line.substr(kHexDigits + 3);
  if (const size_t tab = out.name.find('\t'); tab != out.name.npos) {
    out.module = out.name.substr(tab + 1);
    out.name = out.name.substr(0, tab);
    if (out.module.starts_with('[') && out.module.ends_with(']'))
      out.module = out.module.substr(1, out.module.size() - 2);
  }
  return out;
}

}  // namespace

bool KernelSymbols::read_more() {
  if (at_end_) return false;
  if (!file_.valid()) file_ = OwnedFd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  char chunk[64 * 1024];  // the kernel gives a page of lines at a time
  ssize_t got = -1;
  do {
    got = ::read(file_.get(), chunk, sizeof(chunk));
  } while (got < 0 && errno == EINTR);
  text_ += partial_line_;
  partial_line_.clear();
  text_.append(chunk, static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (got <= 0) {
    at_end_ = true;
    file_.reset();
    if (!text_.empty() && !text_.ends_with('\n')) text_ += '\n';
    text_.shrink_to_fit();
    return false;
  }
  const size_t whole = text_.rfind('\n') + 1;
  partial_line_ = text_.substr(whole);
  text_.resize(whole);
  return true;
}

std::string_view KernelSymbols::line_at(size_t offset) const {
  const std::string_view rest = std::string_view(text_).substr(offset);
  return rest.substr(0, rest.find('\n'));
}

std::optional<KernelSymbol> KernelSymbols::find(std::string_view name) {
  if (name.empty()) return std::nullopt;
  std::string needle = " ";
  needle += name;
  size_t from = 0;
  do {
    for (;;) {
      const void* hit = ::memmem(text_.data() + from, text_.size() - from, needle.data(), needle.size());
      if (hit == nullptr) break;
      const auto at = static_cast<size_t>(static_cast<const char*>(hit) - text_.data());
      from = at + 1;
      if (const char end = text_[at + needle.size()]; end != '\n' && end != '\t') continue;
      const size_t line = text_.rfind('\n', at) + 1;  // npos + 1 is 0: the first line
      if (const KernelSymbol symbol = parse_line(line_at(line)); symbol.name == name) return symbol;
    }
    from = text_.size();
  } while (read_more());
  return std::nullopt;
}

void KernelSymbols::build_index() {
  if (indexed_) return;
  indexed_ = true;
  while (read_more()) {
  }
  by_address_.reserve(static_cast<size_t>(std::ranges::count(text_, '\n')));
  for (size_t line = 0; line < text_.size();) {
    const auto* end = static_cast<const char*>(std::memchr(text_.data() + line, '\n', text_.size() - line));
    const auto next = static_cast<size_t>(end - text_.data()) + 1;
    if (next - line > kHexDigits + 3) by_address_.push_back(static_cast<uint32_t>(line));
    line = next;
  }
  const char* text = text_.data();
  const auto before = [text](uint32_t a, uint32_t b) { return std::memcmp(text + a, text + b, kHexDigits) < 0; };
  // Stable: of several names of one address, the first in kallsyms stays first.
  const auto unsorted = std::is_sorted_until(by_address_.begin(), by_address_.end(), before);
  std::stable_sort(unsorted, by_address_.end(), before);
  std::inplace_merge(by_address_.begin(), unsorted, by_address_.end(), before);
}

bool KernelSymbols::read_ahead() {
  constexpr int kPages = 100;
  for (int i = 0; i < kPages; ++i) {
    if (read_more()) continue;
    build_index();
    return false;
  }
  return true;
}

// Lines are sorted: the last has the highest address.
bool KernelSymbols::are_hidden() const {
  return !by_address_.empty() && parse_line(line_at(by_address_.back())).address == 0;
}

std::optional<KernelSymbol> KernelSymbols::at_or_before(uint64_t address) {
  build_index();
  const auto address_of = [this](uint32_t line) {
    uint64_t value = 0;
    std::from_chars(text_.data() + line, text_.data() + line + kHexDigits, value, 16);
    return value;
  };
  const auto after = std::ranges::upper_bound(by_address_, address, {}, address_of);
  if (after == by_address_.begin()) return std::nullopt;
  const uint64_t start = address_of(*(after - 1));
  // kallsyms has no sizes. No function or variable is this large, so an address further from the nearest symbol is in
  // heap, stack or user memory.
  constexpr uint64_t kMaxSymbolBytes = 16 << 20;
  if (start == 0 || address - start >= kMaxSymbolBytes) return std::nullopt;
  return parse_line(line_at(*std::ranges::lower_bound(by_address_, start, {}, address_of)));
}

}  // namespace espy::symbols

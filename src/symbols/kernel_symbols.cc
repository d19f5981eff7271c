// The kernel prints /proc/kallsyms anew for each reader: 120,000 to 250,000 lines like
//
//   ffffffff8137c2d0 T vfs_read
//   ffffffffc0a41010 t nf_nat_setup_info	[nf_nat]
//
// That printing, some 40 ms, is nearly all the cost. So one name is looked up while the text arrives, and reading ends
// at the first hit. For addresses all of it is needed, but no table of parsed symbols: an address is printed with a
// fixed number of hex digits, so lines compare by address as plain bytes, and an index is just where each line begins.
// Built-in symbols come sorted already; the sort has to place only the modules' behind them.
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

// "ADDRESS TYPE NAME" or "ADDRESS TYPE NAME\t[MODULE]"; all zero where it is none of these.
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
  // Stable, so that of several names of one address the kernel's first stays first.
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
  // kallsyms has no sizes. Behind the last symbol of an area comes nothing for a long while, and no function or
  // variable is this big, so a far address is heap, stack or user memory, not an offset into something.
  constexpr uint64_t kMaxSymbolBytes = 16 << 20;
  if (start == 0 || address - start >= kMaxSymbolBytes) return std::nullopt;
  return parse_line(line_at(*std::ranges::lower_bound(by_address_, start, {}, address_of)));
}

}  // namespace espy::symbols

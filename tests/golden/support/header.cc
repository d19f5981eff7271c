#include "golden/support/header.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "base/strings.h"

namespace espy::golden {

namespace {

constexpr std::string_view kSectionMark = "//--- ";
constexpr std::string_view kBlockMark = "//   ";
constexpr size_t kMaxWordsOfKey = 2;

struct KeyLine {
  std::string key;
  std::string value;
};

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_in_word(char c) { return is_letter(c) || c == '-' || c == '_'; }

// "// word word : value", in any case of letters. nullopt if the line does not have this form.
std::optional<KeyLine> parse_key_line(std::string_view line) {
  if (!line.starts_with("//")) return std::nullopt;
  const std::string_view comment = trim(line.substr(2));
  const size_t colon = comment.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  if (colon + 1 < comment.size() && comment[colon + 1] != ' ') return std::nullopt;  // "tracepoint:sched:..."
  const std::string_view key = trim(comment.substr(0, colon));
  if (key.empty() || !is_letter(key.front())) return std::nullopt;
  if (!std::ranges::all_of(key, [](char c) { return is_in_word(c) || c == ' '; })) return std::nullopt;
  if (std::ranges::count(key, ' ') >= std::ptrdiff_t{kMaxWordsOfKey}) return std::nullopt;
  return KeyLine{std::string(key), std::string(trim(comment.substr(colon + 1)))};
}

class Reader {
 public:
  Reader(const std::string& path, std::span<const HeaderKey> keys) : path_(path), keys_(keys) {
    for (const HeaderKey& key : keys) names_.push_back(key.name);
  }

  Status read_line(std::string_view line) {
    ++line_number_;
    if (is_block_ && line.starts_with(kBlockMark)) {
      std::string& value = lines_.back().value;
      value += fmt::format("{}{}", value.empty() ? "" : "\n", line.substr(kBlockMark.size()));
      return {};
    }
    TRY_STATUS(end_block());
    is_in_header_ = is_in_header_ && (line.empty() || line.starts_with("//") || line.starts_with("#!"));
    const std::optional<KeyLine> parsed = parse_key_line(line);
    if (!parsed) return {};
    const auto known = std::ranges::find(keys_, parsed->key, &HeaderKey::name);
    if (is_in_header_ && known != keys_.end()) return add(*known, *parsed);
    if (is_in_header_) return require_prose(*parsed);
    if (known == keys_.end()) return {};
    return fail_at(path_, line_number_, fmt::format("`{}:` must stand before the script's first line", parsed->key));
  }

  // After the last line.
  Result<std::vector<HeaderLine>> take_lines() {
    TRY_STATUS(end_block());
    return std::move(lines_);
  }

 private:
  Status add(const HeaderKey& key, const KeyLine& parsed) {
    const auto first = std::ranges::find(lines_, parsed.key, &HeaderLine::key);
    if (!key.is_repeatable && first != lines_.end())
      return fail_at(path_, line_number_,
                     fmt::format("`{}:` is given twice, first in line {}", parsed.key, first->line_number));
    lines_.push_back({parsed.key, parsed.value, line_number_});
    is_block_ = parsed.value.empty();
    return {};
  }

  Status end_block() {
    if (!std::exchange(is_block_, false) || !lines_.back().value.empty()) return {};
    const HeaderLine& line = lines_.back();
    return fail_at(path_, line.line_number, fmt::format("`{}:` has no value", line.key));
  }

  Status require_prose(const KeyLine& parsed) const {
    const bool is_lower_case = to_lower(parsed.key) == parsed.key;
    if (!is_lower_case && nearest(parsed.key, names_).empty()) return {};
    std::vector<std::string> known(names_.begin(), names_.end());
    std::ranges::sort(known);
    return fail_at(path_, line_number_, fmt::format("unknown key `{}`; known: {}", parsed.key, join(known, ", ")));
  }

  const std::string& path_;
  std::span<const HeaderKey> keys_;
  std::vector<std::string_view> names_;
  std::vector<HeaderLine> lines_;
  uint32_t line_number_ = 0;
  bool is_in_header_ = true;
  bool is_block_ = false;  // the last of lines_ goes on
};

}  // namespace

tl::unexpected<Error> fail_at(const std::string& path, uint32_t line_number, std::string_view message) {
  return fail(fmt::format("{}:{}: {}", path, line_number, message));
}

Result<std::vector<HeaderLine>> read_header(const std::string& path, std::string_view text,
                                            std::span<const HeaderKey> keys) {
  Reader reader(path, keys);
  for (const std::string_view line : split(text, '\n')) {
    if (line.starts_with(kSectionMark)) break;
    TRY_STATUS(reader.read_line(line));
  }
  return reader.take_lines();
}

}  // namespace espy::golden

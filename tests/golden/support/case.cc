#include "golden/support/case.h"

#include <fmt/format.h>

#include "base/files.h"
#include "base/strings.h"
#include "golden/support/header.h"

namespace espy::golden {

namespace {

constexpr std::string_view kSectionMark = "//--- ";
constexpr HeaderKey kKeys[] = {{"kernel"}, {"args"}, {"env", true}, {"fire", true}, {"live"}, {"needs", true}};
constexpr std::string_view kNoNewline = "//\\ no newline at the end";

std::string expand_file(std::string word, const std::string& file) {
  if (const size_t at = word.find("$FILE"); at != std::string::npos) word.replace(at, 5, file);
  return word;
}

std::string unquoted(const std::string& word) {
  const bool is_quoted =
      word.size() >= 2 && (word.front() == '\'' || word.front() == '"') && word.back() == word.front();
  return is_quoted ? word.substr(1, word.size() - 2) : word;
}

// "x12" is a count; all else is NAME=VALUE.
Result<Fire> parse_fire(std::string_view text) {
  Fire fire;
  fire.text = text;
  for (const std::string& word : split_words(text)) {
    const size_t equals = word.find('=');
    if (fire.probe.empty()) {
      fire.probe = word;
    } else if (equals != std::string::npos) {
      fire.facts.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    } else if (const auto count = parse_int(word.substr(1)); word[0] == 'x' && count && *count > 0) {
      fire.count = static_cast<uint32_t>(*count);
    } else {
      return fail(fmt::format("fire: `{}` is neither name=value nor xN", word));
    }
  }
  if (fire.probe.empty()) return fail("fire: no probe");
  return fire;
}

class Reader {
 public:
  Reader(Case& c, std::string file) : case_(c), file_(std::move(file)) {}

  Status header_line(const HeaderLine& line) {
    const std::string &key = line.key, &value = line.value;
    if (key == "kernel") case_.kernel = value;
    if (key == "fire") case_.fires.push_back(TRY(parse_fire(value)));
    if (key == "needs") case_.needs.emplace_back(value);
    if (key == "env") {
      const size_t equals = value.find('=');
      if (equals == std::string::npos) return fail("env: it is not NAME=VALUE");
      case_.environment.emplace_back(value.substr(0, equals), unquoted(value.substr(equals + 1)));
    }
    if (key == "args")
      for (const std::string& word : split_words(value)) case_.arguments.push_back(unquoted(expand_file(word, file_)));
    if (key == "live") {
      if (value != "yes" && !value.starts_with("no ")) return fail("live: it is neither `yes` nor `no (WHY)`");
      case_.live = value == "yes";
      case_.why_not_live = *case_.live ? "" : trim(value.substr(3));
    }
    return {};
  }

  Status section_line(std::string_view line) {
    if (line.starts_with(kSectionMark)) return begin_section(line.substr(kSectionMark.size()));
    if (case_.sections.empty()) return line.empty() ? Status() : fail("text behind an exit status");
    std::string& text = case_.sections.back().text;
    if (line == kNoNewline) {
      if (text.ends_with('\n')) text.pop_back();
    } else if (line == "//") {
      text += '\n';
    } else if (line.starts_with("// ")) {
      text += fmt::format("{}\n", line.substr(3));
    } else if (!line.empty()) {
      return fail(fmt::format("behind the first section only comments may stand, not `{}`", line));
    }
    return {};
  }

 private:
  Status begin_section(std::string_view name) {
    if (!name.starts_with("exit ")) {
      case_.sections.push_back({std::string(name), ""});
      return {};
    }
    const auto status = parse_int(name.substr(5));
    if (!status) return fail("exit: no number");
    case_.exit_status = static_cast<int>(*status);
    return {};
  }

  Case& case_;
  std::string file_;
};

}  // namespace

const Section* Case::find(std::string_view section) const {
  for (const Section& s : sections)
    if (s.name == section) return &s;
  return nullptr;
}

bool Case::runs_live() const {
  if (live) return *live;
  return fires.empty() && find("stdout") != nullptr;
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> out;
  std::string word;
  char quote = 0;
  int depth = 0;
  for (const char c : text) {
    if (quote == 0 && depth == 0 && c == ' ') {
      if (!word.empty()) out.push_back(std::move(word));
      word.clear();
      continue;
    }
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    }
    word += c;
  }
  if (!word.empty()) out.push_back(std::move(word));
  return out;
}

Result<Case> read_case(const std::string& path) {
  Case out;
  out.path = path;
  const std::string text = TRY(read_file(path));
  Reader reader(out, path.substr(path.rfind('/') + 1));
  for (const HeaderLine& line : TRY(read_header(path, text, kKeys)))
    if (const Status done = reader.header_line(line); !done)
      return fail_at(path, line.line_number, done.error().message);
  bool in_sections = false;
  uint32_t number = 0;
  std::vector<std::string_view> lines = split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  for (const std::string_view line : lines) {
    ++number;
    in_sections = in_sections || line.starts_with(kSectionMark);
    if (!in_sections) {
      out.script += fmt::format("{}\n", line);
    } else if (const Status done = reader.section_line(line); !done) {
      return fail_at(path, number, done.error().message);
    }
  }
  if (out.arguments.empty()) out.arguments.push_back(path.substr(path.rfind('/') + 1));
  while (out.script.ends_with("\n\n")) out.script.pop_back();
  return out;
}

std::string write_case(const Case& c) {
  std::string out = c.script;
  const auto mark = [&](const std::string& name) { out += fmt::format("\n{}{}\n", kSectionMark, name); };
  for (const Section& section : c.sections) {
    mark(section.name);
    std::vector<std::string_view> lines = split(section.text, '\n');
    const bool has_newline = lines.back().empty();
    if (has_newline) lines.pop_back();
    for (const std::string_view line : lines) out += line.empty() ? "//\n" : fmt::format("// {}\n", line);
    if (!has_newline) out += fmt::format("{}\n", kNoNewline);
  }
  if (c.exit_status != 0) mark(fmt::format("exit {}", c.exit_status));
  return out;
}

}  // namespace espy::golden

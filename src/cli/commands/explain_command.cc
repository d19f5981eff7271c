// espy explain: cause and cure of a diagnostic, by the id at the end of its first line. The texts are those of
// docs/reference/messages-*.md.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "cli/bundled_files.h"
#include "cli/command.h"
#include "cli/words.h"
#include "run/run_script.h"

namespace espy::cli {

namespace {

// scripts/list-diagnostics writes them; each id has a section.
constexpr std::string_view kPages[] = {"docs/reference/messages-a-m.md", "docs/reference/messages-n-r.md",
                                       "docs/reference/messages-s-z.md"};

// Returns the section below the heading of an id; "" if there is none.
std::string_view section_of(std::string_view id) {
  const std::string heading = fmt::format("\n## {}\n", id);
  for (const std::string_view path : kPages) {
    const std::string_view page = bundled_file(path);
    const size_t begin = page.find(heading);
    if (begin == page.npos) continue;
    const size_t end = page.find("\n## ", begin + 1);
    return trim(page.substr(begin + heading.size(), end - begin - heading.size()));
  }
  return {};
}

}  // namespace

std::vector<std::string_view> diagnostic_ids() {
  std::vector<std::string_view> out;
  for (const std::string_view path : kPages)
    for (const std::string_view line : split(bundled_file(path), '\n'))
      if (line.starts_with("## ")) out.push_back(line.substr(3));
  return out;
}

std::string explain_diagnostic(std::string_view id) {
  const std::string_view section = section_of(id);
  if (section.empty()) return {};
  std::string out = fmt::format("{}:\n", id);
  bool is_example = false, follows_blank = true;
  for (const std::string_view line : split(section, '\n')) {
    if (line == "```") {
      is_example = !is_example;
    } else if (is_example) {
      out += fmt::format("    {}\n", line);
    } else if (!line.empty() || !follows_blank) {
      out += run::wrapped(line, 0) + "\n";
    }
    follows_blank = line.empty();
  }
  return out;
}

namespace {

int explain(const Options& options, const Host&) {
  std::string out;
  for (std::string_view id : options.names) {
    if (id.starts_with('[')) id.remove_prefix(1);
    if (id.ends_with(']')) id.remove_suffix(1);
    const std::string text = explain_diagnostic(id);
    if (text.empty()) {
      const std::string near = nearest(id, diagnostic_ids());
      return complain({fmt::format("there is no diagnostic `{}`", id), 0,
                       near.empty() ? "the id is in brackets at the end of a message: [unknown-name]"
                                    : fmt::format("did you mean `{}`?", near)});
    }
    out += (out.empty() ? "" : "\n") + text;
  }
  std::fputs(out.c_str(), stdout);
  return EXIT_SUCCESS;
}

constexpr std::string_view kUsage[] = {"explain ID..."};
constexpr std::string_view kNotes = "The ID of an error or warning is in brackets at the end of its first line.\n";
constexpr Example kExamples[] = {{"espy explain bad-operands", "explain an error"},
                                 {"espy explain key-mismatch type-mismatch", "explain two errors"}};

}  // namespace

extern const Command kExplain = {
    .word = "explain",
    .summary = "explain an error or warning: its cause and its cure",
    .topic = Topic::kLookUp,
    .operands = Operands::kNames,
    .usage = kUsage,
    .notes = kNotes,
    .examples = kExamples,
    .run = explain,
};

}  // namespace espy::cli

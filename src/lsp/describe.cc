#include "lsp/describe.h"

#include <fmt/format.h>

#include "base/strings.h"

namespace espy::lsp {

std::string code_block(std::string_view code) { return fmt::format("```bpftrace\n{}\n```\n", code); }

std::string describe(const spec::Builtin& builtin) {
  std::string out = code_block(builtin.sig) + std::string(builtin.doc);
  if (!builtin.providers.empty()) out += fmt::format("\n\nOnly in probes of: {}.", builtin.providers);
  if (builtin.is_unsafe && builtin.doc.find("--unsafe") == builtin.doc.npos) out += "\n\nNeeds `--unsafe`.";
  if (!builtin.example.empty()) out += "\n\n" + code_block(builtin.example);
  return out;
}

std::string describe(const spec::Provider& provider) {
  std::string out = code_block(provider.form) + std::string(provider.doc);
  if (!provider.example.empty()) out += "\n\n" + code_block(provider.example);
  return out;
}

std::string declaration_of(const check::CheckedMap& map, const types::Types& types) {
  std::string key;
  if (map.key.valid() && types[map.key].kind != types::Kind::kVoid) {
    key = types::to_string(types, map.key);
    if (key.starts_with('(')) key = key.substr(1, key.size() - 2);
    key = "[" + key + "]";
  }
  const std::string value = map.value.valid() ? types::to_string(types, map.value) : "void";
  return fmt::format("{}{}: {}", map.name, key, value);
}

std::string head_of(const Analysis& analysis, source::Span whole) {
  const std::string_view text = analysis.sources.text(whole);
  return std::string(trim(text.substr(0, text.find('{'))));
}

namespace {

constexpr size_t kMostLines = 40;  // of a definition; all of it is where "go to definition" leads

std::string first_lines(std::string_view text) {
  size_t end = 0;
  for (size_t lines = 0; lines < kMostLines; ++lines) {
    end = text.find('\n', end);
    if (end == text.npos) return std::string(text);
    ++end;
  }
  return std::string(text.substr(0, end)) + "\t...";
}

}  // namespace

std::string definition_of(const Analysis& analysis, const std::string& name) {
  if (name.empty()) return "";
  const auto text = analysis.kernel.c_definition(name);
  return text ? fmt::format("```c\n{}\n```\n", first_lines(*text)) : "";
}

}  // namespace espy::lsp

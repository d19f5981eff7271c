#include "serve/described_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/strings.h"
#include "check/check.h"
#include "output/json.h"
#include "output/profile_formats.h"
#include "output/quantity.h"

namespace espy::serve {

namespace {

using syntax::ExprId;

constexpr size_t kMaxHelpBytes = 300;

bool is_name_character(char c) {
  return c == '_' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

// ---- Names of the parts of a key

// Names an expression by what is specific in it; "" if there is nothing, as in a literal.
class ExprNamer {
 public:
  explicit ExprNamer(const syntax::Ast& ast) : ast_(ast) {}

  std::string operator()(ExprId id) const {
    return id.valid() ? std::visit([&](const auto& node) { return name(node); }, ast_[id].node) : "";
  }

 private:
  std::string name(const syntax::Name& node) const { return node.name; }
  std::string name(const syntax::Variable& node) const { return node.name.substr(1); }
  std::string name(const syntax::Map& node) const { return node.name.substr(1); }
  std::string name(const syntax::Access& node) const { return node.name; }
  std::string name(const syntax::TupleAccess& node) const {
    return fmt::format("{}_{}", (*this)(node.base), node.index);
  }
  std::string name(const syntax::Index& node) const { return (*this)(node.base); }
  std::string name(const syntax::Cast& node) const { return (*this)(node.operand); }
  std::string name(const syntax::Unary& node) const { return (*this)(node.operand); }
  std::string name(const syntax::Binary& node) const {
    const std::string left = (*this)(node.left);
    return left.empty() ? (*this)(node.right) : left;
  }
  // str(args.filename) is `filename`, kstack(5) is `kstack`.
  std::string name(const syntax::Call& node) const {
    const std::string argument = node.arguments.empty() ? "" : (*this)(node.arguments.front());
    return argument.empty() ? node.name : argument;
  }
  template <class Other>
  std::string name(const Other&) const {
    return "";
  }

  const syntax::Ast& ast_;
};

// The expressions of the parts of the key, where the script first has them; none for a scalar.
std::vector<ExprId> key_parts(const syntax::Ast& ast, std::string_view map) {
  for (const syntax::Expr& expr : ast.exprs) {
    const auto* index = std::get_if<syntax::Index>(&expr.node);
    const auto* base = index != nullptr ? ast.get<syntax::Map>(index->base) : nullptr;
    if (base == nullptr || base->name != map) continue;
    if (index->indices.size() != 1) return index->indices;
    const auto* tuple = ast.get<syntax::Tuple>(index->indices.front());
    return tuple != nullptr ? tuple->elements : index->indices;
  }
  return {};
}

// `le` and `quantile` have a meaning of their own in histograms and summaries.
std::string label_name(const std::string& text, size_t number, size_t count) {
  if (text.empty()) return count == 1 ? "key" : fmt::format("key{}", number + 1);
  const std::string name = metric_name(text);
  return name == "le" || name == "quantile" ? "key_" + name : name;
}

// Makes each name differ from those before it.
void make_distinct(std::vector<std::string>& names) {
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = names[i];
    for (int number = 2; std::find(names.begin(), names.begin() + static_cast<ptrdiff_t>(i), names[i]) !=
                         names.begin() + static_cast<ptrdiff_t>(i);
         ++number)
      names[i] = fmt::format("{}_{}", name, number);
  }
}

std::vector<std::string> labels_of(const syntax::Ast& ast, const program::ScriptMap& map, const types::Types& types) {
  const types::Type& key = types[map.key];
  if (key.kind == types::Kind::kVoid) return {};
  const size_t count = key.kind == types::Kind::kTuple ? key.members.size() : 1;
  const std::vector<ExprId> parts = key_parts(ast, map.name);
  const ExprNamer name_of(ast);
  std::vector<std::string> out;
  for (size_t i = 0; i < count; ++i) {
    const std::string whole = parts.empty() ? "" : name_of(parts.front());  // a tuple that is not written as one
    const std::string text = parts.size() == count ? name_of(parts[i])
                             : whole.empty()       ? ""
                                                   : fmt::format("{}_{}", whole, i);
    out.push_back(label_name(text, i, count));
  }
  make_distinct(out);
  return out;
}

// ---- The configuration: "@reads: process, file; @sizes: process"

Status apply_labels(const std::string& config, std::vector<DescribedMap>& maps) {
  for (const std::string_view part : split(config, ';')) {
    if (trim(part).empty()) continue;
    const size_t colon = part.find(':');
    const std::string_view name = trim(part.substr(0, colon));
    const auto map = std::ranges::find(maps, name, &DescribedMap::name);
    if (map == maps.end())
      return fail(fmt::format("`labels` of the configuration names `{}`, which is not a map", name));
    std::vector<std::string> labels;
    for (const std::string_view label : split(colon == part.npos ? "" : part.substr(colon + 1), ','))
      labels.emplace_back(trim(label));
    for (const std::string& label : labels)
      if (label_name(label, 0, 1) != label || std::ranges::count(labels, label) > 1)
        return fail(fmt::format("`labels` of the configuration has `{}` for {}, which cannot be a label", label, name),
                    0, "labels are letters, digits and underscores, each once for a map, and not `le` or `quantile`");
    if (labels.size() != map->labels.size())
      return fail(fmt::format("`labels` of the configuration has {} for {}, whose key has {}", labels.size(), name,
                              map->labels.size()));
    map->labels = std::move(labels);
  }
  return {};
}

// ---- Comments

// The text of a line that is a comment, and nothing else; nullopt for other lines.
std::optional<std::string_view> comment_of(std::string_view line) {
  line = trim(line);
  if (line.starts_with("//")) return trim(line.substr(2));
  if (line.starts_with("/*") && line.ends_with("*/") && line.size() >= 4) return trim(line.substr(2, line.size() - 4));
  return std::nullopt;
}

// Whether a line begins with the map, or declares it.
bool begins_with_map(std::string_view line, std::string_view map) {
  line = trim(line);
  if (line.starts_with("let ")) line = trim(line.substr(4));
  return line.starts_with(map) && (line.size() == map.size() || !is_name_character(line[map.size()]));
}

// The comment above the first line that begins with the map and has one; "" if there is none.
std::string comment_above(std::string_view text, std::string_view map) {
  std::string above;
  for (const std::string_view line : split(text, '\n')) {
    if (const auto comment = comment_of(line)) {
      if (!above.empty()) above += ' ';
      above += *comment;
      continue;
    }
    if (!above.empty() && begins_with_map(line, map)) return above.substr(0, kMaxHelpBytes);
    above.clear();
  }
  return "";
}

void describe(const program::ScriptMap& map, const source::Sources& sources, DescribedMap& out) {
  out.help = fmt::format("The map {}.", map.name);
  if (!map.span.valid()) return;
  const source::Source& script = sources[map.span.source];
  const std::string comment = comment_above(script.text, map.name);
  out.has_comment = !comment.empty();
  out.help = out.has_comment ? comment : fmt::format("The map {} of {}.", map.name, base_name(script.name));
}

// ---- JSON

constexpr size_t kMaxEntries = 500;
constexpr size_t kMaxHistograms = 50;
constexpr size_t kMaxStacks = 5000;

bool is_histogram(types::Kind kind) { return kind == types::Kind::kHist || kind == types::Kind::kLhist; }

// A key as an array of texts.
std::string key_json(const output::Value& key, const output::TextStyle& style) {
  const auto* tuple = std::get_if<output::TupleValue>(&key.node);
  if (tuple == nullptr) return fmt::format("[{}]", output::json_text(key, style));
  std::string out;
  for (const output::Value& item : tuple->items)
    out += fmt::format("{}{}", out.empty() ? "[" : ",", output::json_text(item, style));
  return out + "]";
}

// What is no number, text or picture has a text as print() shows it.
bool needs_text(const output::Value& value) {
  return std::holds_alternative<output::TupleValue>(value.node) ||
         std::holds_alternative<output::ListValue>(value.node) ||
         std::holds_alternative<output::RecordValue>(value.node) ||
         std::holds_alternative<output::EnumValue>(value.node) ||
         std::holds_alternative<output::PointerValue>(value.node) ||
         std::holds_alternative<output::BufferValue>(value.node) ||
         std::holds_alternative<output::RecentValue>(value.node);
}

void append_entries(const DescribedMap& map, const output::MapView& view, const output::TextStyle& style,
                    std::string& out) {
  const size_t most = is_histogram(map.value) ? kMaxHistograms : kMaxEntries;
  const size_t first = view.entries.size() - std::min(view.entries.size(), most);
  out += ",\"entries\":[";
  for (size_t i = first; i < view.entries.size(); ++i) {
    const output::MapEntry& entry = view.entries[i];
    out += fmt::format("{}[{},{}", i > first ? "," : "", view.is_scalar ? "[]" : key_json(entry.key, style),
                       output::json(entry.value, style));
    if (needs_text(entry.value)) out += "," + output::json_text(entry.value, style);
    out += "]";
  }
  out += "]";
}

// Numbers the frames of stacks.
class FrameTable {
 public:
  size_t number_of(const output::FoldedFrame& frame) {
    const std::string name = output::folded_name(frame);
    const char kind = letter_of(frame.kind);
    const auto [found, is_new] = numbers_.try_emplace(kind + name, numbers_.size());
    if (is_new) {
      names_.add(json_string(name));
      kinds_ += kind;
    }
    return found->second;
  }
  std::string json() const { return fmt::format("\"frames\":{},\"kinds\":\"{}\"", names_.array(), kinds_); }

 private:
  static char letter_of(output::FrameKind kind) {
    switch (kind) {
      case output::FrameKind::kUser: return 'u';
      case output::FrameKind::kInlined: return 'i';
      case output::FrameKind::kKernel: return 'k';
      case output::FrameKind::kText: return 't';
      case output::FrameKind::kUnknown: return 'x';
    }
    return 'x';
  }

  std::unordered_map<std::string, size_t> numbers_;  // by the letter of the kind and the name
  output::JsonList names_{","};
  std::string kinds_;
};

void append_stacks(const output::MapView& view, const output::TextStyle& style, std::string& out) {
  std::vector<output::FoldedStack> stacks = output::collapse_stacks(view, style);
  std::ranges::stable_sort(stacks, std::ranges::greater(), &output::FoldedStack::weight);
  if (stacks.size() > kMaxStacks) stacks.resize(kMaxStacks);
  FrameTable frames;
  output::JsonList shown(",");
  for (const output::FoldedStack& stack : stacks) {
    output::JsonList numbers(",");
    numbers.add(std::to_string(stack.weight));
    for (const output::FoldedFrame& frame : stack.frames) numbers.add(std::to_string(frames.number_of(frame)));
    shown.add(numbers.array());
  }
  out += fmt::format(",\"stacks\":{},{}", shown.array(), frames.json());
  if (view.sampled != program::SamplePeriod{}) out += ",\"sampled\":true";
}

}  // namespace

std::string metric_name(std::string_view text) {
  std::string out;
  for (const char c : text) out += is_name_character(c) ? c : '_';
  while (out.starts_with("__")) out.erase(0, 1);
  if (out.empty() || (out[0] >= '0' && out[0] <= '9')) out.insert(0, "_");
  return out;
}

Result<std::vector<DescribedMap>> describe_maps(const check::Checked& checked, const program::Program& program,
                                                const types::Types& types, const source::Sources& sources,
                                                const std::string& labels) {
  const std::set<std::string> scratch = check::scratch_maps(checked, types);
  std::vector<DescribedMap> out;
  for (const program::ScriptMapId id : program.script_maps.ids()) {
    const program::ScriptMap& map = program.script_maps[id];
    const types::Kind kind = types[map.value].kind;
    if (kind == types::Kind::kVoid || map.storage == program::Storage::kThread) continue;
    DescribedMap& described = out.emplace_back(id, map.name, kind, labels_of(checked.ast, map, types));
    described.is_scratch = scratch.contains(map.name);
    describe(map, sources, described);
  }
  std::ranges::stable_sort(out, {}, [&](const DescribedMap& map) {
    const source::Span& span = program.script_maps[map.id].span;
    return std::tuple(span.source.index, span.begin);
  });
  TRY_STATUS(apply_labels(labels, out));
  return out;
}

std::string map_json(const DescribedMap& map, const output::MapView& view, const output::TextStyle& style) {
  output::JsonList labels(",");
  for (const std::string& label : map.labels) labels.add(json_string(label));
  std::string out = fmt::format("{{\"name\":{},\"kind\":{},\"scalar\":{},\"help\":{},\"keys\":{},\"labels\":{}",
                                json_string(map.name), json_string(types::kind_word(map.value)), view.is_scalar,
                                json_string(map.has_comment ? map.help : ""), view.entries.size(), labels.array());
  output::TextStyle with_units = style;
  with_units.has_units = true;
  if (const types::Unit unit = output::unit_for(view, with_units); unit != types::Unit::kNone)
    out += fmt::format(",\"unit\":{}", json_string(types::long_name(unit)));
  if (map.is_scratch) out += ",\"scratch\":true";
  if (view.seen_share < 1) out += fmt::format(",\"seen\":{:.4g}", view.seen_share);
  if (output::has_stacks(view))
    append_stacks(view, style, out);
  else
    append_entries(map, view, style, out);
  return out + "}";
}

}  // namespace espy::serve

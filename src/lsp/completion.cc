
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "lsp/hover.h"
#include "lsp/names.h"

namespace espy::lsp {
namespace {

constexpr size_t kMostProbes = 200;
constexpr std::string_view kStatementWords[] = {"if",     "else",  "while",    "for", "unroll",
                                                "return", "break", "continue", "let"};
constexpr std::string_view kTopWords[] = {"macro", "fn", "config", "import", "let"};

// CompletionItemKind
enum ItemKind : int {
  kFunctionItem = 3,
  kFieldItem = 5,
  kVariableItem = 6,
  kModuleItem = 9,
  kKeywordItem = 14,
  kEventItem = 23
};

class Completer {
 public:
  Completer(const Services& services, ProbeNames& probes, const Document& document, uint32_t offset)
      : services_(services), probes_(probes), document_(document), offset_(offset) {}

  Json complete() {
    const Place place = place_of(document_.text.bytes(), offset_);
    begin_ = place.begin;
    switch (place.kind) {
      case Place::Kind::kNothing: break;
      case Place::Kind::kAttachPoint: add_probes(); break;
      case Place::Kind::kMember: add_members(); break;
      case Place::Kind::kMap: add_maps(); break;
      case Place::Kind::kVariable: add_variables(); break;
      case Place::Kind::kName: add_names(); break;
    }
    return {{"isIncomplete", is_incomplete_}, {"items", std::move(items_)}};
  }

 private:
  std::string typed() const { return document_.text.bytes().substr(begin_, offset_ - begin_); }

  void add(const std::string& label, int kind, const std::string& detail, const std::string& doc = {}) {
    if (!seen_.insert(label).second) return;
    Json item = {{"label", label},
                 {"kind", kind},
                 {"filterText", label},
                 {"textEdit", {{"range", range_of(document_.text, begin_, offset_)}, {"newText", label}}}};
    if (!detail.empty()) item["detail"] = detail;
    if (!doc.empty()) item["documentation"] = {{"kind", "markdown"}, {"value", doc}};
    items_.push_back(std::move(item));
  }

  void add_probes() {
    const std::string prefix = typed();
    if (prefix.find(':') == prefix.npos) {
      for (const spec::Provider* provider : services_.registry.providers())
        if (provider->name.starts_with(prefix))
          add(std::string(provider->name) + (provider->form.find(':') == provider->form.npos ? "" : ":"), kModuleItem,
              std::string(provider->form), describe(*provider));
      if (std::string_view(prefix).find_first_not_of("abcdefghijklmnopqrstuvwxyz") == prefix.npos)
        for (const std::string_view word : kTopWords)
          if (word.starts_with(prefix)) add(std::string(word), kKeywordItem, "");
      return;
    }
    const std::vector<std::string> names = probes_.with_prefix(prefix, kMostProbes + 1);
    is_incomplete_ = names.size() > kMostProbes;
    for (const std::string& name : names)
      if (items_.size() < kMostProbes) add(name, kEventItem, "");
  }

  // The document with a name where the cursor is, so that `args.` is an expression.
  std::unique_ptr<Analysis> analysis_with_name() const {
    std::string text = document_.text.bytes();
    if (begin_ == offset_) text.insert(offset_, "x");
    auto analysis = services_.analyze(document_.path, text);
    return analysis ? std::move(*analysis) : nullptr;
  }

  void add_members() {
    const auto analysis = analysis_with_name();
    if (!analysis) return;
    for (const syntax::ExprId id : analysis->ast().exprs.ids()) {
      const auto* access = analysis->ast().get<syntax::Access>(id);
      if (!access || access->name_span.source != analysis->script || access->name_span.begin != begin_) continue;
      add_members_of(*analysis, access->base);
    }
  }

  void add_members_of(const Analysis& analysis, syntax::ExprId base) {
    const auto* name = analysis.ast().get<syntax::Name>(base);
    for (const check::Unit& unit : analysis.checked.units) {
      const bool is_here = unit.action && unit.action->span.begin <= begin_ && begin_ <= unit.action->span.end;
      if (!name || !is_here) continue;
      const bool are_locals = name->name == "locals";
      if (!are_locals && name->name != "args") continue;
      for (const spec::ContextField& field : are_locals ? unit.context.locals : unit.context.args)
        add(field.name, kFieldItem, types::to_string(analysis.types, field.type));
    }
    if (const types::TypeId type = type_of(analysis, base); type.valid()) add_members_of_type(analysis, type);
  }

  void add_members_of_type(const Analysis& analysis, types::TypeId type) {
    while (analysis.types[type].kind == types::Kind::kPointer) type = analysis.types[type].element;
    if (!analysis.types[type].complete) analysis.kernel.complete(analysis.types, type);
    const std::vector<types::Member> members = analysis.types[type].members;
    for (const types::Member& member : members) {
      if (member.name.empty() && member.type.valid())
        add_members_of_type(analysis, member.type);
      else
        add(member.name, kFieldItem, types::to_string(analysis.types, member.type));
    }
  }

  // Also what the text being typed keeps from being checked.
  void add_words(char sigil, int kind) {
    const std::string& text = document_.text.bytes();
    for (size_t at = text.find(sigil); at != text.npos; at = text.find(sigil, at + 1)) {
      const auto word = word_at(text, static_cast<uint32_t>(at + 1));
      if (word && word->begin == at && word->begin != begin_ && word->text.size() > 1) add(word->text, kind, "");
    }
  }

  void add_maps() {
    if (document_.analysis)
      for (const check::CheckedMap& map : document_.analysis->checked.maps)
        add(map.name, kVariableItem, declaration_of(map, document_.analysis->types));
    add_words('@', kVariableItem);
  }

  void add_variables() {
    if (document_.analysis)
      if (const check::Unit* unit = find_unit(*document_.analysis, offset_))
        for (const check::Variable& variable : unit->variables)
          if (variable.name.starts_with('$') && variable.type.valid())
            add(variable.name, kVariableItem, types::to_string(document_.analysis->types, variable.type));
    add_words('$', kVariableItem);
  }

  void add_names() {
    for (const spec::BuiltinFamily& family : services_.registry.families())
      for (const spec::Builtin& row : family)
        add(std::string(spec::name_of(row)), row.kind == spec::BuiltinKind::kVariable ? kVariableItem : kFunctionItem,
            std::string(row.sig), describe(row));
    for (const std::string_view word : kStatementWords) add(std::string(word), kKeywordItem, "");
    if (!document_.analysis) return;
    const Analysis& analysis = *document_.analysis;
    for (const syntax::Function& function : analysis.ast().functions)
      add(function.name, kFunctionItem, head_of(analysis, function.span));
    for (const syntax::Macro& macro : analysis.ast().macros)
      add(macro.name, kFunctionItem, head_of(analysis, macro.span));
  }

  const Services& services_;
  ProbeNames& probes_;
  const Document& document_;
  uint32_t offset_;
  uint32_t begin_ = 0;  // of what is being typed
  Json items_ = Json::array();
  std::set<std::string> seen_;
  bool is_incomplete_ = false;
};

}  // namespace

Json complete(const Services& services, ProbeNames& probes, const Document& document, uint32_t offset) {
  return Completer(services, probes, document, offset).complete();
}

}  // namespace espy::lsp

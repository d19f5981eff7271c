// Formats a script.
//
// The tree has neither comments nor blank lines, so they come from the source: a separate scan collects the comments
// and the text hidden by the preprocessor, in order. The printer, which traverses the tree in source order, emits those
// that precede the next node. A comment within a statement moves after it. C definitions are kept as they are.
#include "syntax/format_script.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "syntax/lexer.h"
#include "syntax/parser.h"
#include "syntax/preprocess.h"
#include "syntax/print.h"

namespace espy::syntax {

namespace {

// A comment, or lines hidden by the preprocessor.
struct Trivia {
  uint32_t begin = 0;
  uint32_t end = 0;
  bool is_hidden = false;
};

struct Scan {
  std::vector<Trivia> trivia;
  std::vector<HiddenRange> config_blocks;  // from `config` through its `}`
};

// An item of the top level, and its printer.
struct Item {
  enum class Kind : uint8_t { kC, kConfig, kImport, kMap, kMacro, kFunction, kAction } kind;
  uint32_t begin = 0;
  uint32_t end = 0;
  size_t index = 0;
};

// Text that does not consist of tokens: attach points and C.
std::vector<HiddenRange> foreign_text(const Ast& ast) {
  std::vector<HiddenRange> out;
  const auto add = [&](Span span) { out.push_back({span.begin, span.end}); };
  for (const CDefinition& d : ast.c_definitions) std::visit([&](const auto& c) { add(c.span); }, d);
  for (const Action& action : ast.actions) {
    for (const AttachPoint& point : action.attach_points) add(point.span);
  }
  std::sort(out.begin(), out.end(), [](const HiddenRange& a, const HiddenRange& b) { return a.begin < b.begin; });
  return out;
}

class Scanner {
 public:
  Scanner(std::string_view text, const std::vector<HiddenRange>& hidden, std::vector<HiddenRange> foreign)
      : text_(text), hidden_(hidden), foreign_(std::move(foreign)), lexer_(text) {}

  Scan run() {
    if (text_.starts_with("#!")) at_ = line_end(0);
    while (at_ < text_.size()) step();
    return std::move(out_);
  }

 private:
  uint32_t line_end(uint32_t from) const {
    return static_cast<uint32_t>(std::min(text_.find('\n', from), text_.size()));
  }

  void step() {
    const std::string_view rest = text_.substr(at_);
    while (next_foreign_ < foreign_.size() && foreign_[next_foreign_].end <= at_) ++next_foreign_;
    while (next_hidden_ < hidden_.size() && hidden_[next_hidden_].begin < at_) ++next_hidden_;
    if (is_space(rest[0])) {
      ++at_;
    } else if (next_foreign_ < foreign_.size() && foreign_[next_foreign_].begin <= at_) {
      at_ = foreign_[next_foreign_].end;
    } else if (next_hidden_ < hidden_.size() && hidden_[next_hidden_].begin == at_) {
      take(hidden_[next_hidden_].end, true);
    } else if (rest.starts_with("//")) {
      take(line_end(at_), false);
    } else if (rest.starts_with("/*")) {
      const size_t close = text_.find("*/", at_ + 2);
      take(static_cast<uint32_t>(close == std::string_view::npos ? text_.size() : close + 2), false);
    } else {
      token();
    }
  }

  void take(uint32_t end, bool is_hidden) {
    out_.trivia.push_back({at_, end, is_hidden});
    at_ = end;
  }

  // Config blocks are the only items without a span in the tree. `fn f() : config { ... }` is not one.
  void token() {
    lexer_.seek(at_);
    const Token token = lexer_.next();
    const std::string_view word = text_.substr(token.begin, token.end - token.begin);
    if (depth_ == 0 && last_ != TokenKind::kColon && word == "config") {
      Lexer ahead = lexer_;
      const TokenKind next = ahead.next().kind;
      if (next == TokenKind::kAssign || next == TokenKind::kLeftBrace) config_begin_ = token.begin;
    }
    if (token.kind == TokenKind::kLeftBrace) ++depth_;
    if (token.kind == TokenKind::kRightBrace && depth_ > 0 && --depth_ == 0 && config_begin_) {
      out_.config_blocks.push_back({*config_begin_, token.end});
      config_begin_.reset();
    }
    last_ = token.kind;
    at_ = std::max(token.end, at_ + 1);
  }

  std::string_view text_;
  const std::vector<HiddenRange>& hidden_;
  std::vector<HiddenRange> foreign_;
  Lexer lexer_;
  Scan out_;
  uint32_t at_ = 0;
  size_t next_foreign_ = 0;
  size_t next_hidden_ = 0;
  int depth_ = 0;
  TokenKind last_ = TokenKind::kEnd;  // the kind of the token before `at_`; kEnd at the beginning
  std::optional<uint32_t> config_begin_;
};

class Formatter {
 public:
  Formatter(const Ast& ast, const source::Sources& sources, source::SourceId source)
      : ast_(ast), text_(sources[source].text), printer_(ast, &sources) {
    const Preprocessed preprocessed = preprocess(text_, macro_bodies({}));
    scan_ = Scanner(text_, preprocessed.hidden, foreign_text(ast)).run();
  }

  // Of a tree that was built.
  explicit Formatter(const Ast& ast) : ast_(ast), is_built_(true), printer_(ast) {}

  std::string run() {
    out_ = ast_.shebang;
    last_ = static_cast<uint32_t>(out_.size());
    const Item* before = nullptr;
    const std::vector<Item> all = items();
    for (const Item& item : all) {
      const bool apart = before != nullptr && (before->kind != item.kind || item.kind == Item::Kind::kMacro ||
                                               item.kind == Item::Kind::kFunction || item.kind == Item::Kind::kAction);
      lead(item.begin, apart, before == nullptr && out_.empty());
      print(item);
      last_ = std::max(last_, item.end);
      before = &item;
    }
    comments(static_cast<uint32_t>(text_.size()), false, out_.empty());
    if (!out_.empty()) out_ += '\n';
    return std::move(out_);
  }

 private:
  // ---- Lines and comments

  std::string_view slice(uint32_t begin, uint32_t end) const { return text_.substr(begin, end - begin); }

  bool blank_line_before(uint32_t offset) const {
    if (is_built_ || offset < last_) return false;
    const std::string_view gap = slice(last_, offset);
    return std::count(gap.begin(), gap.end(), '\n') > 1;
  }

  void start_line(bool blank_line) {
    if (!out_.empty()) out_ += blank_line ? "\n\n" : "\n";
    out_.append(2 * indent_, ' ');
    line_is_full_ = false;
  }

  // Emits the comments before `limit`: at the end of the current line if they were there, else on lines of their own.
  // Returns whether an empty line, as requested by `blank_line`, is still due; with `first`, none may follow.
  bool comments(uint32_t limit, bool blank_line, bool first) {
    for (; next_ < scan_.trivia.size() && scan_.trivia[next_].begin < limit; ++next_) {
      const Trivia& t = scan_.trivia[next_];
      const std::string_view gap = t.begin > last_ ? slice(last_, t.begin) : std::string_view();
      const bool behind = gap.find('\n') == std::string_view::npos;
      if (behind && !out_.empty() && !line_is_full_ && !t.is_hidden) {
        out_ += "  ";
      } else if (t.is_hidden) {
        const size_t indent = std::exchange(indent_, 0);
        start_line(!first && (blank_line || blank_line_before(t.begin)));
        indent_ = indent;
        blank_line = false;
      } else {
        start_line(!first && (blank_line || blank_line_before(t.begin)));
        blank_line = false;
      }
      first = false;
      std::string_view text = slice(t.begin, t.end);
      while (is_space(text.back())) text.remove_suffix(1);
      out_ += text;
      line_is_full_ = t.is_hidden || text.starts_with("//");
      last_ = std::max(last_, t.end);
    }
    return blank_line;
  }

  // Starts the line of the item that begins at `begin`.
  void lead(uint32_t begin, bool blank_line, bool first) {
    const size_t before = next_;
    blank_line = comments(begin, blank_line, first);
    if (next_ != before) first = false;
    start_line(!first && (blank_line || blank_line_before(begin)));
  }

  // ---- The top level

  // As they were added; nothing else is built.
  std::vector<Item> built_items() const {
    std::vector<Item> out;
    if (!ast_.config.empty()) out.push_back({Item::Kind::kConfig});
    for (size_t i = 0; i < ast_.actions.size(); ++i) out.push_back({Item::Kind::kAction, 0, 0, i});
    return out;
  }

  std::vector<Item> items() const {
    if (is_built_) return built_items();
    std::vector<Item> out;
    const auto add = [&](Item::Kind kind, const auto& list) {
      for (size_t i = 0; i < list.size(); ++i) out.push_back({kind, list[i].span.begin, list[i].span.end, i});
    };
    for (const CDefinition& d : ast_.c_definitions) {
      std::visit([&](const auto& c) { out.push_back({Item::Kind::kC, c.span.begin, c.span.end}); }, d);
    }
    for (size_t i = 0; i < scan_.config_blocks.size(); ++i) {
      out.push_back({Item::Kind::kConfig, scan_.config_blocks[i].begin, scan_.config_blocks[i].end, i});
    }
    add(Item::Kind::kImport, ast_.imports);
    add(Item::Kind::kMap, ast_.map_declarations);
    add(Item::Kind::kMacro, ast_.macros);
    add(Item::Kind::kFunction, ast_.functions);
    add(Item::Kind::kAction, ast_.actions);
    std::sort(out.begin(), out.end(),
              [](const Item& a, const Item& b) { return a.begin != b.begin ? a.begin < b.begin : a.end > b.end; });
    // One C declaration may define several things; its text is printed once.
    uint32_t end = 0;
    std::erase_if(out, [&](const Item& item) {
      const bool inside = item.kind == Item::Kind::kC && item.end <= end;
      end = std::max(end, item.end);
      return inside;
    });
    return out;
  }

  void print(const Item& item) {
    switch (item.kind) {
      case Item::Kind::kC: return verbatim(item);
      case Item::Kind::kConfig: return config(item);
      case Item::Kind::kImport: return import(ast_.imports[item.index]);
      case Item::Kind::kMap: return map(ast_.map_declarations[item.index]);
      case Item::Kind::kMacro: return macro(ast_.macros[item.index]);
      case Item::Kind::kFunction: return function(ast_.functions[item.index]);
      case Item::Kind::kAction: return action(ast_.actions[item.index]);
    }
  }

  void verbatim(const Item& item) {
    std::string_view text = slice(item.begin, item.end);
    while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    out_ += text;
    line_is_full_ = text.starts_with('#');
  }

  void config(const Item& item) {
    out_ += "config = {";
    if (!is_built_) last_ = item.begin + static_cast<uint32_t>(slice(item.begin, item.end).find('{'));
    ++indent_;
    bool first = true;
    for (const ConfigEntry& entry : ast_.config) {
      if (!is_built_ && (entry.span.begin < item.begin || entry.span.begin >= item.end)) continue;
      lead(entry.span.begin, false, first);
      out_ += entry.name + " = " + printer_.expr(entry.value) + ";";
      last_ = entry.span.end;
      first = false;
    }
    close(item.end, first);
  }

  void import(const Import& n) {
    const std::string_view text = slice(n.span.begin, n.span.end);
    const size_t quote = text.find('"');
    out_ += "import ";
    out_ += text.substr(quote, text.rfind('"') + 1 - quote);
    out_ += ';';
  }

  void map(const MapDeclaration& n) {
    out_ += "let " + n.name + " = " + n.kind + "(" + printer_.expr(n.max_entries) + ");";
  }

  void macro(const Macro& n) {
    out_ += "macro " + n.name + "(";
    for (const auto& parameter : n.parameters) {
      if (&parameter != n.parameters.data()) out_ += ", ";
      out_ += parameter.name;
      if (parameter.default_value) out_ += " = " + printer_.expr(parameter.default_value);
    }
    out_ += ") ";
    braces(n.body);
  }

  void function(const Function& n) {
    out_ += "fn " + n.name + "(";
    for (const auto& parameter : n.parameters) {
      if (&parameter != n.parameters.data()) out_ += ", ";
      out_ += parameter.name + " : " + printer_.type(parameter.type);
    }
    out_ += ") : " + printer_.type(n.result) + " ";
    braces(n.body);
  }

  void action(const Action& n) {
    if (!n.name.empty()) out_ += n.name + "=";
    for (const AttachPoint& point : n.attach_points) {
      if (&point != n.attach_points.data()) {
        out_ += ',';
        lead(point.span.begin, false, true);
      }
      out_ += is_built_ ? format(point) : slice(point.span.begin, point.span.end);
      last_ = point.span.end;
    }
    if (n.predicate) {
      const std::string predicate = printer_.expr(n.predicate);
      // `/*` would open a comment.
      out_ += (predicate.starts_with('*') ? " / " : " /") + predicate + "/";
    }
    out_ += ' ';
    braces(n.body);
  }

  // ---- Blocks and statements

  // "{ ... }"
  void braces(ExprId id) {
    const auto* block = ast_.get<Block>(id);
    out_ += '{';
    if (block == nullptr) {
      out_ += '}';
      return;
    }
    const Span span = ast_[id].span;
    last_ = std::max(last_, span.begin + 1);
    ++indent_;
    bool first = true;
    for (const StmtId statement : block->statements) {
      lead(ast_[statement].span.begin, false, first);
      print(statement);
      first = false;
    }
    if (block->value) {
      lead(ast_[block->value].span.begin, false, first);
      value(block->value);
      first = false;
    }
    close(span.end, first);
  }

  // The `}` that ends at `end`, and the comments before it.
  void close(uint32_t end, bool empty) {
    const size_t before = next_;
    comments(end - 1, false, empty);
    --indent_;
    if (!empty || next_ != before) start_line(false);
    out_ += '}';
    last_ = std::max(last_, end);
  }

  void print(StmtId id) {
    const Stmt& s = ast_[id];
    if (const auto* n = std::get_if<ExprStmt>(&s.node)) {
      value(n->value);
      if (ast_.get<If>(n->value) == nullptr && ast_.get<Block>(n->value) == nullptr) out_ += ';';
    } else if (const auto* loop = std::get_if<While>(&s.node)) {
      with_body(*loop);
    } else if (const auto* unroll = std::get_if<Unroll>(&s.node)) {
      with_body(*unroll);
    } else if (const auto* over_map = std::get_if<ForMap>(&s.node)) {
      with_body(*over_map);
    } else if (const auto* over_range = std::get_if<ForRange>(&s.node)) {
      with_body(*over_range);
    } else {
      out_ += printer_.stmt(id) + ";";
    }
    last_ = std::max(last_, s.span.end);
  }

  template <class Loop>
  void with_body(const Loop& loop) {
    out_ += printer_.header(loop) + " ";
    braces(loop.body);
  }

  // Prints an expression on a line of its own.
  void value(ExprId id) {
    if (const auto* n = ast_.get<If>(id)) {
      branches(*n);
    } else if (ast_.get<Block>(id) != nullptr) {
      braces(id);
    } else {
      out_ += printer_.expr(id);
    }
    last_ = std::max(last_, ast_[id].span.end);
  }

  void branches(const If& first) {
    for (const If* n = &first;;) {
      out_ += printer_.header(*n) + " ";
      braces(n->then_branch);
      if (!n->else_branch) return;
      out_ += " else ";
      const If* next = ast_.get<If>(n->else_branch);
      if (next == nullptr) return braces(n->else_branch);
      n = next;
    }
  }

  const Ast& ast_;
  const bool is_built_ = false;  // it has no text
  std::string_view text_;
  Printer printer_;
  Scan scan_;
  std::string out_;
  size_t indent_ = 0;
  size_t next_ = 0;            // the next of `scan_.trivia` to print
  uint32_t last_ = 0;          // source offset of the end of the last printed item
  bool line_is_full_ = false;  // nothing may follow on this line
};

}  // namespace

std::string format(const Ast& ast, const source::Sources& sources, source::SourceId source) {
  return Formatter(ast, sources, source).run();
}

namespace {

// Returns the tree with names that are printable.
Ast with_shown_names(const Ast& ast) {
  Ast out = ast;
  for (Expr& each : out.exprs) {
    if (auto* access = std::get_if<Access>(&each.node)) access->name = printable_line(access->name);
    if (auto* variable = std::get_if<Variable>(&each.node)) variable->name = printable_line(variable->name);
    if (auto* record = std::get_if<Record>(&each.node))
      for (std::string& name : record->names) name = printable_line(name);
  }
  return out;
}

bool needs_quotes(std::string_view part) {
  constexpr std::string_view kPlain = "_./-+@*?[]!=~$";
  const auto is_plain = [&](char c) { return is_word(c) || kPlain.find(c) != kPlain.npos; };
  return part.empty() || !std::ranges::all_of(part, is_plain);
}

}  // namespace

std::string format(const Ast& ast) {
  const Ast shown = with_shown_names(ast);
  return Formatter(shown).run();
}

std::string format(const AttachPoint& point) {
  std::string out = point.provider.text;
  for (const AttachPart& part : point.parts)
    out += ":" + (needs_quotes(part.text) ? '"' + escape(part.text) + '"' : part.text);
  return out;
}

std::string format(const Ast& ast, ExprId expr) { return Printer(ast).expr(expr); }

}  // namespace espy::syntax

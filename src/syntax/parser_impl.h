// The recursive-descent parser behind syntax/parser.h. Each rule of the grammar is a function that leaves the stream at
// the first token after the rule. A rule that fails reports an error, returns an invalid id or an `ErrorExpr` and
// leaves the stream panicking; the rules for statements and actions recover.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "syntax/ast.h"
#include "syntax/token_stream.h"

namespace espy::syntax {

class Parser {
 public:
  Parser(const source::Sources& sources, source::SourceId source, const std::vector<HiddenRange>* hidden, Ast& ast,
         source::Diagnostics& diagnostics)
      : stream_(sources, source, hidden, diagnostics), ast_(ast) {}

  void script();
  // Parses the whole source as one expression.
  ExprId lone_expression();
  TypeNameId lone_type();

 private:
  // Lookahead at the type that a `(` or an argument may begin with. Builds no nodes.
  struct TypeAhead {
    bool known = false;   // spelled like a type: a keyword, a built-in name, a `_t`
    bool suffix = false;  // `*` or `[...]` follow the name
    Token after;          // the token that follows the type
    Lexer lexer;          // positioned after `after`
  };
  class Nesting;

  // parse_top.cc
  void item();
  void config();
  void config_entry();
  void import();
  void map_declaration();
  template <class T>
  bool parameters(std::vector<T>& out, std::optional<T> (Parser::*one)());
  void macro();
  std::optional<Macro::Parameter> macro_parameter();
  void function();
  std::optional<Function::Parameter> function_parameter();
  void action();
  ExprId predicate();
  void end_item();
  void recover_item();

  // parse_attach.cc
  std::string action_name();
  bool attach_points(Action& action);
  bool attach_point(uint32_t& offset, AttachPoint& out);
  AttachPart attach_part(uint32_t& offset, bool is_provider);
  bool part_ends(uint32_t offset, uint32_t part_begin, bool is_provider) const;
  void quoted_piece(uint32_t& offset, AttachPart& part);
  void expected_body();

  // parse_statement.cc
  ExprId block();
  ExprId statement_block();
  void demote(ExprId id);
  bool yields(ExprId id) const;
  void block_item(Block& out);
  bool keyword_statement(Block& out);
  void expression_statement(Block& out);
  void misspelt_keyword(ExprId read_as);
  StmtNode assignment(ExprId target);
  StmtNode let();
  StmtNode while_loop();
  StmtNode for_loop();
  ExprId if_expression();
  ExprId else_branch();
  ExprId condition();
  void end_statement();
  void recover_statement();
  bool at_next_action() const;
  void unclosed(Token open, std::string_view what);
  void add_statement(Block& out, uint32_t begin, StmtNode node);

  // parse_expression.cc
  ExprId expression();
  ExprId binary(int lowest);
  ExprId unary();
  ExprId postfix();
  ExprId postfix_operator(ExprId base, uint32_t begin);
  ExprId member(ExprId base, uint32_t begin);
  ExprId primary();
  ExprId word();
  ExprId parenthesised();
  ExprId record(uint32_t begin);
  ExprId cast();
  bool at_cast() const;
  bool at_tuple_cast(Lexer lexer) const;
  ExprId integer();
  ExprId string();
  ExprId call();
  std::vector<ExprId> list(TokenKind close, std::string_view what);
  ExprId argument();
  ExprId type_or_expression();
  ExprId sizeof_like(std::string_view name);
  ExprId offsetof_path(uint32_t begin, ExprId operand);
  void check_assignable(ExprId target);
  bool predicate_ends() const;
  ExprId add(uint32_t begin, ExprNode node);
  ExprId error_expr();

  // parse_type.cc
  TypeNameId type_name();
  void type_head(TypeName& type);
  void type_elements(TypeName& type);
  void type_suffixes(TypeName& type);
  std::optional<TypeAhead> look_for_type(Token first, Lexer lexer) const;
  bool spells_type(std::string_view word) const;

  TokenStream stream_;
  Ast& ast_;
  bool in_predicate_ = false;
  uint32_t condition_begin_ = ~uint32_t{0};  // begin of the condition of the last `if` or loop
  uint32_t nesting_ = 0;
  uint32_t links_ = 0;  // see Nesting
};

// Bounds the height of the tree, which every later stage traverses recursively, where an error can still be reported.
// `nesting_` counts recursion of the parser; `links_` counts left-associative chains (a + b + c, a.b.c), which the
// parser builds in a loop.
class Parser::Nesting {
 public:
  static constexpr uint32_t kMaxNesting = 200;
  static constexpr uint32_t kMaxLinks = 2000;
  explicit Nesting(Parser& parser) : parser_(parser) {
    if (++parser_.nesting_ > kMaxNesting) too_deep(parser_);
  }
  ~Nesting() { --parser_.nesting_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
  bool ok() const { return parser_.nesting_ <= kMaxNesting; }
  // Counts one more link of a chain. Returns false, and reports, if it is too long.
  static bool link(Parser& parser) {
    if (++parser.links_ <= kMaxLinks) return true;
    too_deep(parser);
    return false;
  }

 private:
  static void too_deep(Parser& parser) {
    parser.stream_.error("nesting-too-deep", parser.stream_.span(parser.stream_.token()), "this is nested too deeply",
                         "take parts of it into variables or macros");
  }
  Parser& parser_;
};

// Returns true for words that are reserved and cannot name a function.
bool is_keyword(std::string_view word);

}  // namespace espy::syntax

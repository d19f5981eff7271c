// syntax: from text to the tree of a script (ast.h), and from a tree to text.
//
// Parses a script into a tree.
//
// Total: it never throws and does not stop at the first error. Text that does not parse yields a diagnostic and an
// `ErrorExpr`; parsing continues at the next statement or action.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "source/diagnostic.h"
#include "syntax/ast.h"
#include "syntax/lexer.h"
#include "syntax/parse_c.h"
#include "syntax/preprocess.h"

namespace espy::syntax {

constexpr const char* kBtfMacro = "BPFTRACE_HAVE_BTF";  // defined where the kernel has BTF

// Definitions before the first line.
struct Prelude {
  std::vector<CDefinition> definitions;  // macros of included headers
  NameValue constant;                    // constants that no definition needs to give; may be empty
  bool has_btf = true;                   // whether to define kBtfMacro
};

// Returns the macros that `prelude` defines.
MacroBodies macro_bodies(const Prelude& prelude);

Ast parse(const source::Sources& sources, source::SourceId source, source::Diagnostics& diagnostics,
          const Prelude& prelude = {});

// Parses into the tables of `whole`; returns the top level alone.
Ast parse_part(const source::Sources& sources, source::SourceId source, Ast& whole, source::Diagnostics& diagnostics,
               const Prelude& prelude = {});

// Parses all of `source` as one expression, such as the body of a #define, into the tables of `ast`.
ExprId parse_expression(const source::Sources& sources, source::SourceId source, Ast& ast,
                        source::Diagnostics& diagnostics);

// Parses all of `source` as a type.
TypeNameId parse_type(const source::Sources& sources, source::SourceId source, Ast& ast,
                      source::Diagnostics& diagnostics);

// ---- The recursive-descent parser: a class for each part of the grammar, tied together by Parser.
//
// Each rule of the grammar is a function that leaves the stream at the first token after the rule. A rule that fails
// reports an error, returns an invalid id or an `ErrorExpr` and leaves the stream panicking; the rules for statements
// and actions recover.

// What all parts share: the tokens, the tree under construction, and the state of the traversal.
struct ParseState {
  TokenStream stream;
  Ast& ast;
  bool in_predicate = false;
  uint32_t condition_begin = ~uint32_t{0};  // of the condition of the last `if` or loop
  uint32_t nesting = 0;
  uint32_t links = 0;  // see Nesting
};

// Bounds the height of the tree, which every later stage traverses recursively, where an error can still be reported.
// `nesting` counts recursion of the parser; `links` counts left-associative chains (a + b + c, a.b.c), which the parser
// builds in a loop.
class Nesting {
 public:
  static constexpr uint32_t kMaxNesting = 200;
  static constexpr uint32_t kMaxLinks = 2000;
  explicit Nesting(ParseState& state) : state_(state) {
    if (++state_.nesting > kMaxNesting) too_deep(state_);
  }
  ~Nesting() { --state_.nesting; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
  bool ok() const { return state_.nesting <= kMaxNesting; }
  // Counts one more link of a chain. Returns false, and reports, if it is too long.
  static bool link(ParseState& state) {
    if (++state.links <= kMaxLinks) return true;
    too_deep(state);
    return false;
  }

 private:
  static void too_deep(ParseState& state) {
    state.stream.error("nesting-too-deep", state.stream.span(state.stream.token()), "this is nested too deeply",
                       "take parts of it into variables or macros");
  }
  ParseState& state_;
};

class ExpressionParser;
class StatementParser;

// Type names, and lookahead that distinguishes casts from parenthesised expressions.
class TypeParser {
 public:
  // Lookahead at the type that a `(` or an argument may begin with. Builds no nodes.
  struct TypeAhead {
    bool known = false;   // spelled like a type: a keyword, a built-in name, a `_t`
    bool suffix = false;  // `*` or `[...]` follow the name
    Token after;          // the token that follows the type
    Lexer lexer;          // positioned after `after`
  };

  TypeParser(ParseState& state, ExpressionParser& expressions)
      : state_(state), stream_(state.stream), ast_(state.ast), expressions_(expressions) {}

  TypeNameId type_name();
  std::optional<TypeAhead> look_for_type(Token first, Lexer lexer) const;
  // Returns true if the current `(` opens a cast.
  bool at_cast() const;

 private:
  bool at_tuple_cast(Lexer lexer) const;
  void type_head(TypeName& type);
  void type_elements(TypeName& type);
  void type_suffixes(TypeName& type);
  bool spells_type(std::string_view word) const;

  ParseState& state_;
  TokenStream& stream_;
  Ast& ast_;
  ExpressionParser& expressions_;
};

class ExpressionParser {
 public:
  ExpressionParser(ParseState& state, TypeParser& types, StatementParser& statements)
      : state_(state), stream_(state.stream), ast_(state.ast), types_(types), statements_(statements) {}

  ExprId expression();
  ExprId unary();   // a unary or postfix expression or a primary one
  ExprId string();  // requires a string token
  ExprId type_or_expression();
  // Reports an error if `target` cannot be assigned to.
  void check_assignable(ExprId target);
  // Adds a node whose text begins at `begin` and ends with the last consumed token.
  ExprId add(uint32_t begin, ExprNode node);
  ExprId error_expr();

 private:
  ExprId binary(int lowest);
  ExprId postfix();
  ExprId postfix_operator(ExprId base, uint32_t begin);
  ExprId member(ExprId base, uint32_t begin);
  ExprId primary();
  ExprId word();
  ExprId parenthesised();
  ExprId record(uint32_t begin);
  ExprId cast();
  ExprId integer();
  ExprId call();
  std::vector<ExprId> list(TokenKind close, std::string_view what);
  ExprId argument();
  ExprId sizeof_like(std::string_view name);
  ExprId offsetof_path(uint32_t begin, ExprId operand);
  bool predicate_ends() const;

  ParseState& state_;
  TokenStream& stream_;
  Ast& ast_;
  TypeParser& types_;
  StatementParser& statements_;
};

class StatementParser {
 public:
  StatementParser(ParseState& state, TypeParser& types, ExpressionParser& expressions)
      : state_(state), stream_(state.stream), ast_(state.ast), types_(types), expressions_(expressions) {}

  ExprId block();
  ExprId statement_block();  // a block that is used as a statement
  ExprId if_expression();
  ExprId condition();
  // Returns true at what looks like the next action: an attach point at the beginning of a line.
  bool at_next_action() const;
  // Reports that `what`, which begins at `open`, is not closed.
  void unclosed(Token open, std::string_view what);

 private:
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
  ExprId else_branch();
  void end_statement();
  void recover_statement();
  void add_statement(Block& out, uint32_t begin, StmtNode node);

  ParseState& state_;
  TokenStream& stream_;
  Ast& ast_;
  TypeParser& types_;
  ExpressionParser& expressions_;
};

// Attach points, which are read from the text, not from tokens.
class AttachPointParser {
 public:
  explicit AttachPointParser(TokenStream& stream) : stream_(stream) {}

  // Parses `name=` before the first attach point; "" if there is none.
  std::string action_name();
  // Parses the list of attach points, up to the predicate or the body. Returns false after an error.
  bool attach_points(Action& action);
  // Reports that neither a predicate nor a body follows.
  void expected_body();

 private:
  bool attach_point(uint32_t& offset, AttachPoint& out);
  AttachPart attach_part(uint32_t& offset, bool is_provider);
  bool part_ends(uint32_t offset, uint32_t part_begin, bool is_provider) const;
  void quoted_piece(uint32_t& offset, AttachPart& part);

  TokenStream& stream_;
};

// A whole script, or one expression or type.
class Parser {
 public:
  Parser(const source::Sources& sources, source::SourceId source, const std::vector<HiddenRange>* hidden, Ast& ast,
         source::Diagnostics& diagnostics, const NameValue& constant = {})
      : state_{{sources, source, hidden, diagnostics}, ast}, constant_(constant) {}

  void script();
  // Parses the whole source as one expression.
  ExprId lone_expression();
  TypeNameId lone_type();

 private:
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

  ParseState state_;
  NameValue constant_;  // Prelude::constant
  TokenStream& stream_ = state_.stream;
  Ast& ast_ = state_.ast;
  TypeParser types_{state_, expressions_};
  ExpressionParser expressions_{state_, types_, statements_};
  StatementParser statements_{state_, types_, expressions_};
  AttachPointParser attach_points_{stream_};
};

// Returns true for words that are reserved and cannot name a function.
bool is_keyword(std::string_view word);

}  // namespace espy::syntax

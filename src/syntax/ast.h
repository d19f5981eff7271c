// The syntax tree of a script, and of its C definitions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/id.h"
#include "source/source.h"

namespace espy::syntax {

// ---- The tree of a script's C definitions: includes, macros, structs, unions, enums, typedefs.

struct CStruct;
struct CEnum;

// A C type as declared: a base and the declarator's steps, applied to the base in order.
// `char *names[4]` is base char, then pointer, then array 4.
struct CType {
  enum class Tag : uint8_t { kNone, kStruct, kUnion, kEnum };
  struct Step {
    enum class Kind : uint8_t { kPointer, kArray, kFunction } kind;
    std::optional<uint64_t> count;  // kArray; nullopt for `[]`
    std::vector<CType> parameters;  // kFunction
  };
  Tag tag = Tag::kNone;
  std::string name;                              // "unsigned long", "u32", or the tag; words separated by one space
  std::shared_ptr<const CStruct> inline_struct;  // a struct or union defined in place
  std::shared_ptr<const CEnum> inline_enum;
  std::vector<Step> steps;
};

struct CAttributes {
  bool is_packed = false;
  uint32_t align_bytes = 0;  // __attribute__((aligned(n))); 0 if not given
};

struct CMember {
  source::Span span;
  std::string name;  // empty: anonymous
  CType type;
  std::optional<uint32_t> bit_size;
  CAttributes attributes;
};

struct CStruct {
  source::Span span;
  std::string name;
  bool is_union = false;
  CAttributes attributes;
  std::vector<CMember> members;
  bool has_body = true;
};

struct CEnum {
  source::Span span;
  std::string name;
  std::vector<std::pair<std::string, int64_t>> enumerators;
};

struct CTypedef {
  source::Span span;
  std::string name;
  CType type;
  CAttributes attributes;
};

struct CInclude {
  source::Span span;
  std::string path;
  bool is_system = false;  // <...>
};

struct CDefine {
  source::Span span;
  std::string name;
  bool is_function_like = false;
  std::vector<std::string> parameters;
  std::string body;  // the replacement, as typed
};

using CDefinition = std::variant<CStruct, CEnum, CTypedef, CInclude, CDefine>;

// ---- The syntax tree of a script.
//
// An `Ast` is immutable after parsing; later stages keep their results in side tables keyed by `ExprId` and `StmtId`.
// The tree suffices to print the script again (syntax/format_script.h). It is independent of the functions, probes and
// types that exist.

using source::Span;
using ExprId = Id<struct ExprTag>;
using StmtId = Id<struct StmtTag>;
using TypeNameId = Id<struct TypeNameTag>;

// ---- Types as written -------------------------------------------------------------------------------------------

// `struct foo *[4]`, `uint8`, `string[64]`, `(int8, string)`, `typeof($x)`.
struct TypeName {
  enum class Tag : uint8_t { kNone, kStruct, kUnion, kEnum };
  struct Suffix {
    bool is_pointer = false;  // else an array, whose length is `count`
    ExprId count;             // invalid: `[]`
  };
  Span span;
  Tag tag = Tag::kNone;
  std::string name;                        // "uint8", "foo"; empty for tuples, records and typeof
  ExprId typeof_expr;                      // typeof(expr)
  TypeNameId typeof_type;                  // typeof(type)
  std::vector<TypeNameId> elements;        // tuple or record elements
  std::vector<std::string> element_names;  // record: as many as `elements`
  std::vector<Suffix> suffixes;            // left to right as typed
};

// ---- Expressions ------------------------------------------------------------------------------------------------

enum class UnaryOp : uint8_t {
  kNot,
  kBitNot,
  kNegate,
  kDereference,
  kAddressOf,
  kPreIncrement,
  kPreDecrement,
  kPostIncrement,
  kPostDecrement
};

enum class BinaryOp : uint8_t {
  kLogicalOr,
  kLogicalAnd,
  kBitOr,
  kBitXor,
  kBitAnd,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kShiftLeft,
  kShiftRight,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kModulo,
  kMatch,  // text ~ "pattern*"
};

struct IntegerLiteral {
  uint64_t value = 0;  // of a duration: nanoseconds
  bool is_duration = false;
};
struct BoolLiteral {
  bool value = false;
};
struct StringLiteral {
  std::string value;  // escapes resolved; may hold NUL
};
struct Name {  // a builtin, an enumerator, a #define, a macro's parameter
  std::string name;
};
struct Variable {
  std::string name;  // with its `$`
};
struct Map {
  std::string name;  // with its `@`; "@" alone is the anonymous map
};
struct Positional {  // $1, $2, ...
  uint32_t index = 0;
};
struct PositionalCount {};  // $#
struct Index {              // base[a, b]: a map's element, an array's, a string's byte
  ExprId base;
  std::vector<ExprId> indices;
};
struct Call {
  std::string name;
  Span name_span;
  std::vector<ExprId> arguments;  // a type as argument is a TypeExpr
};
struct TypeExpr {  // a type instead of an expression: sizeof(struct foo), is_str(typeof($x))
  TypeNameId type;
};
struct Sizeof {
  ExprId operand;  // an expression or a TypeExpr
};
struct Offsetof {
  ExprId operand;  // an expression or a TypeExpr
  std::vector<std::string> path;
  Span path_span;
};
struct Typeinfo {
  ExprId operand;
};
struct Comptime {
  ExprId operand;
};
struct Unary {
  UnaryOp op;
  ExprId operand;
};
struct Binary {
  BinaryOp op;
  ExprId left;
  ExprId right;
  Span op_span;
};
struct Ternary {
  ExprId condition;
  ExprId then_value;  // invalid for `a ?: b`
  ExprId else_value;
};
struct Access {  // base.name, base->name
  ExprId base;
  std::string name;
  Span name_span;
  bool arrow = false;
};
struct TupleAccess {  // base.0
  ExprId base;
  uint32_t index = 0;
};
struct Cast {
  TypeNameId type;
  ExprId operand;
};
struct Tuple {
  std::vector<ExprId> elements;
};
struct Record {  // (a = 1, b = 2)
  std::vector<std::string> names;
  std::vector<ExprId> values;
};
// { statements; value } All bodies are Blocks. `value` is invalid if the block ends with a statement.
struct Block {
  std::vector<StmtId> statements;
  ExprId value;
};
// A statement or a value, by context. `else_branch` is a Block, another If, or invalid.
struct If {
  ExprId condition;
  ExprId then_branch;
  ExprId else_branch;
  bool is_comptime = false;
};
struct ErrorExpr {};  // text that did not parse; already reported

using ExprNode = std::variant<ErrorExpr, IntegerLiteral, BoolLiteral, StringLiteral, Name, Variable, Map, Positional,
                              PositionalCount, Index, Call, TypeExpr, Sizeof, Offsetof, Typeinfo, Comptime, Unary,
                              Binary, Ternary, Access, TupleAccess, Cast, Tuple, Record, Block, If>;

struct Expr {
  Span span;
  ExprNode node;
};

// ---- Statements -------------------------------------------------------------------------------------------------

struct ExprStmt {
  ExprId value;
};
struct Assign {  // target = value, target += value; target is a Variable, a Map, an Index or an Access
  ExprId target;
  std::optional<BinaryOp> op;
  ExprId value;
};
struct Let {  // let $x : type = value;
  std::string name;
  Span name_span;
  TypeNameId type;  // invalid if not given
  ExprId value;     // invalid if not given
};
struct Discard {  // _ = value;
  ExprId value;
};
struct While {
  ExprId condition;
  ExprId body;
};
struct Unroll {
  ExprId count;
  ExprId body;
};
struct ForMap {  // for ($kv : @map) body, or over the values of a recent(): for ($v : @map[key]) body
  std::string variable;
  Span variable_span;
  ExprId map;
  ExprId body;
};
struct ForRange {  // for ($i : begin..end) body
  std::string variable;
  Span variable_span;
  ExprId begin;
  ExprId end;
  ExprId body;
};
struct Break {};
struct Continue {};
struct Return {
  ExprId value;  // invalid if none
};

using StmtNode = std::variant<ExprStmt, Assign, Let, Discard, While, Unroll, ForMap, ForRange, Break, Continue, Return>;

struct Stmt {
  Span span;
  StmtNode node;
};

// ---- The top level ----------------------------------------------------------------------------------------------

// One part of an attach point between colons. `$1` is kept; the checker substitutes the parameter.
struct AttachPart {
  std::string text;
  Span span;
  bool quoted = false;
};
struct AttachPoint {  // kprobe:module:function+4
  Span span;
  AttachPart provider;
  std::vector<AttachPart> parts;  // after the provider; empty for `begin`
};
struct Action {
  Span span;
  std::string name;  // `name=probe`; usually empty
  std::vector<AttachPoint> attach_points;
  ExprId predicate;  // invalid if none
  ExprId body;       // a Block
};
struct Function {  // fn name($a : type) : type { }
  struct Parameter {
    std::string name;
    Span span;
    TypeNameId type;
  };
  Span span;
  std::string name;
  Span name_span;
  std::vector<Parameter> parameters;
  TypeNameId result;
  ExprId body;
};
struct Macro {  // macro name($a, @b, c) { }
  enum class ParameterKind : uint8_t { kVariable, kMap, kExpression };
  struct Parameter {
    ParameterKind kind;
    std::string name;  // with `$` or `@` where it has one
    Span span;
    ExprId default_value;  // invalid if none
  };
  Span span;
  std::string name;
  Span name_span;
  std::vector<Parameter> parameters;
  ExprId body;  // a Block
};
struct ConfigEntry {
  Span span;
  std::string name;
  Span name_span;
  ExprId value;  // a literal or a Name
};
struct Import {
  Span span;
  std::string path;
};
struct MapDeclaration {  // let @m = hash(100);
  Span span;
  std::string name;
  std::string kind;
  Span kind_span;
  ExprId max_entries;  // invalid if none
};

struct Ast {
  // Defined in one file: the code for all kinds of nodes is large.
  Ast();
  Ast(const Ast&);
  Ast(Ast&&) noexcept;
  Ast& operator=(const Ast&);
  Ast& operator=(Ast&&) noexcept;
  ~Ast();

  std::string shebang;  // the `#!` line without its newline; empty if none
  std::vector<CDefinition> c_definitions;
  std::vector<ConfigEntry> config;
  std::vector<Import> imports;
  std::vector<MapDeclaration> map_declarations;
  std::vector<Macro> macros;
  std::vector<Function> functions;
  std::vector<Action> actions;

  Table<ExprId, Expr> exprs;
  Table<StmtId, Stmt> stmts;
  Table<TypeNameId, TypeName> type_names;

  const Expr& operator[](ExprId id) const { return exprs[id]; }
  const Stmt& operator[](StmtId id) const { return stmts[id]; }
  const TypeName& operator[](TypeNameId id) const { return type_names[id]; }

  // Returns the node of `id` if it is a T, else null: `if (const auto* call = ast.get<Call>(id))`.
  template <class T>
  const T* get(ExprId id) const {
    return id.valid() ? std::get_if<T>(&exprs[id].node) : nullptr;
  }
  template <class T>
  const T* get(StmtId id) const {
    return id.valid() ? std::get_if<T>(&stmts[id].node) : nullptr;
  }
};

// Returns the operator's token: "+", "&&".
const char* spelling(BinaryOp op);
const char* spelling(UnaryOp op);

}  // namespace espy::syntax

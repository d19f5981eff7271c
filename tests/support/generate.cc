#include "support/generate.h"

#include <fmt/format.h>

#include <utility>

namespace espy::differential {

namespace {

struct IntType {
  const char* name;
  unsigned bits;
  bool is_signed;
};
constexpr IntType kTypes[] = {{"int8", 8, true},   {"int16", 16, true},   {"int32", 32, true},   {"int64", 64, true},
                              {"uint8", 8, false}, {"uint16", 16, false}, {"uint32", 32, false}, {"uint64", 64, false}};

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  uint64_t bits() { return engine_(); }
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(engine_() % limit); }
  bool one_in(uint32_t n) { return below(n) == 0; }
  template <class T, size_t kSize>
  const T& pick(const T (&choices)[kSize]) {
    return choices[below(kSize)];
  }

 private:
  std::mt19937_64 engine_;
};

// A number of that type: often one at an edge.
std::string number(Random& random, const IntType& type) {
  const uint64_t mask = type.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << type.bits) - 1;
  const uint64_t top = type.is_signed ? mask >> 1 : mask;
  uint64_t value = 0;
  switch (random.below(6)) {
    case 0: value = random.below(4); break;
    case 1: value = top - random.below(2); break;
    case 2: value = uint64_t{1} << random.below(type.bits); break;
    case 3: value = random.below(100); break;
    default: value = random.bits() >> random.below(64); break;
  }
  value &= top;
  if (type.is_signed && random.one_in(3)) return fmt::format("-{}", value);
  if (random.one_in(5)) return fmt::format("0x{:x}", value);
  return std::to_string(value);
}

// ---- Expressions ----------------------------------------------------------------------------------------------------

// An expression in both forms at once, and the assignments that its variables need.
struct Both {
  std::string literal;
  std::string variable;
};

class ExpressionGenerator {
 public:
  explicit ExpressionGenerator(uint32_t seed) : random_(seed) {}

  Both expression(unsigned depth) {
    if (depth == 0 || random_.one_in(8)) return leaf();
    switch (random_.below(8)) {
      case 0: return unary(depth);
      case 1: return cast(depth);
      case 2: return ternary(depth);
      default: return binary(depth);
    }
  }

  std::string take_assignments() { return std::exchange(assignments_, {}); }

 private:
  Both leaf() {
    const IntType& type = random_.pick(kTypes);
    const std::string literal = fmt::format("({}){}", type.name, parenthesized(number(random_, type)));
    const std::string name = fmt::format("$v{}", count_++);
    assignments_ += fmt::format("  {} = {};\n", name, literal);
    return {literal, name};
  }
  static std::string parenthesized(const std::string& text) { return text[0] == '-' ? "(" + text + ")" : text; }

  Both unary(unsigned depth) {
    static constexpr const char* kOperators[] = {"-", "~", "!"};
    const char* op = random_.pick(kOperators);
    const Both a = expression(depth - 1);
    return {fmt::format("{}({})", op, a.literal), fmt::format("{}({})", op, a.variable)};
  }
  Both cast(unsigned depth) {
    const IntType& type = random_.pick(kTypes);
    const Both a = expression(depth - 1);
    return {fmt::format("({})({})", type.name, a.literal), fmt::format("({})({})", type.name, a.variable)};
  }
  Both ternary(unsigned depth) {
    const Both a = expression(depth - 1), b = expression(depth - 1), c = expression(depth - 1);
    return {fmt::format("(({}) ? ({}) : ({}))", a.literal, b.literal, c.literal),
            fmt::format("(({}) ? ({}) : ({}))", a.variable, b.variable, c.variable)};
  }
  Both binary(unsigned depth) {
    static constexpr const char* kOperators[] = {"+",  "-",  "*",  "/", "%",  "&", "|",  "^",  "<<",
                                                 ">>", "==", "!=", "<", "<=", ">", ">=", "&&", "||"};
    const char* op = random_.pick(kOperators);
    const Both a = expression(depth - 1), b = expression(depth - 1);
    return {fmt::format("({}) {} ({})", a.literal, op, b.literal),
            fmt::format("({}) {} ({})", a.variable, op, b.variable)};
  }

  Random random_;
  std::string assignments_;
  uint32_t count_ = 0;
};

// ---- Programs -------------------------------------------------------------------------------------------------------

class ProgramGenerator {
 public:
  explicit ProgramGenerator(uint32_t seed) : random_(seed) {}

  std::string generate() {
    out_ = kDefinitions;
    out_ += "begin {\n";
    for (uint32_t i = 0; i < kVariables; ++i) {
      types_.push_back(&random_.pick(kTypes));
      const std::string first = number(random_, *types_[i]);
      line(fmt::format("let $v{} : {} = ({})({});", i, types_[i]->name, types_[i]->name, first));
    }
    for (uint32_t i = 0; i < 3; ++i) line(fmt::format("@s{} = (int64)({});", i, number(random_, kTypes[3])));
    for (uint32_t i = 0; i < kTexts; ++i) line(fmt::format("let $t{} : string[16] = {};", i, text_literal()));
    line(
        "let $p = ((int64)3, (uint16)4, (\"ab\", (int32)5)); let $b : bool = true; let $w1 = (int64)1; let $w2 = "
        "(int64)2;");
    line(
        "@pair[0] = ((int64)1, (uint8)2); @record = (number = (int64)1, word = $t0); @m[0] = (int64)1; @c[0] = "
        "count(); @mine[tid] = (int64)1;");
    block(3, 6);
    for (uint32_t i = 0; i < kVariables; ++i) line(fmt::format("@out{} = $v{};", i, i));
    for (uint32_t i = 0; i < kTexts; ++i) line(fmt::format("@text{} = $t{};", i, i));
    line("@tuple = $p; @flag = $b; @w = ($w1, $w2);");
    line("@seen = @mine[tid];");
    return out_ + "}\nend { clear(@mine); }\n";  // so that @mine is kept with the thread
  }

 private:
  static constexpr uint32_t kVariables = 5, kTexts = 2;
  static constexpr const char* kDefinitions =
      "#define TWICE(x) ((x) * 2)\n"
      "enum Shade { DARK, LIGHT = 5 };\n"
      "struct Point { int x; char name[20]; long z; };\n"
      "let @kept = lruhash(16);\n"
      "fn mix($a : int64, $b : int64) : int64 { if ($a > $b) { return $a ^ 7; } return $b - $a; }\n"
      "macro either($x, e) { $x > 3 ? (int64)e : (int64)$x }\n"
      "macro bump(@m, k, n) { @m[k] += n; }\n"
      "macro swap($x, $y) { let $t = $x; $x = $y; $y = $t; }\n"
      "fn fits($a : int64, $b : uint16) : bool { return $a >= 0 && $a < (int64)$b; }\n"
      "fn sum_to($n : int64) : int64 { $out = (int64)0; for ($i : 0..6) { if ($i > $n) { break; } $out += $i; } return "
      "$out; "
      "}\n"
      "fn word($a : int64, $t : string[16]) : string[16] { if ($a > 9) { $w = $t; return $w; } return \"small\"; }\n"
      "fn both($a : int64, $t : string[16]) : (int64, string[16], int32) { $o = ($a, $t, (int32)7); return $o; }\n"
      "macro chosen(c, t) { $u = t; if (c) { $u = \"other\"; } $u }\n";

  void line(const std::string& text) { out_ += std::string(2 * indent_, ' ') + text + "\n"; }

  std::string variable() { return fmt::format("$v{}", random_.below(kVariables)); }

  // What else the language has that gives a number.
  std::string rich_operand() {
    switch (random_.below(16)) {
      case 0: return fmt::format("mix((int64){}, (int64){})", variable(), variable());
      case 1: return fmt::format("either({}, {})", variable(), random_.below(50));
      case 2: return fmt::format("TWICE((int64){})", variable());
      case 3: return fmt::format("(int64)(has_key(@m, {}) ? 3 : 4)", key());
      case 4: return fmt::format("((int64)len(@m))");
      case 5: return fmt::format("((int64)strlen({}))", text());
      case 6: return fmt::format("(int64)({} == {} ? 10 : 20)", text(), text_literal());
      case 7: return fmt::format("(int64)(strcontains({}, \"b\") ? 1 : 2)", text());
      case 8: return fmt::format("(int64)(strncmp({}, {}, 2) == 0 ? 5 : 6)", text(), text());
      case 9: return fmt::format("(int64)bswap((uint32){})", variable());
      case 10: return fmt::format("(int64)((uint8[8])(uint64){})[{} & 7]", variable(), variable());
      case 11: return fmt::format("(int64)@pair[{}].{}", key(), random_.below(2));
      case 12: return "(int64)@record.number";
      case 13: return fmt::format("(int64)@c[{}]", key());
      case 14: {
        const uint32_t number = counters_++;
        return fmt::format("(int64)({{ let $z{} = (int64){}; $z{} * 3 }})", number, variable(), number);
      }
      default: return fmt::format("(int64)(LIGHT + sizeof({}))", random_.pick(kTypes).name);
    }
  }
  // What gives a number from strings, tuples, aggregations and functions.
  std::string language_operand() {
    switch (random_.below(18)) {
      case 0: return fmt::format("(int64)strstr({}, \"b\")", text());
      case 1: return fmt::format("(int64)(memcmp({}, {}, 3) == 0 ? 7 : 8)", text(), text());
      case 2: return fmt::format("(int64){}[{}]", text(), random_.below(4));
      case 3: return fmt::format("(int64)(((int64){}, 2) == ((int64){}, 2) ? 1 : 3)", variable(), variable());
      case 4: return fmt::format("(int64)sizeof({})", variable());
      case 5: return fmt::format("(int64)@sum[{}]", key());
      case 6: return random_.one_in(2) ? "(int64)@lo" : fmt::format("(int64)@hi[{}]", key());
      case 7: return random_.one_in(2) ? "$p.0" : "(int64)$p.1";
      case 8: return "(int64)$p.2.1";
      case 9: return fmt::format("(int64)(fits((int64){}, (uint16){}) ? 11 : 12)", variable(), variable());
      case 10: return fmt::format("sum_to((int64){} & 7)", variable());
      case 11: return fmt::format("(int64)@by[{} & 1, {}]", variable(), text());
      case 12: return fmt::format("(int64)@deep[({}, ({}, {}))]", key(), text(), key());
      case 13: return fmt::format("(int64)({} ? 1 : 0)", random_.one_in(2) ? "$b" : "!$b");
      case 14: return fmt::format("(int64)({} ? 3 : 5)", random_.one_in(2) ? "is_integer($v0)" : "is_str($t0)");
      case 15: return "@mine[tid]";
      case 16: return "(int64)(has_key(@mine, tid) ? 13 : 14)";
      default: return fmt::format("(int64)(uint8){}", variable());
    }
  }
  std::string text_literal() {
    static constexpr const char* kWords[] = {"\"\"", "\"a\"", "\"abc\"", "\"b\"", "\"fifteen letters\""};
    return random_.pick(kWords);
  }
  std::string text() { return fmt::format("$t{}", random_.below(kTexts)); }

  std::string operand() {
    if (random_.one_in(6)) return random_.one_in(2) ? rich_operand() : language_operand();
    switch (random_.below(6)) {
      case 0: return number_or_parenthesized();
      case 1: return fmt::format("@s{}", random_.below(3));
      case 2: return fmt::format("@m[{}]", key());
      default: return variable();
    }
  }
  std::string number_or_parenthesized() {
    const std::string text = number(random_, random_.pick(kTypes));
    return text[0] == '-' ? "(" + text + ")" : text;
  }
  // Few different ones, so that keys are met again.
  std::string key() {
    return random_.one_in(3) ? fmt::format("({} & 3)", variable()) : std::to_string(random_.below(4));
  }

  std::string expression(unsigned depth) {
    static constexpr const char* kOperators[] = {"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"};
    if (depth == 0 || random_.one_in(4)) return operand();
    if (random_.one_in(6)) {
      const std::string condition_text = condition(0);
      return fmt::format("({} ? {} : {})", condition_text, cast_operand(), cast_operand());
    }
    const std::string a = expression(depth - 1), b = expression(depth - 1);
    return fmt::format("({} {} {})", a, random_.pick(kOperators), b);
  }
  std::string cast_operand() { return fmt::format("(int64){}", operand()); }
  std::string condition(unsigned depth) {
    static constexpr const char* kOperators[] = {"==", "!=", "<", "<=", ">", ">="};
    const std::string a = expression(depth), b = expression(depth);
    std::string text = fmt::format("(int64){} {} (int64){}", a, random_.pick(kOperators), b);
    if (random_.one_in(4)) {
      const std::string c = condition(0);
      text = fmt::format("({}) {} ({})", text, random_.one_in(2) ? "&&" : "||", c);
    }
    return text;
  }

  void block(unsigned depth, uint32_t count) {
    const size_t locals_before = locals_.size();
    ++indent_;
    for (uint32_t i = 0; i < count; ++i) statement(depth);
    --indent_;
    locals_.resize(locals_before);
  }

  // ---- Variables that a block assigns first, and that end with it

  enum class Kind : uint8_t { kText, kLongText, kTuple, kLongTuple, kRecord, kStruct, kBytes, kNumber, kPointer };
  struct Local {
    std::string name;
    Kind kind;
  };

  static const char* map_of(Kind kind) {
    static constexpr const char* kMaps[] = {"@l_text",   "@l_long",  "@l_tuple",  "@l_long_tuple", "@l_record",
                                            "@l_struct", "@l_bytes", "@l_number", "@l_pointed"};
    return kMaps[static_cast<size_t>(kind)];
  }
  Kind kind() { return static_cast<Kind>(random_.below(9)); }
  std::string long_text() {
    static constexpr const char* kWords[] = {
        "\"a text that is too long for the stack of a program, so that scratch has it\"", "\"short\"",
        "\"another that is long, and that differs from the first one in its last byte: X\""};
    return random_.pick(kWords);
  }
  std::string text_value() {
    switch (random_.below(6)) {
      case 0: return text();
      case 1: return fmt::format("word((int64){}, {})", variable(), text());
      case 2: return fmt::format("chosen({}, {})", condition(0), text());
      case 3: return fmt::format("({} ? {} : {})", condition(0), text_literal(), text());
      case 4: return fmt::format("({{ $z{0} = {1}; $z{0} }})", counters_++, text());
      default: return text_literal();
    }
  }
  std::string value_of(Kind kind) {
    switch (kind) {
      case Kind::kText: return text_value();
      case Kind::kLongText:
        if (random_.one_in(2)) return long_text();
        return fmt::format("({} ? {} : {})", condition(0), long_text(), long_text());
      case Kind::kTuple:
        if (random_.one_in(4)) return fmt::format("both((int64){}, {})", variable(), text());
        return fmt::format("((int64){}, {}, (int32){})", variable(), text(), variable());
      case Kind::kLongTuple: return fmt::format("((int64){}, {}, (uint8){})", variable(), long_text(), variable());
      case Kind::kRecord: return fmt::format("(number = (int64){}, word = {})", variable(), text());
      case Kind::kStruct: return "*(struct Point *)0";  // the read fails, which gives zeros
      case Kind::kBytes: return fmt::format("(uint8[8])(uint64){}", variable());
      case Kind::kNumber: return fmt::format("(int64)({})", expression(1));
      case Kind::kPointer: return fmt::format("&$w{}", 1 + random_.below(2));
    }
    return {};
  }
  void declare_local() {
    const Local local{fmt::format("$l{}", counters_++), kind()};
    if (random_.one_in(5)) {  // hoisted out of both branches
      const Local other{local.name, local.kind == Kind::kPointer ? Kind::kText : local.kind};
      line(fmt::format("if ({0}) {{ {1} = {2}; }} else {{ {1} = {3}; }}", condition(0), other.name,
                       value_of(other.kind), value_of(other.kind)));
      line(fmt::format("{}[{}] = {};", map_of(other.kind), key(), other.name));
      return locals_.push_back(other);
    }
    const char* let = random_.one_in(4) ? "let " : "";
    line(fmt::format("{}{} = {};", let, local.name, value_of(local.kind)));
    locals_.push_back(local);
    if (random_.one_in(2)) use_local(local);
  }
  void use_local(const Local& local) {
    const std::string& name = local.name;
    const char* map = map_of(local.kind);
    if (local.kind == Kind::kPointer) return line(fmt::format("{}[{}] = *{};", map, key(), name));
    switch (random_.below(10)) {
      case 0: return line(fmt::format("{} = {};", name, value_of(local.kind)));
      case 7: return line(fmt::format("print({}); printf(\"%d\", {});", name, variable()));
      case 8:
        return line(
            fmt::format("{0}_last[{1}] = recent(3, {2}); for ($r{3} : {0}_last[{4}]) {{ $c{3} = $r{3}; "
                        "{0}[5] = $c{3}; }}",
                        map, key(), name, counters_++, key()));
      case 9:
        if (local.kind == Kind::kBytes || local.kind == Kind::kStruct) break;
        return line(fmt::format("{0}_keys[{1}, {2}] = {3}; {4}", map, name, key(), variable(),
                                random_.one_in(3) ? fmt::format("delete({}_keys, ({}, {}));", map, name, key()) : ""));
      case 1: return line(fmt::format("if ({}) {{ {} = {}; }}", condition(0), name, value_of(local.kind)));
      case 2: {
        const Local copy{fmt::format("$l{}", counters_++), local.kind};
        line(fmt::format("{} = {};", copy.name, name));
        return locals_.push_back(copy);
      }
      case 3: return part_of_local(local);
      // The callback reads, or writes, what is outside of it.
      case 4:
        return line(fmt::format("for ($kv{0} : @m) {{ if ($kv{0}.0 >= 0) {{ {1} = {2}; }} }}", counters_++, name,
                                local.kind == Kind::kNumber ? "(int64)" + variable() : value_of(local.kind)));
      case 5:
        return line(
            fmt::format("for ($kv{0} : @m) {{ $in{0} = {1}; if ({2}) {{ $at{0} = $in{0}; {3}[6] = $at{0}; "
                        "break; }} {3}[7] = $in{0}; }}",
                        counters_++, name, condition(0), map));
      default: break;
    }
    line(fmt::format("{}[{}] = {};", map, key(), name));
  }
  void part_of_local(const Local& local) {
    const std::string& name = local.name;
    switch (local.kind) {
      case Kind::kText:
      case Kind::kLongText: return line(fmt::format("@s0 = (int64)strlen({});", name));
      case Kind::kTuple:
      case Kind::kLongTuple: return line(fmt::format("@s1 = {}.0 + (int64){}.2;", name, name));
      case Kind::kRecord: return line(fmt::format("@by[{0}.number & 1, {0}.word] = 1;", name));
      case Kind::kStruct: return line(fmt::format("@s2 = {0}.z; @words[{0}.name]++;", name));
      case Kind::kBytes: return line(fmt::format("@s0 = (int64){}[{} & 7];", name, variable()));
      default: return line(fmt::format("@s1 = {} + 1;", name));
    }
  }
  void local_statement() {
    if (locals_.empty() || random_.one_in(2)) return declare_local();
    use_local(locals_[random_.below(static_cast<uint32_t>(locals_.size()))]);
  }

  void assignment() {
    const uint32_t which = random_.below(kVariables);
    line(fmt::format("$v{} = ({})({});", which, types_[which]->name, expression(2)));
  }

  void map_statement() {
    switch (random_.below(14)) {
      case 0: return line(fmt::format("@m[{}] = (int64)({});", key(), expression(1)));
      case 1: return line(fmt::format("@s{} = (int64)({});", random_.below(3), expression(2)));
      case 2: return line(fmt::format("@c[{}] = count();", key()));
      case 3: return line(fmt::format("@n = count();"));
      case 4: return line(fmt::format("@sum[{}] = sum((int64)({}));", key(), expression(1)));
      case 5: return line(fmt::format("@h[{}] = hist((int64)({}));", key(), expression(1)));
      case 6: return line(fmt::format("@hs = hist((int64){}, 2);", variable()));
      case 7: return line(fmt::format("@l = lhist((int64){}, -10, 100, 7);", variable()));
      case 8:
        return line(fmt::format("@lo = min((int64){}); @hi[{}] = max((int64){});", variable(), key(), variable()));
      case 9:
        return line(fmt::format("@st = stats((int64){}); @av[{}] = avg((int64){});", variable(), key(), variable()));
      case 10: return line(fmt::format("@m[{}]++; @s{} += 3;", key(), random_.below(3)));
      case 11: return line(fmt::format("@mine[tid] {} (int64)({});", random_.one_in(2) ? "=" : "+=", expression(1)));
      case 12: return line(random_.one_in(2) ? "delete(@mine, tid);" : "@s0 = (int64)delete(@mine[tid]);");
      default: return line(fmt::format("delete(@m, {});", key()));
    }
  }

  void rich_statement(unsigned depth) {
    const uint32_t number = counters_++;
    switch (random_.below(depth == 0 ? 11 : 12)) {
      case 0: return line(fmt::format("{} = {};", text(), text_literal()));
      case 1: return line(fmt::format("{} = {} ? {} : {};", text(), condition(0), text_literal(), text_literal()));
      case 2: return line(fmt::format("@pair[{}] = ((int64){}, (uint8){});", key(), variable(), variable()));
      case 3: return line(fmt::format("@record = (number = (int64){}, word = {});", variable(), text()));
      case 4: return line(fmt::format("@by[{} & 1, {}] = (int64){};", variable(), text(), variable()));
      case 5: return line(fmt::format("@words[{}]++; @counted[{}] = count();", text(), text()));
      case 6: return line(fmt::format("@kept[{}] = (int64){};", key(), variable()));
      case 7: return line(fmt::format("@bytes = (uint8[4])(uint32){};", variable()));
      case 8: return line(fmt::format("@joined[{}] = str_concat({}, {});", key(), text(), text()));
      case 9: return line(fmt::format("if (find(@m, {}, $f{})) {{ @found = $f{}; }}", key(), number, number));
      case 10:
        return line(fmt::format("@s{} = if {} {{ (int64){} }} else {{ (int64){} }};", random_.below(3), condition(0),
                                variable(), variable()));
      default:
        // In no certain order: only what any order adds up to.
        return line(fmt::format("for ($kv{} : @m) {{ @total += $kv{}.0 * 3 + $kv{}.1; @turns = count(); }}", number,
                                number, number));
    }
  }

  // Assignments with operators, increments, blocks, macros, booleans, tuples, other aggregations.
  void language_statement(unsigned depth) {
    static constexpr const char* kAssignments[] = {"+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="};
    const uint32_t which = random_.below(kVariables), number = counters_++;
    const char* type = types_[which]->name;
    switch (random_.below(depth == 0 ? 12 : 16)) {
      case 0:
        return line(
            fmt::format("$w{} {} (int64)({});", 1 + random_.below(2), random_.pick(kAssignments), expression(1)));
      case 1: return line(fmt::format("$v{}{};", which, random_.one_in(2) ? "++" : "--"));
      case 2: return line(fmt::format("@s{} {} (int64){};", random_.below(3), random_.pick(kAssignments), operand()));
      case 3: return line(fmt::format("@m[{}] {} (int64){};", key(), random_.pick(kAssignments), operand()));
      case 4: return line(fmt::format("$b = {};", condition(1)));
      case 5:
        return line(fmt::format("$p = ((int64){}, (uint16){}, ({}, (int32){}));", variable(), variable(),
                                text_literal(), variable()));
      case 6: return line(fmt::format("bump(@m, {}, (int64){}); swap($w1, $w2);", key(), variable()));
      case 7: return line(fmt::format("$w{} = (int64)({});", 1 + random_.below(2), expression(2)));
      case 8: return line(fmt::format("@deep[({}, ({}, {}))] = (int64){};", key(), text(), key(), variable()));
      case 9:
        return line(fmt::format("@ulo = min((uint64){}); @uhi[{}] = max((uint64){}); @uav = avg((uint32){});",
                                variable(), key(), variable(), variable()));
      case 10: return line(random_.one_in(2) ? "clear(@m);" : "zero(@m);");
      case 11:
        return line(fmt::format("@flags[{}] = {}; delete(@by[{} & 1, {}]);", key(), condition(0), variable(), text()));
      case 12: return else_if_statement(depth);
      case 13: return bounded_range_statement(depth);
      case 14:
        line(fmt::format("{{ let $y{} = ({}){};", number, type, operand()));
        block(depth - 1, 1);
        return line(fmt::format("$v{} = $y{}; }}", which, number));
      default:
        return line(fmt::format("for ($kv{0} : @m) {{ if ($kv{0}.1 > (int64){1}) {{ continue; }} @few += $kv{0}.0; }}",
                                number, variable()));
    }
  }
  void else_if_statement(unsigned depth) {
    line(fmt::format("if ({}) {{", condition(0)));
    block(depth - 1, 1);
    line(fmt::format("}} else if ({}) {{", condition(0)));
    block(depth - 1, 1);
    line("} else {");
    block(depth - 1, 1);
    line("}");
  }
  void bounded_range_statement(unsigned depth) {
    const std::string counter = fmt::format("$i{}", counters_++);
    line(fmt::format("for ({} : ({} & 3)..({} & 7)) {{", counter, variable(), variable()));
    ++indent_;
    if (random_.one_in(2))
      line(fmt::format("if ({}) {{ {}; }}", condition(0), random_.one_in(2) ? "break" : "continue"));
    line(fmt::format("@turn += {};", counter));
    --indent_;
    block(depth - 1, 1 + random_.below(2));
    line("}");
  }

  void statement(unsigned depth) {
    if (random_.one_in(3)) return local_statement();
    if (random_.one_in(4)) return rich_statement(depth);
    if (random_.one_in(4)) return language_statement(depth);
    switch (depth == 0 ? random_.below(3) : random_.below(8)) {
      case 0:
      case 1: return assignment();
      case 2:
      case 3: return map_statement();
      case 4: return if_statement(depth);
      case 5: return while_statement(depth);
      case 6: return range_statement(depth);
      default: return unroll_statement(depth);
    }
  }

  void if_statement(unsigned depth) {
    line(fmt::format("if ({}) {{", condition(1)));
    block(depth - 1, 1 + random_.below(3));
    if (random_.one_in(2)) {
      line("} else {");
      block(depth - 1, 1 + random_.below(2));
    }
    line("}");
  }
  void while_statement(unsigned depth) {
    const std::string counter = fmt::format("$i{}", counters_++);
    line(fmt::format("let {} : int64 = (int64)0;", counter));
    line(fmt::format("while ({} < {}) {{", counter, 1 + random_.below(5)));
    ++indent_;
    line(fmt::format("{} = {} + 1;", counter, counter));
    if (random_.one_in(4))
      line(fmt::format("if ({}) {{ {}; }}", condition(0), random_.one_in(2) ? "break" : "continue"));
    --indent_;
    block(depth - 1, 1 + random_.below(2));
    line("}");
  }
  void range_statement(unsigned depth) {
    const std::string counter = fmt::format("$i{}", counters_++);
    line(fmt::format("for ({} : {}..{}) {{", counter, random_.below(3), 2 + random_.below(4)));
    block(depth - 1, 1 + random_.below(2));
    line("}");
  }
  void unroll_statement(unsigned depth) {
    line(fmt::format("unroll({}) {{", 1 + random_.below(3)));
    block(depth - 1, 1 + random_.below(2));
    line("}");
  }

  Random random_;
  std::string out_;
  std::vector<const IntType*> types_;
  uint32_t indent_ = 1;
  uint32_t counters_ = 0;
  std::vector<Local> locals_;  // of the blocks around, outermost first
};

}  // namespace

std::vector<GeneratedExpression> generate_expressions(uint32_t seed, uint32_t count) {
  ExpressionGenerator generator(seed);
  std::vector<GeneratedExpression> out;
  for (uint32_t i = 0; i < count; ++i) {
    const Both both = generator.expression(1 + i % 4);
    const std::string assignments = generator.take_assignments();
    const std::string literal = fmt::format("  @a{} = (int64)({});\n", i, both.literal);
    const std::string variable = fmt::format("  @b{} = (int64)({});\n", i, both.variable);
    // A probe each: what an unoptimized program keeps in variables has to fit on one stack.
    out.push_back(
        {"begin {\n" + assignments + literal + variable + "}\n", "begin {\n" + assignments + variable + "}\n"});
  }
  return out;
}

std::string generate_program(uint32_t seed) { return ProgramGenerator(seed).generate(); }

}  // namespace espy::differential

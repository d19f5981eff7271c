#include "types/value_location.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace espy::types {

namespace {

using Op = LocationOp::Code;

const char* operator_of(Op op) {
  switch (op) {
    case Op::kAdd: return "+";
    case Op::kSub: return "-";
    case Op::kMul: return "*";
    case Op::kDivSigned:
    case Op::kDivUnsigned: return "/";
    case Op::kMod: return "%";
    case Op::kAnd: return "&";
    case Op::kOr: return "|";
    case Op::kXor: return "^";
    case Op::kShl: return "<<";
    case Op::kShr:
    case Op::kSar: return ">>";
    case Op::kEqual: return "==";
    case Op::kNotEqual: return "!=";
    case Op::kLessSigned:
    case Op::kLessUnsigned: return "<";
    default: return nullptr;
  }
}

// Prints operations as a formula. Large numbers are addresses or masks and are printed in hexadecimal.
class Formula {
 public:
  Formula(const LocationPiece& piece, const RegisterNamer& register_name)
      : piece_(piece), register_name_(register_name) {}

  std::string of(const std::vector<LocationOp>& steps) {
    for (const LocationOp& step : steps) add(step);
    return stack_.empty() ? "?" : stack_.back();
  }

 private:
  static std::string number(int64_t value) {
    constexpr int64_t kPlain = 1 << 16;
    return value > kPlain ? fmt::format("{:#x}", value) : std::to_string(value);
  }

  static std::string whole(const std::string& text) {
    return text.find_first_of(" +") == text.npos ? text : "(" + text + ")";
  }

  static std::string term(const std::string& text) { return text.find(' ') == text.npos ? text : "(" + text + ")"; }

  std::string pop() {
    if (stack_.empty()) return "?";
    std::string out = std::move(stack_.back());
    stack_.pop_back();
    return out;
  }

  void add(const LocationOp& step) {
    switch (step.op) {
      case Op::kRegister: return stack_.push_back(register_name_(static_cast<uint32_t>(step.operand)));
      case Op::kConstant: return stack_.push_back(number(step.operand));
      case Op::kThreadPointer: return stack_.push_back("thread");
      case Op::kLoadBias: return stack_.push_back("base");
      case Op::kReturnAddress: return keep_top();
      case Op::kRead: return stack_.push_back("[" + pop() + "]");
      case Op::kPick: return pick(static_cast<size_t>(step.operand));
      case Op::kDrop: pop(); return;
      case Op::kSwap: return move_top(1);
      case Op::kRotate: return move_top(2);
      case Op::kByCaller: pop(); return stack_.push_back(by_caller(piece_.callers[static_cast<size_t>(step.operand)]));
      case Op::kExtendSign:
      case Op::kExtendZero: return;
      case Op::kNeg: return stack_.push_back("-" + whole(pop()));
      case Op::kNot: return stack_.push_back("~" + whole(pop()));
      default: break;
    }
    const std::string right = pop();
    const std::string left = pop();
    if (step.op != Op::kAdd)
      return stack_.push_back(fmt::format("{} {} {}", whole(left), operator_of(step.op), whole(right)));
    stack_.push_back(term(left) + (right.starts_with('-') ? "" : "+") + term(right));
  }

  std::string by_caller(const std::vector<CallSite>& callers) const {
    constexpr size_t kMostShown = 4;
    std::vector<std::string> values;
    for (const CallSite& each : callers) {
      std::string value = Formula(piece_, register_name_).of(each.steps);
      if (std::ranges::find(values, value) == values.end()) values.push_back(std::move(value));
    }
    if (values.size() > kMostShown) {
      values.resize(kMostShown);
      values.emplace_back("...");
    }
    return fmt::format("{} (by caller)", fmt::join(values, " or "));
  }

  void keep_top() {
    std::string top = pop();
    pop();
    stack_.push_back(std::move(top));
  }

  void pick(size_t below) { stack_.push_back(below < stack_.size() ? stack_[stack_.size() - 1 - below] : "?"); }

  // Moves the top below the `count` entries under it.
  void move_top(size_t count) {
    if (stack_.size() <= count) return;
    std::string top = pop();
    stack_.insert(stack_.end() - static_cast<std::ptrdiff_t>(count), std::move(top));
  }

  const LocationPiece& piece_;
  const RegisterNamer& register_name_;
  std::vector<std::string> stack_;
};

std::string piece_text(const LocationPiece& piece, const RegisterNamer& register_name) {
  const auto formula = [&] { return Formula(piece, register_name).of(piece.steps); };
  switch (piece.kind) {
    case LocationPiece::Kind::kMemory: return "[" + formula() + "]";
    case LocationPiece::Kind::kBytes: return fmt::format("= {} known bytes", piece.bytes.size());
    case LocationPiece::Kind::kNothing: return "nothing";
    case LocationPiece::Kind::kValue: break;
  }
  const bool is_register = piece.steps.size() == 1 && piece.steps[0].op == Op::kRegister;
  return (is_register ? "" : "= ") + formula();
}

}  // namespace

std::string to_string(const ValueLocation& place, const RegisterNamer& register_name) {
  if (place.pieces.size() == 1) return piece_text(place.pieces[0], register_name);
  std::string out;
  for (const LocationPiece& piece : place.pieces)
    out += fmt::format("{}{} bytes of {}", out.empty() ? "" : ", ", piece.size_bytes, piece_text(piece, register_name));
  return out;
}

}  // namespace espy::types

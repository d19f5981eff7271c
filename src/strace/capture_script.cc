// The programs read tables with what to read for a call. `class` of a call, for its entry and for its return, is an
// index to at most kSlots slots. A slot is two bytes: the argument and the way to read it, and a number for the way.
// Tables are string literals, so a byte of them is never 0.
#include "strace/capture_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/fatal.h"
#include "base/strings.h"

namespace espy::strace {

namespace {

constexpr size_t kSlots = 5;

// How a program reads the memory at an argument. Texts are first.
enum Way : uint8_t {
  kEnd = 0,
  kReadPath,
  kReadText,
  kReadBytes,   // `most` elements of `unit` bytes, or as many as another argument says
  kReadBehind,  // the same, and the other argument points to the number
  kReadBits,    // the same, and the number is one of bits
  kReadAlways,  // as kReadBytes, also after an error
  kReadVector,
  kReadMessage,
  kReadTexts,
  kReadEntries,
  kReadCount,
};

constexpr uint8_t kNoCount = 7;      // Slot::by: there are `most` elements
constexpr uint8_t kMostShown = 254;  // Slot::most: as much as is shown of a text
constexpr uint8_t kMostSocketBytes = 128;

struct Slot {
  uint8_t argument = 0;
  uint8_t way = kEnd;
  uint8_t by = kNoCount;
  uint8_t unit = 0;
  uint8_t most = 0;
  auto operator<=>(const Slot&) const = default;
};
using Slots = std::array<Slot, kSlots>;

class Plan {
 public:
  Plan() { classes_.push_back({}); }  // class 0: nothing is read

  void add(const CallTable& table, uint32_t number) {
    const Call* call = table.find(number);
    if (call == nullptr) return;
    std::vector<Slot> before, after;
    for (size_t i = 0; i < call->arguments.size(); ++i) add_argument(call->arguments[i], i, before, after);
    add_lists(number, before, at_entry);
    add_lists(number, after, at_return);
    entry_[number] = class_of(before);
    return_[number] = class_of(after);
  }

  std::string entry_table() const { return literal(entry_); }
  std::string return_table() const { return literal(return_); }
  std::string table(uint8_t Slot::*member) const {
    std::string out = "\"";
    for (const Slots& slots : classes_)
      for (const Slot& each : slots) out += fmt::format("\\x{:02x}", each.*member + 1);
    return out + '"';
  }
  // By the number of a call: the way, the argument and the argument with the count of what is behind memory.
  struct Lists {
    std::array<uint8_t, CallTable::kNumbers> way = {}, argument = {}, by = {};
    uint32_t ways = 0;  // a bit for each that a call has
    bool has_vectors() const { return (ways >> kReadVector | ways >> kReadMessage) & 1; }
    bool has(Way way_of_call) const { return ways >> way_of_call & 1; }
  };
  Lists at_entry, at_return;

  // Each byte is one more than its value.
  static std::string literal(const std::array<uint8_t, CallTable::kNumbers>& bytes) {
    std::string out = "\"";
    for (const uint8_t byte : bytes) out += fmt::format("\\x{:02x}", byte + 1);
    return out + '"';
  }

 private:
  static Slot slot(size_t argument, Way way, size_t by = kNoCount, size_t unit = 1, size_t most = kMostShown) {
    CHECK(unit < 254 && most < 255);
    return {static_cast<uint8_t>(argument), way, static_cast<uint8_t>(by), static_cast<uint8_t>(unit),
            static_cast<uint8_t>(most)};
  }
  static Slot struct_slot(size_t argument, size_t size_bytes, Way way = kReadBytes) {
    return slot(argument, way, kNoCount, 4, (size_bytes + 3) / 4);
  }

  static void add_argument(const Argument& argument, size_t i, std::vector<Slot>& at_entry,
                           std::vector<Slot>& at_return) {
    std::vector<Slot>& to = argument.is_filled ? at_return : at_entry;
    const KindRow& row = row_of(argument.kind);
    const auto by = static_cast<size_t>(std::max<int8_t>(argument.by, 0));
    switch (row.capture) {
      case Capture::kNothing: break;
      case Capture::kPath: to.push_back(slot(i, kReadPath, kNoCount, 0)); break;
      case Capture::kText: add_text(argument.kind, i, at_entry); break;
      case Capture::kBytes: to.push_back(slot(i, kReadBytes, by)); break;
      case Capture::kStruct: add_struct(argument, i, at_entry, at_return); break;
      case Capture::kArray:
        to.push_back(slot(i, kReadBytes, by, row.number, row.number == 1 ? 128 : kMostElements));
        if (argument.kind == Kind::k_pollfds) at_return.push_back(to.back());
        break;
      case Capture::kSocket:
        to.push_back(slot(i, argument.is_filled ? kReadBehind : kReadBytes, by, 1, kMostSocketBytes));
        break;
      case Capture::kVector: to.push_back(slot(i, kReadVector, by, 16, kMostElements)); break;
      case Capture::kMessage: to.push_back(slot(i, kReadMessage, kNoCount, 56, 1)); break;
      case Capture::kTexts: to.push_back(slot(i, kReadTexts, kNoCount, 0, 1)); break;
      case Capture::kCount: to.push_back(slot(i, kReadCount, kNoCount, 0, 1)); break;
      case Capture::kEntries: to.push_back(slot(i, kReadEntries, kByResult, 0, 1)); break;
      case Capture::kSelect:
        for (size_t set = 1; set <= 3; ++set)
          for (std::vector<Slot>* each : {&at_entry, &at_return}) each->push_back(slot(set, kReadBits, 0, 8, 16));
        for (std::vector<Slot>* each : {&at_entry, &at_return}) each->push_back(struct_slot(4, 16));
        break;
      case Capture::kSockOption:
        if (argument.is_filled) {
          at_entry.push_back(struct_slot(4, 4));
          at_return.push_back(struct_slot(4, 4));
          at_return.push_back(slot(3, kReadBehind, 4, 1, kMostSocketBytes));
        } else {
          at_entry.push_back(slot(3, kReadBytes, 4, 1, kMostSocketBytes));
        }
        break;
    }
  }

  static void add_lists(uint32_t number, const std::vector<Slot>& slots, Lists& to) {
    for (const Slot& each : slots) {
      if (each.way < kReadVector || each.way == kReadCount) continue;  // what is counted follows the texts
      to.way[number] = each.way;
      to.argument[number] = each.argument;
      to.by[number] = each.by;
      to.ways |= 1u << each.way;
    }
  }

  static void add_text(Kind kind, size_t i, std::vector<Slot>& at_entry) {
    at_entry.push_back(slot(i, kReadText, kNoCount, 0));
    if (kind != Kind::k_prctl) return;
    at_entry.back() = slot(1, kReadText, kNoCount, 0);
    at_entry.push_back(slot(4, kReadText, kNoCount, 0));  // the name of a mapping
  }

  // Some are read at an argument behind their own, and some at both ends of the call.
  static void add_struct(const Argument& argument, size_t i, std::vector<Slot>& at_entry,
                         std::vector<Slot>& at_return) {
    const size_t size_bytes = row_of(argument.kind).number;
    switch (argument.kind) {
      case Kind::k_socketpair: at_return.push_back(struct_slot(3, size_bytes)); return;
      case Kind::k_futex: at_entry.push_back(struct_slot(3, size_bytes)); return;
      case Kind::k_remaining: at_return.push_back(struct_slot(i, size_bytes, kReadAlways)); return;
      case Kind::k_fcntl:
      case Kind::k_ioctl: i = 2; [[fallthrough]];
      case Kind::k_length:
        at_entry.push_back(struct_slot(i, size_bytes));
        at_return.push_back(struct_slot(i, size_bytes));
        return;
      default: (argument.is_filled ? at_return : at_entry).push_back(struct_slot(i, size_bytes));
    }
  }

  uint8_t class_of(const std::vector<Slot>& slots) {
    Slots of_class = {};
    CHECK(slots.size() <= kSlots);
    std::ranges::copy(slots, of_class.begin());
    auto found = std::ranges::find(classes_, of_class);
    if (found == classes_.end()) found = classes_.insert(classes_.end(), of_class);
    return static_cast<uint8_t>(found - classes_.begin());
  }

  std::vector<Slots> classes_;
  std::array<uint8_t, CallTable::kNumbers> entry_ = {}, return_ = {};
};

// The parts of the programs are actions of their own, so that the kernel's verifier, which follows each path, looks at
// one after the other, and have few branches. They run in this order.

// Reads the slots of a class.
constexpr std::string_view kReadSlots = R"(
  $class = (uint64)((uint8){class}[$id] - 1);
  for ($k : 0..($class > 0 ? {slots} : 0)) {
    $at = $class * {slots} + (uint64)$k;
    $way = (uint64)((uint8){way}[$at] - 1);
    if ($way == 0) { break; }
    $p = *(uint64 *)kptr($regs + (uint8){offsets}[(uint8){argument}[$at] - 1] - 1);
    if ($p == 0 {skip}) { continue; }
    if ($way <= {kReadText}) {
      if (in_memory(uptr($p))) {
        printf("st:T %d %d %d %s", tid, $p, *(uint8 *)uptr($p), str(uptr($p), $way == {kReadPath} ? {path} : {text} + 2));
      } else {
        $missing = (uint64)1;
      }
      continue;
    }
    $by = (uint64)((uint8){by}[$at] - 1);
    $most = (uint64)((uint8){most}[$at] - 1);
    $most = $most == {kMostShown} ? (uint64){text} : $most;
    $n = $by == {kNoCount} ? $most : *(uint64 *)kptr($regs + (uint8){offsets}[$by] - 1);
    $n = $way == {kReadBehind} ? (uint64)*(uint32 *)uptr($n) : $way == {kReadBits} ? (uint64)(($n + 63) / 64) : $n;
    $size = least($n, $most) * (uint64)((uint8){unit}[$at] - 1);
    if ($size == 0) { continue; }
    if (((uint64)in_memory(uptr($p)) & (uint64)in_memory(uptr($p + $size - 1))) == 1) {
      printf("st:B %d %d %r", tid, $p, buf(uptr($p), $size));
    } else {
      $missing = (uint64)1;
    }
  }
)";

// What iovecs point to, and a message.
constexpr std::string_view kReadVectors = R"(
  $way = (uint64)((uint8){list_way}[$id] - 1);
  if ({if} && ($way == {kReadVector} || $way == {kReadMessage})) {
    $list = *(uint64 *)kptr($regs + (uint8){offsets}[(uint8){list_argument}[$id] - 1] - 1);
    $n = $way == {kReadMessage} ? (uint64)0 : *(uint64 *)kptr($regs + (uint8){offsets}[(uint8){list_by}[$id] - 1] - 1);
    if ($way == {kReadMessage} && in_memory(uptr($list))) {
      for ($k : 0..3) {
        $p = *(uint64 *)uptr($list + $k * 16);
        $n = *(uint64 *)uptr($list + $k * 16 + 8);
        $n = $k == 0 ? $n & 0xffffffff : $n;
        $size = least($k == 1 ? (uint64)($n * 16) : $n, $k == 1 ? {elements} * 16 : 256);
        if ($size == 0) { continue; }
        if (((uint64)in_memory(uptr($p)) & (uint64)in_memory(uptr($p + $size - 1))) == 1) {
          printf("st:B %d %d %r", tid, $p, buf(uptr($p), $size));
        }
      }
      $n = *(uint64 *)uptr($list + 24);
      $list = *(uint64 *)uptr($list + 16);
    }
    if (in_memory(uptr($list))) {
      for ($k : 0..(int64)least($n, {elements})) {
        $p = *(uint64 *)uptr($list + $k * 16);
        $size = least(*(uint64 *)uptr($list + $k * 16 + 8), {text});
        if ($size == 0) { continue; }
        if (((uint64)in_memory(uptr($p)) & (uint64)in_memory(uptr($p + $size - 1))) == 1) {
          printf("st:B %d %d %r", tid, $p, buf(uptr($p), $size));
        }
      }
    }
  }
)";

// The texts of execve(), and how many the environment has.
constexpr std::string_view kReadTextList = R"(
  if ((uint8){list_way}[$id] - 1 == {kReadTexts}) {
    $argument = (uint8){list_argument}[$id];
    $list = *(uint64 *)kptr($regs + (uint8){offsets}[$argument - 1] - 1);
    for ($k : 0..{elements} + 1) {
      if (!in_memory(uptr($list))) { break; }
      $p = *(uint64 *)uptr($list);
      printf("st:B %d %d %r", tid, $list, buf(uptr($list), 8));
      if ($p == 0) { break; }
      $list += 8;
      if (in_memory(uptr($p))) {
        printf("st:T %d %d %d %s", tid, $p, *(uint8 *)uptr($p), str(uptr($p), {text} + 2));
      }
    }
    $list = *(uint64 *)kptr($regs + (uint8){offsets}[$argument] - 1);
    $count = (uint64)0;
    for ($k : 0..{unknown}) {
      if (!in_memory(uptr($list))) {
        $count = (uint64){unknown};
        break;
      }
      if (*(uint64 *)uptr($list) == 0) { break; }
      $list += 8;
      $count++;
    }
    printf("st:N %d %d", tid, $count);
  }
)";

// How many entries of a directory there are.
constexpr std::string_view kCountEntries = R"(
  if ({if} && (uint8){list_way}[$id] - 1 == {kReadEntries}) {
    $list = *(uint64 *)kptr($regs + (uint8){offsets}[(uint8){list_argument}[$id] - 1] - 1);
    $at = (int64)0;
    $count = (uint64)0;
    for ($k : 0..{unknown}) {
      if ($at >= args.ret || !in_memory(uptr($list + (uint64)$at + 17))) { break; }
      $at += *(uint16 *)uptr($list + (uint64)$at + 16);
      $count++;
    }
    if ($at >= args.ret) { printf("st:N %d %d", tid, $count); }
  }
)";

constexpr std::string_view kEntryAction = R"(
rawtracepoint:sys_enter {
  $id = (uint64)args.id;
  if ({wanted} && $id < {numbers} && {compat} == 0) {
    $regs = (uint64)args.regs;
    {body}
  }
}
)";

constexpr std::string_view kReturnAction = R"(
rawtracepoint:sys_exit {
  $regs = (uint64)args.regs;
  $id = *(uint64 *)kptr($regs + {number_offset}) & 0xffffffff;
  if ({wanted} && $id < {numbers} && {compat} == 0) {
    $failed = args.ret < 0 && args.ret >= -4095;
    {body}
  }
}
)";

constexpr std::string_view kHead = R"(
config = { max_strlen = {path}; print_maps_on_exit = false }
struct espy_strace_registers { unsigned long word[{words}]; }
fn least($a : uint64, $b : uint64) : uint64 { return $a < $b ? $a : $b; }
)";

constexpr std::string_view kEvents = R"(
rawtracepoint:sys_enter {
  $id = (uint64)args.id;
  if ({wanted}) {
    $registers = (struct espy_strace_registers *)args.regs;
    printf("st:E %d %d %d %d %d %d %d %d %d %d %d", tid, pid, nsecs, $id, {compat}, {argument_words});
  }
}
rawtracepoint:sys_exit {
  $registers = (struct espy_strace_registers *)args.regs;
  $id = (uint64)$registers->word[{number_word}] & 0xffffffff;
  if ({wanted}) { printf("st:X %d %d %d %d %d", tid, pid, nsecs, $id, args.ret); }
}
rawtracepoint:signal_deliver {
  printf("st:S %d %d %d %d %r", tid, pid, nsecs, args.sig, buf(args.info, 48));
}
rawtracepoint:signal_generate /args.result == 1 && (uint64)args.info > 1/ {
  printf("st:G %d %d %d %r", args.task.tgid, args.sig, nsecs, buf(args.info, 48));
}
rawtracepoint:sched_process_exit { printf("st:D %d %d %d %d", tid, pid, nsecs, curtask.exit_code); }
rawtracepoint:sched_process_exec { printf("st:R %d %d", args.old_pid, tid); }
)";

// A number is a bit of one of several words.
std::string wanted_condition(const CaptureWishes& wishes) {
  if (wishes.is_all) return "true";
  std::string word;
  for (uint32_t i = 0; i < CallTable::kNumbers; i += 64) {
    uint64_t bits = 0;
    for (uint32_t bit = 0; bit < 64; ++bit) bits |= uint64_t{wishes.calls[i + bit]} << bit;
    if (bits != 0) word += fmt::format("$id >> 6 == {} ? (uint64){:#x} : ", i / 64, bits);
  }
  return fmt::format("$id < {} && (({}(uint64)0) >> ($id & 63) & 1) == 1", CallTable::kNumbers, word);
}

std::string argument_words(const kernel::Arch& arch) {
  std::string out;
  for (size_t i = 0; i < 6; ++i)
    out += fmt::format("{}$registers->word[{}]", i > 0 ? ", " : "", arch.syscall_argument_offsets[i] / 8);
  return out;
}

// Where arguments are, and behind them the result.
std::string offset_table(const kernel::Arch& arch) {
  std::string out = "\"";
  for (size_t i = 0; i < 6; ++i) out += fmt::format("\\x{:02x}", arch.syscall_argument_offsets[i] + 1);
  return out + fmt::format("\\x{:02x}\"", arch.return_value_offset + 1);
}

// Whether the call is one of 32-bit code, whose numbers mean other calls.
std::string compat_condition(const kernel::Arch& arch) {
  if (arch.compat_call) {
    std::string out = "curtask";
    for (const std::string_view member : arch.compat_call->members) out += fmt::format(".{}", member);
    return fmt::format("(({} & {}) != 0 ? 1 : 0)", out, arch.compat_call->mask);
  }
  if (!arch.compat_task) return "0";
  return fmt::format("((*(uint64 *)kptr((uint64)args.regs + {}) & {}) == {} ? 1 : 0)", arch.compat_task->offset_bytes,
                     arch.compat_task->mask, arch.compat_task->value);
}

}  // namespace

std::string write_capture_script(const CallTable& table, const CaptureWishes& wishes) {
  Plan plan;
  for (uint32_t i = 0; i < CallTable::kNumbers; ++i)
    if (wishes.is_all || wishes.calls[i]) plan.add(table, i);
  const kernel::Arch& arch = table.arch();
  using Values = std::vector<std::pair<std::string, std::string>>;
  const auto number = [](uint64_t value) { return fmt::format("{}", value); };
  const Values common = {{"kReadPath", number(kReadPath)},
                         {"kReadText", number(kReadText)},
                         {"kReadBehind", number(kReadBehind)},
                         {"kReadBits", number(kReadBits)},
                         {"kReadAlways", number(kReadAlways)},
                         {"kReadVector", number(kReadVector)},
                         {"kReadMessage", number(kReadMessage)},
                         {"kReadTexts", number(kReadTexts)},
                         {"kReadEntries", number(kReadEntries)},
                         {"kReadCount", number(kReadCount)},
                         {"kMostShown", number(kMostShown)},
                         {"kNoCount", number(kNoCount)},
                         {"text", number(wishes.text_bytes)},
                         {"path", number(kMostPathBytes)},
                         {"elements", number(kMostElements)},
                         {"unknown", number(kUnknownCount)},
                         {"slots", number(kSlots)},
                         {"offsets", offset_table(arch)},
                         {"way", plan.table(&Slot::way)},
                         {"argument", plan.table(&Slot::argument)},
                         {"by", plan.table(&Slot::by)},
                         {"most", plan.table(&Slot::most)},
                         {"unit", plan.table(&Slot::unit)}};
  const auto filled = [&](std::string_view pattern, Values more) {
    std::string out(pattern);
    more.insert(more.end(), common.begin(), common.end());
    for (const auto& [name, value] : more) {
      const std::string key = "{" + name + "}";
      for (size_t at = out.find(key); at != std::string::npos; at = out.find(key, at + value.size()))
        out.replace(at, key.size(), value);
    }
    return out;
  };
  const Values of_run = {{"wanted", wanted_condition(wishes)},
                         {"compat", compat_condition(arch)},
                         {"numbers", number(CallTable::kNumbers)},
                         {"argument_words", argument_words(arch)},
                         {"words", number(arch.pt_regs_size_bytes / 8)},
                         {"number_offset", number(arch.syscall_number_offset)},
                         {"number_word", number(arch.syscall_number_offset / 8)}};
  const auto action = [&](std::string_view frame, std::string body) {
    Values values = of_run;
    values.insert(values.begin(), {"body", std::move(body)});
    return filled(frame, values);
  };
  const auto of_lists = [&](std::string_view pattern, const Plan::Lists& lists, std::string_view condition) {
    return filled(pattern, {{"list_way", Plan::literal(lists.way)},
                            {"list_argument", Plan::literal(lists.argument)},
                            {"list_by", Plan::literal(lists.by)},
                            {"if", std::string(condition)}});
  };
  std::string out = filled(kHead, of_run);
  if (wishes.has_memory) {
    const std::string of_entry =
        "$missing = (uint64)0;\n" + filled(kReadSlots, {{"class", plan.entry_table()}, {"skip", ""}});
    const std::string not_after_error = fmt::format("|| ($failed && $way != {})", number(kReadAlways));
    const std::string of_return =
        "$missing = (uint64)0;\n" + filled(kReadSlots, {{"class", plan.return_table()}, {"skip", not_after_error}});
    out += action(kEntryAction, of_entry + "if ($missing > 0) { @again[tid] = 1; }\n");
    if (plan.at_entry.has_vectors()) out += action(kEntryAction, of_lists(kReadVectors, plan.at_entry, "true"));
    if (plan.at_entry.has(kReadTexts)) out += action(kEntryAction, of_lists(kReadTextList, plan.at_entry, "true"));
    out += action(kReturnAction, "if (@again[tid] == 1) {\ndelete(@again, tid);\n" + of_entry + "}\n");
    out += action(kReturnAction, of_return);
    if (plan.at_return.has_vectors()) out += action(kReturnAction, of_lists(kReadVectors, plan.at_return, "!$failed"));
    if (plan.at_return.has(kReadEntries))
      out += action(kReturnAction, of_lists(kCountEntries, plan.at_return, "!$failed"));
  }
  return out + filled(kEvents, of_run);
}

}  // namespace espy::strace

#include "load/refusal.h"

#include <fmt/format.h>
#include <linux/bpf.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <string_view>
#include <utility>

#include "base/strings.h"

namespace espy::load {

namespace {

// Whether the line has the error message, rather than an instruction, a register state, a source line or a statistic.
bool is_message(std::string_view line) {
  constexpr std::string_view kOthers[] = {";", "processed ", "verification time", "stack depth", "from "};
  if (std::ranges::any_of(kOthers, [&](std::string_view each) { return line.starts_with(each); })) return false;
  // "R1 invalid mem access 'scalar'" and "R3 !read_ok" are messages, "R1=ctx() R10=fp0" is a state.
  return !line.starts_with('R') || line.find('=') == line.npos || line.find(" !read_ok") != line.npos;
}

}  // namespace

Refusal read_refusal(program::ProgramId program, std::string log, int code) {
  Refusal out{program, {}, std::move(log), 0, code, {}};
  for (std::string_view line : split(out.log, '\n')) {
    line = trim(line);
    if (line.empty()) continue;
    // "N: (code) ..."
    const size_t colon = line.find(": ");
    const auto number = colon == line.npos ? std::nullopt : parse_int(line.substr(0, colon));
    if (number) {
      out.insn = static_cast<uint32_t>(*number);
    } else if (is_message(line)) {
      out.sentence = line;
    }
  }
  return out;
}

bool is_by_verifier(const Refusal& refusal) {
  constexpr int kLacks[] = {EPERM, EMFILE, ENFILE, ENOMEM, EAGAIN, EINTR};
  return std::ranges::find(kLacks, refusal.code) == std::end(kLacks);
}

namespace {

bool has(std::string_view sentence, std::string_view part) { return sentence.find(part) != sentence.npos; }

// The verifier's limits: BPF_COMPLEXITY_LIMIT_INSNS, BPF_COMPLEXITY_LIMIT_JMP_SEQ.
bool is_too_long(const Refusal& refusal) {
  if (refusal.sentence.empty()) return refusal.code == E2BIG;
  return has(refusal.sentence, "program is too large") || has(refusal.sentence, "jumps is too complex");
}

// Before Linux 6.3 the kernel gives no reason.
bool has_too_many_maps(const Refusal& refusal, const program::BpfProgram& code) {
  constexpr size_t kMaxMaps = 64;  // MAX_USED_MAPS
  if (!refusal.sentence.empty()) return has(refusal.sentence, "number of maps per program");
  std::set<program::MapId> maps;
  for (const program::MapReference& reference : code.map_references) maps.insert(reference.map);
  return refusal.code == E2BIG && maps.size() > kMaxMaps;
}

// "unknown func bpf_probe_read_kernel#113", or "program of this type cannot use helper ...". Every kernel that espy
// runs on has these helpers, but lockdown takes them away.
bool is_locked_down(std::string_view sentence) {
  return has(sentence, "bpf_probe_read_kernel") &&
         (has(sentence, "unknown func") || has(sentence, "cannot use helper"));
}

struct LaterHelper {
  bpf_func_id helper;
  std::string_view name, release;
};

// "unknown func bpf_get_socket_cookie#46", or "invalid func unknown#208": the helper that the kernel lacks, for this
// type of program; null for other sentences.
const LaterHelper* missing_helper(std::string_view sentence) {
  static constexpr LaterHelper kRows[] = {
      {BPF_FUNC_get_socket_cookie, "get_socket_cookie", "5.12"},
      {BPF_FUNC_snprintf, "snprintf", "5.13"},
      {BPF_FUNC_task_pt_regs, "task_pt_regs", "5.15"},
      {BPF_FUNC_trace_vprintk, "trace_vprintk", "5.16"},
      {BPF_FUNC_strncmp, "strncmp", "5.17"},
      {BPF_FUNC_ktime_get_tai_ns, "ktime_get_tai_ns", "6.1"},
  };
  const size_t hash = sentence.find('#');
  if (hash == sentence.npos || !has(sentence, "func ")) return nullptr;
  const std::string_view number = sentence.substr(hash + 1);
  const auto helper = parse_int(number.substr(0, number.find_first_not_of("0123456789")));
  const auto* row =
      std::ranges::find_if(kRows, [&](const LaterHelper& each) { return helper == static_cast<int64_t>(each.helper); });
  return row == std::end(kRows) ? nullptr : row;
}

bool is_outside(std::string_view sentence) {
  constexpr std::string_view kReasons[] = {"invalid read from stack",         "invalid write to stack",
                                           "invalid variable-offset",         "invalid access to map value",
                                           "pointer arithmetic on map_value", "math between map_value pointer"};
  return std::ranges::any_of(kReasons, [&](std::string_view each) { return has(sentence, each); });
}

void report_bug(const Refusal& refusal, source::Span span, source::Diagnostics& diagnostics) {
  diagnostics.error("verifier", span,
                    "the kernel's verifier rejected this program: " +
                        (refusal.sentence.empty() ? "it gave no reason" : refusal.sentence),
                    "this is a bug in espy; --dump=verifier,bpf shows the whole log");
}

}  // namespace

RefusalReason reason_of(const Refusal& refusal, const program::BpfProgram& code) {
  if (has_too_many_maps(refusal, code)) return RefusalReason::kTooManyMaps;
  if (is_too_long(refusal)) return RefusalReason::kTooLong;
  if (refusal.missing_feature) return RefusalReason::kMissingFeature;
  if (is_locked_down(refusal.sentence)) return RefusalReason::kLockedDown;
  if (missing_helper(refusal.sentence) != nullptr) return RefusalReason::kMissingHelper;
  return is_outside(refusal.sentence) ? RefusalReason::kOutside : RefusalReason::kOther;
}

source::Span span_of(const Refusal& refusal, const program::BpfProgram& code) {
  // Before Linux 6.4 a log that is too long lacks its end, where the instruction would be: the first line stands for
  // it.
  source::Span out = code.first_span();
  for (const program::LineInfo& line : code.lines)
    if (line.insn <= refusal.insn) out = line.span;
  return out;
}

void report_refusal(const Refusal& refusal, const program::BpfProgram& code, bool takes_addresses,
                    source::Diagnostics& diagnostics) {
  const source::Span span = span_of(refusal, code);
  switch (reason_of(refusal, code)) {
    case RefusalReason::kTooManyMaps:
      diagnostics.error("too-many-maps", span, "the kernel lets a program use 64 maps, some of which espy needs itself",
                        "keep several values in one map, with their name as a part of the key");
      break;
    case RefusalReason::kTooLong: break;
    case RefusalReason::kMissingFeature:
      diagnostics.error("kernel-lacks", span, kernel::missing_feature(*refusal.missing_feature, "this"));
      break;
    case RefusalReason::kLockedDown:
      diagnostics.error("lockdown", span,
                        "the kernel's lockdown (confidentiality) forbids this: it reads memory of the kernel",
                        "arguments, the memory of processes, stacks, counting and printing work");
      break;
    case RefusalReason::kMissingHelper: {
      const LaterHelper& missing = *missing_helper(refusal.sentence);
      diagnostics.error(
          "kernel-lacks", span,
          fmt::format("this kernel lacks the helper `{}` (Linux {}) for probes of this type, which this needs",
                      missing.name, missing.release));
      break;
    }
    case RefusalReason::kOutside:
      if (!takes_addresses) return report_bug(refusal, span, diagnostics);
      diagnostics.error("pointer-outside", span,
                        "this may be outside of the variable, or of the element of a map, whose address was taken",
                        "`&` gives a pointer to one value: `*p` and `p->member` work");
      break;
    case RefusalReason::kOther: report_bug(refusal, span, diagnostics); break;
  }
}

}  // namespace espy::load

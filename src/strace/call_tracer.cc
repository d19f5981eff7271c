#include "strace/call_tracer.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/byte_reader.h"
#include "base/strings.h"
#include "strace/capture_script.h"

namespace espy::strace {

namespace {

constexpr size_t kResultColumn = 40;
constexpr uint64_t kNsPerUs = 1000, kUsPerSecond = 1'000'000;

bool makes_process(std::string_view call) {
  return call == "clone" || call == "clone3" || call == "fork" || call == "vfork";
}

}  // namespace

std::string_view CallTracer::Fields::bytes(size_t index) const {
  const program::EventField& field = schema.fields[index];
  const std::string_view all(reinterpret_cast<const char*>(record.data()), record.size());
  size_t offset = field.offset_bytes, size = all.size();
  if (field.is_in_tail) {
    offset = load_le(record, field.offset_bytes, 4);
    size = load_le(record, field.offset_bytes + 4, 4);
  } else {  // a buffer of a known size
    size = load_le(record, offset, 4);
    offset += 4;
  }
  return all.substr(std::min(offset, all.size()), size);
}

std::string_view CallTracer::Fields::text(size_t index) const {
  const program::EventField& field = schema.fields[index];
  const std::string_view all(reinterpret_cast<const char*>(record.data()), record.size());
  const std::string_view found = field.is_in_tail ? bytes(index) : all.substr(field.offset_bytes);
  return found.substr(0, found.find('\0'));
}

CallTracer::CallTracer(const CallTable& table, const CallFilter& filter, const Style& style, LineOptions options,
                       output::Writer& out, int64_t wall_offset_ns)
    : filter_(filter), decoder_(table, style), options_(options), out_(out), wall_offset_ns_(wall_offset_ns) {}

CallTracer::Mark CallTracer::mark_of(const program::EventSchema& schema) {
  const auto [known, is_new] = marks_.try_emplace(&schema, Mark::kNone);
  if (!is_new || schema.literals.empty()) return known->second;
  constexpr std::pair<std::string_view, Mark> kMarks[] = {
      {kEnterMark, Mark::kEnter},     {kLeaveMark, Mark::kLeave},     {kTextMark, Mark::kText},
      {kBytesMark, Mark::kBytes},     {kCountedMark, Mark::kCounted}, {kSignalMark, Mark::kSignal},
      {kIgnoredMark, Mark::kIgnored}, {kEndedMark, Mark::kEnded},     {kRenamedMark, Mark::kRenamed}};
  for (const auto& [text, mark] : kMarks)
    if (schema.literals[0].starts_with(text)) known->second = mark;
  return known->second;
}

CallTracer::Thread& CallTracer::thread_of(uint32_t tid, uint32_t pid) {
  Thread& thread = threads_[tid];
  if (pid != 0) {
    thread.pid = pid;
    processes_.insert(pid);
  }
  return thread;
}

// The command's process belongs to espy until its execve(), which may be a call that is not shown.
bool CallTracer::is_before_command(uint32_t tid, const Fields& fields, Mark mark) {
  if (waiting_child_ == 0) return false;
  if (mark == Mark::kRenamed && fields.id(1) == waiting_child_) waiting_child_ = 0;
  if (tid != waiting_child_) return false;
  if (mark == Mark::kEnter) {
    CallState call;
    call.number = fields.word(3);
    if (decoder_.name_of(call) == "execve") waiting_child_ = 0;
    if (waiting_child_ != 0) threads_[tid].incoming = {};
  }
  return waiting_child_ != 0 && (mark == Mark::kEnter || mark == Mark::kLeave || mark == Mark::kSignal);
}

bool CallTracer::take(const program::EventSchema& schema, std::span<const std::byte> record,
                      runtime::RecordDecoder& decoder) {
  const Mark mark = mark_of(schema);
  if (mark == Mark::kNone) return false;
  const Fields fields{schema, record, decoder};
  const uint32_t tid = fields.id(0);
  if (is_before_command(tid, fields, mark)) return true;
  if (new_lost_ > 0) {
    interrupt_line(0);
    if (options_.has_lines) {
      out_.write(fmt::format("espy: {} records were lost here\n", new_lost_));
    }
    new_lost_ = 0;
  }
  switch (mark) {
    case Mark::kEnter: enter(tid, fields); break;
    case Mark::kLeave: leave(tid, fields); break;
    case Mark::kText: {
      const std::string_view text = fields.text(3);
      const bool is_failed = text.empty() && fields.number(2) != 0;
      if (!is_failed) threads_[tid].incoming.add_text(fields.word(1), text);
      break;
    }
    case Mark::kBytes: threads_[tid].incoming.add_bytes(fields.word(1), fields.bytes(2)); break;
    case Mark::kCounted: threads_[tid].incoming_count = fields.word(1); break;
    case Mark::kSignal: take_signal(tid, fields); break;
    case Mark::kIgnored: take_ignored(fields); break;
    case Mark::kEnded: take_end(tid, fields); break;
    case Mark::kRenamed: take_rename(fields); break;
    case Mark::kNone: break;
  }
  return true;
}

void CallTracer::lost(uint64_t count) {
  lost_ += count;
  new_lost_ += count;
}

// ---- Calls

void CallTracer::enter(uint32_t tid, const Fields& fields) {
  Thread& thread = thread_of(tid, fields.id(1));
  if (thread.call && thread.is_shown) {  // its return was lost
    interrupt_line(0);
    thread.call.reset();
  }
  CallState& call = thread.call.emplace();
  call.began_ns = fields.word(2);
  call.number = fields.word(3);
  call.is_compat = fields.number(4) != 0;
  call.count = std::exchange(thread.incoming_count, std::nullopt).value_or(kUnknownCount);
  call.call = call.is_compat ? nullptr : decoder_.row_of_call(call.number);
  for (size_t i = 0; i < 6; ++i) call.arguments[i] = fields.word(5 + i);
  call.memory = std::exchange(thread.incoming, {});
  thread.is_shown = false;
  const bool waits_for_result = !filter_.shows_successful || !filter_.shows_failed;
  if (options_.has_lines && !waits_for_result) show_call_start(tid, thread);
}

void CallTracer::show_call_start(uint32_t tid, Thread& thread) {
  interrupt_line(tid);
  open_line(tid, thread.call->began_ns);
  if (options_.has_number) line_ += fmt::format("[{:4}] ", thread.call->number);
  decoder_.show_name(*thread.call, line_);
  decoder_.show_arguments(*thread.call, line_);
  thread.is_shown = true;
}

void CallTracer::leave(uint32_t tid, const Fields& fields) {
  Thread& thread = thread_of(tid, fields.id(1));
  const uint64_t now_ns = fields.word(2), number = fields.word(3);
  CallMemory later = std::exchange(thread.incoming, {});
  const int64_t result = fields.number(4);
  // rt_sigreturn() restores the registers of the interrupted code, its number included.
  const bool is_restored = thread.call && decoder_.name_of(*thread.call) == "rt_sigreturn";
  if (!thread.call || (thread.call->number != number && !is_restored)) {
    CallState call;
    call.number = number;
    const std::string name = decoder_.name_of(call);
    // A process begins with the return of the call that has made it; others began before espy, or their begin was lost.
    const bool is_of_child = makes_process(name) && result == 0;
    thread.call.reset();
    if (is_of_child || !options_.has_lines) return;
    std::string text = fmt::format("<... {} resumed>) ", name);
    fill_up(text, 0, kResultColumn);
    call.has_returned = true;
    call.result = result;
    text += "= ";
    decoder_.show_result(call, text);
    whole_line(tid, now_ns, text);
    return show_ignored(tid, thread.pid);
  }
  CallState& call = *thread.call;
  call.memory.add_at_return(std::move(later));
  call.count = std::exchange(thread.incoming_count, std::nullopt).value_or(call.count);
  call.has_returned = true;
  call.result = result;
  count(call, now_ns);
  const bool is_wanted = call.has_failed() ? filter_.shows_failed : filter_.shows_successful;
  if (options_.has_lines && is_wanted) show_left(tid, thread, now_ns);
  const bool is_new_process = result > 0 && makes_process(decoder_.name_of(call));
  thread.call.reset();
  const uint32_t pid = thread.pid;
  if (is_new_process) thread_of(static_cast<uint32_t>(result), 0);
  show_ignored(tid, pid);
}

void CallTracer::show_left(uint32_t tid, Thread& thread, uint64_t now_ns) {
  CallState& call = *thread.call;
  if (!thread.is_shown) {
    show_call_start(tid, thread);
  } else {
    if (open_tid_ != tid) {
      interrupt_line(tid);
      open_line(tid, now_ns);
      if (options_.has_number) line_ += fmt::format("[{:4}] ", call.number);
      line_ += fmt::format("<... {} resumed>", decoder_.name_of(call));
    }
    decoder_.show_arguments(call, line_);
  }
  line_ += ") ";
  fill_up(line_, 0, kResultColumn);
  line_ += "= ";
  decoder_.show_result(call, line_);
  if (options_.has_duration) {
    const uint64_t us = (now_ns - call.began_ns) / kNsPerUs;
    line_ += fmt::format(" <{}.{:06}>", us / kUsPerSecond, us % kUsPerSecond);
  }
  close_line();
}

// ---- Signals and ends

void CallTracer::take_signal(uint32_t tid, const Fields& fields) {
  thread_of(tid, fields.id(1));
  if (!filter_.shows_signals || !options_.has_lines) return;
  const auto signal = static_cast<int>(fields.number(3));
  constexpr int kKill = 9;
  if (signal == kKill) return;
  signal_line(tid, fields.word(2), signal, fields.bytes(4));
}

// strace shows these, because the kernel keeps no signal from the tracer of ptrace(2).
void CallTracer::take_ignored(const Fields& fields) {
  const uint32_t pid = fields.id(0);
  if (!filter_.shows_signals || !options_.has_lines || !processes_.contains(pid) || !threads_.contains(pid)) return;
  ignored_[pid].push_back({static_cast<int>(fields.number(1)), std::string(fields.bytes(3)), fields.word(2)});
  if (!threads_[pid].call) show_ignored(pid, pid);
}

void CallTracer::show_ignored(uint32_t tid, uint32_t pid) {
  if (tid != pid) return;
  const auto found = ignored_.find(pid);
  if (found == ignored_.end()) return;
  for (const Ignored& each : std::exchange(found->second, {})) signal_line(tid, each.at_ns, each.signal, each.info);
  ignored_.erase(pid);
}

void CallTracer::take_end(uint32_t tid, const Fields& fields) {
  const uint32_t pid = fields.id(1);
  Thread& thread = thread_of(tid, pid);
  const auto code = static_cast<uint32_t>(fields.number(3));
  const uint32_t signal = code & 0x7f, status = code >> 8 & 0xff;
  constexpr uint32_t kDumped = 0x80;
  if (thread.call && options_.has_lines && filter_.shows_unfinished) {
    if (!thread.is_shown) show_call_start(tid, thread);
    if (open_tid_ != tid) {
      interrupt_line(tid);
      open_line(tid, fields.word(2));
      line_ += fmt::format("<... {} resumed>", decoder_.name_of(*thread.call));
    }
    line_ += ") ";
    fill_up(line_, 0, kResultColumn);
    line_ += "= ?";
    close_line();
  }
  if (thread.call) count(*thread.call, fields.word(2));
  if (tid == child_pid_) exit_status_ = signal != 0 ? 128 + static_cast<int>(signal) : static_cast<int>(status);
  if (options_.has_lines && options_.quiet == 0)
    whole_line(tid, fields.word(2),
               signal != 0 ? fmt::format("+++ killed by {}{} +++", decoder_.signal_name(signal),
                                         code & kDumped ? " (core dumped)" : "")
                           : fmt::format("+++ exited with {} +++", status));
  threads_.erase(tid);
  ignored_.erase(tid);
}

// execve() in a thread gives it the number of the first one.
void CallTracer::take_rename(const Fields& fields) {
  const uint32_t before = fields.id(0), after = fields.id(1);
  if (before == after) return;
  auto moved = threads_.extract(before);
  if (moved.empty()) return;
  Thread thread = std::move(moved.mapped());
  if (options_.has_lines && thread.is_shown && thread.call) {
    interrupt_line(0);
    whole_line(after, thread.call->began_ns, fmt::format("+++ superseded by execve in pid {} +++", before));
  }
  threads_[after] = std::move(thread);
}

// ---- Lines

std::string CallTracer::prefix(uint32_t tid, uint64_t at_ns) {
  std::string out;
  if (options_.has_file)
    out += fmt::format("{:<5} ", tid);
  else if (threads_.size() > 1)
    out += fmt::format("[pid {:5}] ", tid);
  if (options_.has_relative_time) {
    const uint64_t us = last_line_ns_ == 0 || at_ns < last_line_ns_ ? 0 : (at_ns - last_line_ns_) / kNsPerUs;
    out += fmt::format("{:6}.{:06} ", us / kUsPerSecond, us % kUsPerSecond);
  }
  last_line_ns_ = at_ns;
  if (options_.clock == Clock::kNone) return out;
  const auto wall_us = (at_ns + static_cast<uint64_t>(wall_offset_ns_)) / kNsPerUs;
  const auto seconds = static_cast<time_t>(wall_us / kUsPerSecond);
  if (options_.clock == Clock::kEpoch) return out + fmt::format("{}.{:06} ", seconds, wall_us % kUsPerSecond);
  tm parts = {};
  ::localtime_r(&seconds, &parts);
  out += fmt::format("{:02}:{:02}:{:02}", parts.tm_hour, parts.tm_min, parts.tm_sec);
  if (options_.clock == Clock::kMicroseconds) out += fmt::format(".{:06}", wall_us % kUsPerSecond);
  return out + ' ';
}

void CallTracer::open_line(uint32_t tid, uint64_t at_ns) {
  line_ = prefix(tid, at_ns);
  written_ = 0;
  open_tid_ = tid;
}

void CallTracer::close_line() {
  line_ += '\n';
  out_.write(std::string_view(line_).substr(written_));
  line_.clear();
  written_ = 0;
  open_tid_ = 0;
}

void CallTracer::interrupt_line(uint32_t tid) {
  if (open_tid_ == 0 || open_tid_ == tid) return;
  line_ += " <unfinished ...>";
  close_line();
}

void CallTracer::whole_line(uint32_t tid, uint64_t at_ns, std::string_view text) {
  interrupt_line(0);
  open_line(tid, at_ns);
  line_ += text;
  close_line();
}

void CallTracer::signal_line(uint32_t tid, uint64_t at_ns, int signal, std::string_view info) {
  std::string text = "--- ";
  decoder_.show_signal(signal, info, text);
  whole_line(tid, at_ns, text + " ---");
}

Status CallTracer::batch_end() {
  if (open_tid_ != 0) {  // what a thread waits for
    out_.write(std::string_view(line_).substr(written_));
    written_ = line_.size();
  }
  out_.batch_end();
  return out_.status();
}

Status CallTracer::finish(std::span<const std::string>) {
  interrupt_line(0);
  if (options_.has_summary) show_summary();
  out_.flush();
  return out_.status();
}

// ---- The summary

void CallTracer::count(const CallState& call, uint64_t now_ns) {
  if (!options_.has_summary) return;
  Count& count = counts_[decoder_.name_of(call)];
  ++count.calls;
  if (call.has_failed()) ++count.errors;
  count.total_ns += now_ns - call.began_ns;
}

void CallTracer::show_summary() {
  std::vector<std::pair<std::string, Count>> rows(counts_.begin(), counts_.end());
  const auto by = [&](const auto& key) {
    std::ranges::stable_sort(rows, [&](const auto& a, const auto& b) { return key(a.second) > key(b.second); });
  };
  switch (options_.sort) {
    case Sort::kTime: by([](const Count& each) { return each.total_ns; }); break;
    case Sort::kCalls: by([](const Count& each) { return each.calls; }); break;
    case Sort::kErrors: by([](const Count& each) { return each.errors; }); break;
    case Sort::kAverage: by([](const Count& each) { return each.total_ns / std::max<uint64_t>(each.calls, 1); }); break;
    case Sort::kName: break;
  }
  Count total;
  for (const auto& [name, each] : rows) {
    total.calls += each.calls;
    total.errors += each.errors;
    total.total_ns += each.total_ns;
  }
  const std::string rule = "------ ----------- ----------- --------- --------- ----------------\n";
  out_.write("% time     seconds  usecs/call     calls    errors syscall\n" + rule);
  const auto row = [&](const std::string& name, const Count& each) {
    const double share =
        total.total_ns == 0 ? 0 : 100.0 * static_cast<double>(each.total_ns) / static_cast<double>(total.total_ns);
    const std::string errors = each.errors == 0 ? "" : fmt::format("{}", each.errors);
    out_.write(fmt::format("{:6.2f} {:11.6f} {:11} {:9} {:>9} {}\n", share, static_cast<double>(each.total_ns) / 1e9,
                           each.total_ns / std::max<uint64_t>(each.calls, 1) / kNsPerUs, each.calls, errors, name));
  };
  for (const auto& [name, each] : rows) row(name, each);
  out_.write(rule);
  row("total", total);
}

}  // namespace espy::strace

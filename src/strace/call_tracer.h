// CallTracer: from the records of the script to lines, or to a summary.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "output/sink.h"
#include "runtime/event_dispatcher.h"
#include "strace/call_decoder.h"
#include "strace/call_filter.h"

namespace espy::strace {

enum class Clock : uint8_t { kNone, kSeconds, kMicroseconds, kEpoch };  // -t, -tt, -ttt

enum class Sort : uint8_t { kTime, kCalls, kErrors, kName, kAverage };

struct LineOptions {
  Clock clock = Clock::kNone;
  bool has_relative_time = false;  // -r
  bool has_duration = false;       // -T
  bool has_number = false;         // -n
  bool has_file = false;           // -o: each line begins with the thread
  bool has_lines = true;           // not with -c
  bool has_summary = false;        // -c, -C
  Sort sort = Sort::kTime;         // -S
  uint32_t quiet = 0;              // -q: 1: no ends of threads
};

class CallTracer final : public runtime::RecordTap {
 public:
  // The references must outlive the tracer. `wall_offset_ns`: the time of day minus the time of records.
  CallTracer(const CallTable& table, const CallFilter& filter, const Style& style, LineOptions options,
             output::Writer& out, int64_t wall_offset_ns);

  // The process of the command. What it does before execve() is espy's.
  void begin_with(uint32_t child_pid) { child_pid_ = waiting_child_ = child_pid; }
  // Threads that are there already.
  void note_thread(uint32_t tid, uint32_t pid) { thread_of(tid, pid); }

  bool take(const program::EventSchema& schema, std::span<const std::byte> record,
            runtime::RecordDecoder& decoder) override;
  void lost(uint64_t count) override;
  Status batch_end() override;
  Status finish(std::span<const std::string> incomplete) override;

  // The exit status of the command, as a shell has it. nullopt: its end was not seen.
  std::optional<int> exit_status() const { return exit_status_; }
  uint64_t lost() const { return lost_; }
  uint64_t missing() const { return decoder_.missing(); }

 private:
  struct Thread {
    uint32_t pid = 0;
    std::optional<CallState> call;
    bool is_shown = false;  // the beginning of the call is in the output
    CallMemory incoming;    // of the next record of the thread
    std::optional<uint64_t> incoming_count;
  };
  struct Count {
    uint64_t calls = 0, errors = 0, total_ns = 0;
  };
  // A signal that the process ignores, until the process returns from a call.
  struct Ignored {
    int signal;
    std::string info;
    uint64_t at_ns;
  };
  enum class Mark : uint8_t { kNone, kEnter, kLeave, kText, kBytes, kCounted, kSignal, kIgnored, kEnded, kRenamed };
  // A record's fields.
  struct Fields {
    const program::EventSchema& schema;
    std::span<const std::byte> record;
    runtime::RecordDecoder& decoder;
    int64_t number(size_t index) const { return decoder.integer(schema.fields[index], record); }
    uint64_t word(size_t index) const { return static_cast<uint64_t>(number(index)); }
    uint32_t id(size_t index) const { return static_cast<uint32_t>(number(index)); }
    std::string_view bytes(size_t index) const;  // a buffer
    std::string_view text(size_t index) const;
  };

  Mark mark_of(const program::EventSchema& schema);
  Thread& thread_of(uint32_t tid, uint32_t pid);
  bool is_before_command(uint32_t tid, const Fields& fields, Mark mark);

  void enter(uint32_t tid, const Fields& fields);
  void leave(uint32_t tid, const Fields& fields);
  void show_left(uint32_t tid, Thread& thread, uint64_t now_ns);
  void take_signal(uint32_t tid, const Fields& fields);
  void take_ignored(const Fields& fields);
  void show_ignored(uint32_t tid, uint32_t pid);
  void take_end(uint32_t tid, const Fields& fields);
  void take_rename(const Fields& fields);
  void count(const CallState& call, uint64_t now_ns);
  void show_summary();

  // ---- Lines. At most one is open: of a call that has not returned.
  void open_line(uint32_t tid, uint64_t at_ns);
  void close_line();
  void interrupt_line(uint32_t tid);  // ends an open line of another thread
  void whole_line(uint32_t tid, uint64_t at_ns, std::string_view text);
  // `info`: the siginfo_t of the signal.
  void signal_line(uint32_t tid, uint64_t at_ns, int signal, std::string_view info);
  std::string prefix(uint32_t tid, uint64_t at_ns);
  void show_call_start(uint32_t tid, Thread& thread);

  const CallFilter& filter_;
  Decoder decoder_;
  LineOptions options_;
  output::Writer& out_;
  int64_t wall_offset_ns_;
  std::unordered_map<const program::EventSchema*, Mark> marks_;
  std::map<uint32_t, Thread> threads_;
  std::map<uint32_t, std::vector<Ignored>> ignored_;  // by process
  std::set<uint32_t> processes_;                      // that were traced
  std::string line_;                                  // the open line
  size_t written_ = 0;                                // of it
  uint32_t open_tid_ = 0;                             // whose; 0: none is open
  uint64_t last_line_ns_ = 0;
  std::map<std::string, Count> counts_;
  uint32_t child_pid_ = 0, waiting_child_ = 0;
  std::optional<int> exit_status_;
  uint64_t lost_ = 0, new_lost_ = 0;
};

}  // namespace espy::strace

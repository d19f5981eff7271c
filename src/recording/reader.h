// Reader: the events of a recording, in the order in which they were written. The file may be truncated, damaged or
// hostile: sizes are limited, and unreadable parts are skipped and described.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_reader.h"
#include "base/result.h"
#include "base/untrusted_file.h"
#include "recording/encoding.h"
#include "recording/recording.h"
#include "recording/writer.h"

namespace espy::recording {

struct Event {
  uint32_t probe = 0;  // in Description::probes
  uint64_t time_ns = 0;
  uint32_t cpu = 0;
  const Task* task =
      nullptr;  // until the next call of Reader::next; null: no event, but the time has come, or is_paused()
  std::vector<Value> values;  // of the fields of its layout; texts and stacks until the next call
};

class Reader {
 public:
  // Fails if the file is not a recording, or its description cannot be read.
  static Result<Reader> open(const std::string& path);
  // The same for files of one ring (recording/writer.h), in any order; their events follow each other. A path without a
  // file is the name of a ring: the readable files of its last run.
  static Result<Reader> open(const std::vector<std::string>& paths);

  const Description& description() const { return description_; }

  // Skips events before and after, and the blocks without others. CLOCK_BOOTTIME.
  void select_time(uint64_t from_ns, uint64_t to_ns);

  // next() also gives times up to which the recording has all events, if it has such marks.
  void tell_times() { tells_times_ = true; }

  // The file is being written, or the ring of this name. `wait` waits until there is more, and returns false if the
  // writer has ended.
  void follow(std::function<bool()> wait) {
    wait_ = std::move(wait);
    is_followed_ = true;
  }
  bool is_paused() const { return is_paused_; }  // the next call of next() waits

  // When the selected time begins.
  uint64_t begin_ns() const { return std::max(from_ns_, description_.started_ns); }

  // Returns false if there are no more events. Unreadable parts are skipped.
  bool next(Event& event);

  uint64_t lost_count() const { return lost_count_; }  // events lost while they were recorded, so far
  // Once `next` has returned false:
  uint64_t last_ns() const { return std::min(last_ns_, to_ns_); }  // the end, or the time of the latest event
  bool is_complete() const { return has_end_; }                    // the recording was finished
  // The names of the addresses in the stacks so far, as far as they fit in memory.
  const FrameNames& names() const { return names_; }
  // Sentences of the recorder about missing events.
  const std::vector<std::string>& incomplete() const { return incomplete_; }
  // What could not be read so far, a sentence each.
  const std::vector<std::string>& damages() const { return damages_; }

 private:
  explicit Reader(UntrustedFile file) : file_(std::move(file)) {}
  Result<std::string> read_description();
  void use_ring(const std::vector<RingFile>& files);
  bool open_next_file();
  bool find_later_file();
  void read_end(const BlockHeader& header);
  std::optional<BlockHeader> next_header();
  std::optional<BlockHeader> whole_header();
  bool is_next(const BlockHeader& header);
  bool next_block();
  bool next_block_of_file();
  bool read_item(Event& event);
  bool read_event(uint64_t probe, Event& event);
  void read_task();
  void read_place();
  void read_stack();
  bool read_value(const Field& field, Value& value);
  bool is_possible(uint64_t time_ns) const;
  void take_memory(uint64_t bytes);
  void give_up_block(const std::string& why);
  void keep_names(const Place& place, std::vector<Frame> frames);

  UntrustedFile file_;
  Description description_;
  std::vector<std::string> later_files_;  // of the ring
  size_t opened_files_ = 0;               // of these
  std::string ring_name_;                 // if it was opened by its name
  uint64_t ring_number_ = 0;              // of the file that is being read
  uint64_t offset_ = 0;                   // of the next block
  uint64_t from_ns_ = 0, to_ns_ = UINT64_MAX;

  bool tells_times_ = false;
  std::optional<uint64_t> told_ns_;  // the time of the block, which has no events
  std::function<bool()> wait_;       // empty: the file is whole
  bool is_followed_ = false;
  bool is_paused_ = false;

  std::string payload_;
  uint64_t block_offset_ = 0;
  uint32_t block_number_ = 0;  // of the last one
  uint32_t events_left_ = 0;   // from the header of the block
  ByteReader cursor_;          // in the payload
  uint64_t time_ns_ = 0;
  std::vector<Task> tasks_;
  std::vector<uint64_t> places_;  // addresses
  std::vector<std::vector<uint64_t>> stacks_;
  uint64_t taken_bytes_ = 0;  // of memory, by the tasks, places and stacks of the block
  FrameNames names_;
  uint64_t names_bytes_ = 0;   // of memory
  uint64_t stored_bytes_ = 0;  // of the payloads that were read
  bool has_left_out_names_ = false;

  uint64_t lost_count_ = 0;
  std::vector<std::string> incomplete_;
  uint64_t last_ns_ = 0;
  bool has_end_ = false;    // the file
  bool continues_ = false;  // in another file of the ring, from its end
  std::vector<std::string> damages_;
};

}  // namespace espy::recording

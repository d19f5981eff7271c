// Writer: events to a file, in blocks that are written once they are full or flushed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "recording/encoding.h"
#include "recording/recording.h"

namespace espy::recording {

class Writer {
 public:
  // Creates the file, which may exist and be overwritten, with its description.
  static Result<Writer> create(const std::string& path, const Description& description);
  // Takes an empty file; `path` is for messages.
  static Result<Writer> begin(OwnedFd file, const std::string& path, const Description& description);
  // Ends the file, at the time of its latest event, and continues in another one.
  Status continue_in(OwnedFd file, const std::string& path, const Description& description);

  // A stack of the next event, innermost first. `names` gives the frames of one of its places. Returns what add_stack()
  // takes until the next flush.
  uint64_t note_stack(std::span<const Place> stack, const std::function<std::vector<Frame>(size_t index)>& names);

  // The names of an address in the values of the next event. Returns its number in the block.
  uint64_t note_place(const Place& place, const std::function<std::vector<Frame>()>& names);

  // An event: the begin, its fields in the order of its layout, the end. Times may go back a little, from one CPU to
  // another.
  void begin_event(uint32_t probe, uint64_t time_ns, uint32_t cpu, const Task& task);
  void add_number(int64_t value);
  void add_text(std::string_view text);  // and bytes
  void add_stack(uint64_t noted) { append_unsigned(noted); }
  Status end_event();
  // Events were lost since the last one.
  void note_lost(uint64_t count);

  // Writes that all events so far have been written, as a block without events. Requires that none is buffered.
  Status mark_time(uint64_t now_ns);
  // Writes the buffer as a block.
  Status flush();
  // Writes the last block, without which a recording counts as cut off: also where a block could not be written.
  // `now_ns`: CLOCK_BOOTTIME. `incomplete`: sentences about missing data in the events, such as failed reads.
  Status finish(uint64_t now_ns, std::span<const std::string> incomplete = {});

  // Blocks are written once they have so many bytes, before compression.
  void set_block_bytes(size_t bytes) { block_bytes_ = bytes; }
  size_t block_bytes() const { return block_bytes_; }

  // So far, in all files.
  uint64_t block_count() const { return block_count_; }
  uint64_t event_count() const { return event_count_; }
  uint64_t lost_count() const { return lost_count_; }
  uint64_t total_bytes() const { return ended_bytes_ + file_bytes_; }
  bool has_buffered() const { return !buffer_.empty(); }

  // The size of the current file, including the buffer.
  struct Extent {
    uint64_t event_count = 0;
    uint64_t first_ns = 0, last_ns = 0;  // the earliest and the latest event
  };
  const Extent& extent() const { return extent_; }
  uint64_t file_bytes() const { return file_bytes_; }

 private:
  Writer() = default;
  Status start(OwnedFd file, const std::string& path, const Description& description);
  Status put(std::string_view bytes);
  Status write_end(uint64_t now_ns, std::span<const std::string> incomplete);
  Status write_block(BlockKind kind, std::string_view raw);
  uint32_t task_number(const Task& task);
  void append_unsigned(uint64_t value);

  OwnedFd file_;
  std::string path_;
  bool has_failed_ = false;
  size_t block_bytes_ = 256 << 10;
  Extent extent_;
  std::string buffer_;
  BlockHeader header_;
  uint64_t last_time_ns_ = 0;
  // Tasks are numbered anew in each block, which can so be read alone. By thread: its last number, and what it was.
  struct Known {
    uint32_t number = 0;
    Task task;
  };
  std::unordered_map<uint32_t, Known> tasks_;
  uint32_t task_count_ = 0;
  std::unordered_map<Place, uint64_t, HashPlace> places_;  // numbers, like the numbers of tasks
  std::map<std::vector<uint64_t>, uint64_t> stacks_;       // by the numbers of their places
  uint64_t block_count_ = 0;
  uint64_t event_count_ = 0;
  uint64_t lost_count_ = 0;
  uint32_t file_blocks_ = 0;
  uint64_t file_bytes_ = 0;   // up to the last block that is wholly there
  uint64_t ended_bytes_ = 0;  // of the files before
};

// ---- FileRing: a recording in a ring of files, NAME.000001, NAME.000002 and so on, of which the oldest are deleted.
//
// Each file is a recording of its own. Numbers only grow, so that no file is ever renamed or written again, and a
// recorder that is killed leaves all of them as they are. Only files that this object has created are deleted.

struct RingLimits {
  uint64_t file_bytes = 0;  // a file ends before it is larger, unless a single block is; 0: no limit
  uint64_t file_count = 0;  // files that are kept; 0: all
  uint64_t age_ns = 0;      // files whose latest event is older are deleted; 0: none

  bool has_any() const { return file_bytes > 0 || age_ns > 0; }
};

class FileRing {
 public:
  // `name` is a path that leads to nothing. Numbers continue after the existing files.
  static Result<FileRing> make(const std::string& name, const RingLimits& limits, const Description& description);

  // Returns the writer of the first file.
  Result<Writer> begin();
  // Turns to the next file, if it is time to, and deletes old files. Call it when a block was written, and now and
  // then. `now_ns`: CLOCK_BOOTTIME.
  Status turn(Writer& writer, uint64_t now_ns);

  // The oldest and the newest file that were kept.
  const std::string& first_path() const { return files_.front().path; }
  const std::string& last_path() const { return files_.back().path; }

 private:
  // A file of this run; the device and the inode distinguish it from another one of its name.
  struct File {
    std::string path;
    dev_t device = 0;
    ino_t inode = 0;
    uint64_t last_ns = 0;  // its latest event
  };

  explicit FileRing(const Description& description) : description_(description) {}
  bool is_over(const Writer& writer, uint64_t now_ns) const;
  Result<OwnedFd> create_next();
  Status delete_oldest();

  Description description_;  // of the current file
  RingLimits limits_;
  std::string name_;  // the path without a number
  OwnedFd directory_;
  std::deque<File> files_;  // the last one is being written
};

// A file of a ring that is there.
struct RingFile {
  uint64_t number = 0;
  std::string path;
};

// The files of that name with a number, by number.
std::vector<RingFile> find_ring_files(const std::string& name);

}  // namespace espy::recording

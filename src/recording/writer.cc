#include "recording/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/output_file.h"
#include "recording/encoding.h"

namespace espy::recording {

Result<Writer> Writer::create(const std::string& path, const Description& description) {
  return begin(TRY(open_output(path, O_WRONLY | O_CREAT | O_TRUNC, 0600)), path, description);
}

Result<Writer> Writer::begin(OwnedFd file, const std::string& path, const Description& description) {
  Writer out;
  TRY_STATUS(out.start(std::move(file), path, description));
  return out;
}

Status Writer::start(OwnedFd file, const std::string& path, const Description& description) {
  file_ = std::move(file);
  path_ = path;
  file_bytes_ = 0;
  file_blocks_ = 0;
  extent_ = {};
  std::string head(kFileMagic);
  head.append(reinterpret_cast<const char*>(&kVersion), sizeof(kVersion));
  head.resize(kFileHeaderBytes);
  TRY_STATUS(put(head));
  return write_block(BlockKind::kDescription, encode(description));
}

Status Writer::continue_in(OwnedFd file, const std::string& path, const Description& description) {
  TRY_STATUS(flush());
  header_.probes = 1;
  TRY_STATUS(write_end(extent_.last_ns, {}));
  ended_bytes_ += file_bytes_;
  return start(std::move(file), path, description);
}

void Writer::begin_event(uint32_t probe, uint64_t time_ns, uint32_t cpu, const Task& task) {
  const uint32_t number = task_number(task);
  if (header_.event_count == 0) {
    header_.first_ns = header_.last_ns = time_ns;
    last_time_ns_ = 0;
  }
  append_uleb128(buffer_, kFirstProbeTag + probe);
  append_sleb128(buffer_, static_cast<int64_t>(time_ns - last_time_ns_));
  append_uleb128(buffer_, cpu);
  append_uleb128(buffer_, number);
  last_time_ns_ = time_ns;
  header_.first_ns = std::min(header_.first_ns, time_ns);
  header_.last_ns = std::max(header_.last_ns, time_ns);
  header_.probes |= uint64_t{1} << probe % 64;
  ++header_.event_count;
  extent_.first_ns = extent_.event_count == 0 ? time_ns : std::min(extent_.first_ns, time_ns);
  extent_.last_ns = std::max(extent_.last_ns, time_ns);
  ++extent_.event_count;
  ++event_count_;
}

uint64_t Writer::note_stack(std::span<const Place> stack,
                            const std::function<std::vector<Frame>(size_t index)>& names) {
  std::vector<uint64_t> numbers;
  for (size_t i = 0; i < stack.size(); ++i) numbers.push_back(note_place(stack[i], [&] { return names(i); }));
  const auto [at, is_new] = stacks_.try_emplace(numbers, stacks_.size() + 1);
  if (!is_new) return at->second;
  append_unsigned(kStackTag);
  append_unsigned(numbers.size());
  for (const uint64_t number : numbers) append_unsigned(number);
  return at->second;
}

uint64_t Writer::note_place(const Place& place, const std::function<std::vector<Frame>()>& names) {
  const auto [at, is_new] = places_.try_emplace(place, places_.size());
  if (!is_new) return at->second;
  for (const uint64_t number : {kPlaceTag, uint64_t{place.pid}, uint64_t{place.is_caller}, place.address})
    append_unsigned(number);
  const std::vector<Frame> frames = names();
  append_unsigned(frames.size());
  for (const Frame& frame : frames) append_frame(buffer_, frame);
  return at->second;
}

void Writer::append_unsigned(uint64_t value) { append_uleb128(buffer_, value); }
void Writer::add_number(int64_t value) { append_sleb128(buffer_, value); }
void Writer::add_text(std::string_view text) { append_text(buffer_, text); }

Status Writer::end_event() { return buffer_.size() < block_bytes_ ? Status() : flush(); }

void Writer::note_lost(uint64_t count) {
  append_uleb128(buffer_, kLostTag);
  append_uleb128(buffer_, count);
  lost_count_ += count;
}

uint32_t Writer::task_number(const Task& task) {
  const auto [at, is_new] = tasks_.try_emplace(task.tid);
  Known& known = at->second;
  if (!is_new && known.task == task) return known.number;
  known = {task_count_++, task};
  append_uleb128(buffer_, kTaskTag);
  for (const uint32_t number : {task.pid, task.tid, task.uid, task.gid}) append_unsigned(number);
  append_unsigned(task.cgroup);
  append_text(buffer_, task.comm);
  append_unsigned(task.parents.size());
  for (const Parent& parent : task.parents) {
    append_unsigned(parent.pid);
    append_text(buffer_, parent.comm);
  }
  return known.number;
}

Status Writer::mark_time(uint64_t now_ns) {
  header_.first_ns = header_.last_ns = now_ns;
  return write_block(BlockKind::kEvents, "");
}

Status Writer::flush() {
  if (buffer_.empty()) return {};
  const Status written = write_block(BlockKind::kEvents, buffer_);
  buffer_.clear();
  header_ = {};
  tasks_.clear();
  task_count_ = 0;
  places_.clear();
  stacks_.clear();
  return written;
}

Status Writer::finish(uint64_t now_ns, std::span<const std::string> incomplete) {
  TRY_STATUS(flush());
  return write_end(now_ns, incomplete);
}

Status Writer::write_end(uint64_t now_ns, std::span<const std::string> incomplete) {
  if (has_failed_) return {};
  header_.first_ns = header_.last_ns = now_ns;
  std::string payload;
  for (const std::string& sentence : incomplete) append_text(payload, sentence);
  return write_block(BlockKind::kEnd, payload);
}

// A block is complete or, if its end is missing, not there.
Status Writer::write_block(BlockKind kind, std::string_view raw) {
  header_.kind = kind;
  header_.number = ++file_blocks_;
  const std::string stored = compress(raw, header_);
  const auto header = encode(header_);
  std::string bytes(header.data(), header.size());
  bytes += stored;
  ++block_count_;
  header_ = {};
  return put(bytes);
}

// What was written of a block without room for all of it is taken away again.
Status Writer::put(std::string_view bytes) {
  if (has_failed_) return {};
  const Status done = write_all(file_.get(), bytes);
  if (done) {
    file_bytes_ += bytes.size();
    return {};
  }
  has_failed_ = true;
  // Of what is no regular file, nothing can be taken away.
  [[maybe_unused]] const int cut = ::ftruncate(file_.get(), static_cast<off_t>(file_bytes_));
  return fail_errno("cannot write to " + path_, done.error().code);
}

}  // namespace espy::recording

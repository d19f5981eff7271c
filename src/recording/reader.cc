#include "recording/reader.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "recording/encoding.h"

namespace espy::recording {

namespace {

constexpr size_t kMaxDamages = 100;  // that are described one by one

// Linux has fewer; a map of programs has a value for each.
constexpr uint32_t kMaxCpus = 8192;
constexpr uint32_t kMaxPageBytes = 1 << 20;

// From the begin of a recording to its last event.
constexpr uint64_t kMaxLengthNs = 10 * 366ULL * 24 * 3600 * 1'000'000'000;

// Payloads of zeros are 255 times as large as they are stored, and have items that take 20 times their size in memory.
// A writer's blocks, of 256 KiB, remain far below.
constexpr uint64_t kMaxTakenBytes = 64 << 20;  // by the items of a block
// By the names of addresses, which are kept to the end: those of processes that come and go take 11 times the size of
// the file.
constexpr uint64_t kMaxNamesBytes = 256 << 20;
constexpr uint64_t kNamesBytesPerStored = 32;

uint64_t memory_of(const std::vector<Frame>& frames) {
  constexpr uint64_t kNodeBytes = sizeof(FrameNames::value_type) + 2 * sizeof(void*);
  uint64_t out = kNodeBytes + frames.size() * sizeof(Frame);
  for (const Frame& frame : frames) out += frame.symbol.size() + frame.module.size() + frame.file.size();
  return out;
}

Status check(const Description& description, const std::string& path) {
  const auto refuse = [&](std::string_view what) {
    return fail(fmt::format("{} is damaged: {}", path, what), kRefusedFile);
  };
  if (description.cpu_count == 0 || description.cpu_count > kMaxCpus) return refuse("it names no number of CPUs");
  if (!std::has_single_bit(description.page_size_bytes) || description.page_size_bytes > kMaxPageBytes)
    return refuse("it names no size of pages");
  return {};
}

}  // namespace

Result<Reader> Reader::open(const std::string& path) {
  Reader out(TRY(open_untrusted(path, INT64_MAX)));
  const std::string head = TRY(out.file_.read_at(0, kFileHeaderBytes));
  if (head.size() < kFileHeaderBytes || !head.starts_with(kFileMagic))
    return fail(path + " is not a recording of espy", kRefusedFile, "`espy record -o FILE PROBE` makes one");
  const uint64_t version = load_le(head, kFileMagic.size(), 4);
  if (version > kVersion)
    return fail_later_format(path + " is a recording", version,
                             static_cast<uint32_t>(load_le(head, kFileMagic.size() + 4, 4)));
  if (version != kVersion)
    return fail(fmt::format("{} is a recording of version {}, and this espy reads version {}", path, version, kVersion),
                kRefusedFile);
  out.offset_ = kFileHeaderBytes;
  const auto description = decode_description(TRY(out.read_description()));
  if (!description) return fail(path + " is damaged: its description cannot be read", kRefusedFile);
  out.description_ = *description;
  out.ring_number_ = description->ring_number;
  TRY_STATUS(check(out.description_, path));
  return out;
}

// ---- Rings of files

namespace {

bool are_of_one_run(const Description& one, const Description& other) {
  Description as_other = one;
  as_other.started_ns = other.started_ns;
  as_other.started_wall_ns = other.started_wall_ns;
  as_other.ring_number = other.ring_number;
  return as_other == other;
}

// Where each file is in a ring.
struct Places {
  std::vector<RingFile> files;
  std::vector<uint64_t> runs;  // ring_id of each
  std::vector<std::string> damages;
};

Status add_file(const std::string& path, bool is_named, Places& out) {
  const auto reader = Reader::open(path);
  if (!reader && is_named) return tl::unexpected(reader.error());
  if (!reader) {
    out.damages.push_back(reader.error().message);
    return {};
  }
  const Description& description = reader->description();
  if (description.ring_id == 0)
    return fail(path + " is a recording by itself: only files of one ring can be read together", 0,
                "run the script over each recording: -i FILE");
  out.files.push_back({description.ring_number, path});
  out.runs.push_back(description.ring_id);
  return {};
}

}  // namespace

Result<Reader> Reader::open(const std::vector<std::string>& paths) {
  if (paths.size() == 1 && ::access(paths[0].c_str(), F_OK) == 0) return open(paths[0]);
  Places places;
  bool is_last_run = true;
  for (const std::string& path : paths) {
    const std::vector<RingFile> ring =
        ::access(path.c_str(), F_OK) == 0 ? std::vector<RingFile>() : find_ring_files(path);
    is_last_run &= !ring.empty();
    for (const RingFile& file : ring) TRY_STATUS(add_file(file.path, false, places));
    if (ring.empty()) TRY_STATUS(add_file(path, true, places));
  }
  if (places.files.empty()) return fail(places.damages.front(), kRefusedFile);
  const auto newest = std::ranges::max_element(places.files, {}, &RingFile::number) - places.files.begin();
  const uint64_t run = places.runs[static_cast<size_t>(newest)];
  std::vector<RingFile> files;
  for (size_t i = 0; i < places.files.size(); ++i) {
    if (places.runs[i] == run)
      files.push_back(places.files[i]);
    else if (!is_last_run)
      return fail(
          fmt::format("{} is of another run than {}", places.files[i].path, files.empty() ? paths[0] : files[0].path),
          0, "run the script over each recording: -i FILE");
  }
  std::ranges::sort(files, {}, &RingFile::number);
  Reader out = TRY(open(files[0].path));
  out.damages_ = std::move(places.damages);
  if (paths.size() == 1) out.ring_name_ = paths[0];
  out.use_ring(files);
  return out;
}

// `files`: by number; the first one is open.
void Reader::use_ring(const std::vector<RingFile>& files) {
  for (size_t i = 1; i < files.size(); ++i) {
    if (files[i].number == files[i - 1].number) continue;
    if (const uint64_t missing = files[i].number - files[i - 1].number - 1; missing > 0)
      damages_.push_back(fmt::format("files of the ring that are missing before {}: {}", files[i].path, missing));
    later_files_.push_back(files[i].path);
  }
}

// Of a ring that is being written: one that its writer has begun since. Its description may be on the way.
bool Reader::find_later_file() {
  if (opened_files_ < later_files_.size()) return true;
  if (ring_name_.empty() || !is_followed_) return false;
  for (const RingFile& file : find_ring_files(ring_name_)) {
    if (file.number <= ring_number_ || !open(file.path)) continue;
    if (file.number > ring_number_ + 1 && damages_.size() < kMaxDamages)
      damages_.push_back(
          fmt::format("files of the ring that were deleted before they were read: {}", file.number - ring_number_ - 1));
    later_files_.push_back(file.path);
    return true;
  }
  return false;
}

// Goes on with the next file of the ring that can be read; false if there is none.
bool Reader::open_next_file() {
  if (has_end_) find_later_file();
  while (opened_files_ < later_files_.size()) {
    const std::string& path = later_files_[opened_files_++];
    auto next = open(path);
    if (next && !are_of_one_run(next->description_, description_))
      next = fail(path + " does not describe the same events as the files before");
    if (!next) {
      if (damages_.size() < kMaxDamages) damages_.push_back(next.error().message);
      continue;
    }
    if (!has_end_) damages_.push_back(file_.path + " was cut off");
    has_end_ = continues_ = false;
    block_number_ = next->block_number_;
    file_ = std::move(next->file_);
    offset_ = next->offset_;
    ring_number_ = next->description_.ring_number;
    return true;
  }
  const bool is_ring = !ring_name_.empty() || !later_files_.empty();
  if (is_ring && !is_followed_ && std::exchange(continues_, false) && damages_.size() < kMaxDamages)
    damages_.push_back(fmt::format("the files of the ring after {} are missing", file_.path));
  return false;
}

Result<std::string> Reader::read_description() {
  const auto header = next_header();
  if (!header || header->kind != BlockKind::kDescription)
    return fail(file_.path + " ends before its description, or is damaged there", kRefusedFile);
  auto raw = decompress(TRY(file_.read_at(block_offset_ + kBlockHeaderBytes, header->stored_bytes)), *header);
  if (!raw)
    return fail(fmt::format("{} is damaged: its description: {}", file_.path, raw.error().message), kRefusedFile);
  return raw;
}

void Reader::select_time(uint64_t from_ns, uint64_t to_ns) {
  from_ns_ = from_ns;
  to_ns_ = to_ns;
}

// Waits for the next block, if there is to be one.
std::optional<BlockHeader> Reader::next_header() {
  for (;;) {
    const size_t damages_before = damages_.size();
    const auto header = whole_header();
    const bool is_over = has_end_ && (ring_name_.empty() || find_later_file());
    if (header || !wait_ || is_over || damages_.size() > damages_before) {
      is_paused_ = false;
      return header;
    }
    if (!std::exchange(is_paused_, true)) return std::nullopt;
    if (!wait_()) wait_ = nullptr;  // what was written last is still to be read
    struct stat status = {};
    if (::fstat(file_.fd.get(), &status) == 0) file_.size_bytes = static_cast<uint64_t>(status.st_size);
  }
}

// The header of the next block that is wholly there; moves behind the block. nullopt at the end of the file.
std::optional<BlockHeader> Reader::whole_header() {
  for (;;) {
    const auto bytes = file_.read_at(offset_, kBlockHeaderBytes);
    if (!bytes || bytes->empty()) return std::nullopt;
    const auto header = decode_header(*bytes);
    const uint64_t end = offset_ + kBlockHeaderBytes + (header ? header->stored_bytes : 0);
    if (!header && bytes->size() == kBlockHeaderBytes)
      damages_.push_back(fmt::format("at byte {} there is no block: espy skipped the rest of the file", offset_));
    if (!header || end > file_.size_bytes) return std::nullopt;  // cut off: the block was being written
    block_offset_ = offset_;
    offset_ = end;
    if (is_next(*header)) return header;
  }
}

// Whether the block comes next by its number. Notes blocks that are missing, double or behind the end.
bool Reader::is_next(const BlockHeader& header) {
  const auto note = [&](std::string damage) {
    if (damages_.size() < kMaxDamages) damages_.push_back(std::move(damage));
  };
  if (header.number == 0 && !has_end_) return true;
  if (has_end_ || header.number <= block_number_) {
    note(fmt::format("the block at byte {} does not belong there: {} events skipped", block_offset_,
                     header.event_count));
    return false;
  }
  if (const uint32_t missing = header.number - block_number_ - 1; missing > 0)
    note(fmt::format("blocks that are missing before byte {}: {}", block_offset_, missing));
  block_number_ = header.number;
  return true;
}

bool Reader::next_block() {
  do {
    if (next_block_of_file()) return true;
  } while (open_next_file());
  return false;
}

bool Reader::next_block_of_file() {
  while (const auto header = next_header()) {
    if (header->kind == BlockKind::kEnd) read_end(*header);
    events_left_ = header->event_count;
    if (!is_possible(header->last_ns)) {
      give_up_block("its time makes no sense");
      continue;
    }
    last_ns_ = std::max(last_ns_, header->last_ns);
    if (header->kind != BlockKind::kEvents) continue;
    const bool is_wanted = header->event_count == 0 || (header->last_ns >= from_ns_ && header->first_ns <= to_ns_);
    if (!is_wanted) continue;
    cursor_ = {};
    tasks_.clear();
    places_.clear();
    stacks_.clear();
    taken_bytes_ = 0;
    time_ns_ = 0;
    if (header->raw_bytes == 0 && tells_times_) told_ns_ = header->last_ns;
    stored_bytes_ += header->stored_bytes;
    const auto stored = file_.read_at(block_offset_ + kBlockHeaderBytes, header->stored_bytes);
    auto raw = stored ? decompress(*stored, *header) : Result<std::string>(fail("it cannot be read"));
    if (!raw) {
      give_up_block(raw.error().message);
      continue;
    }
    payload_ = std::move(*raw);
    cursor_ = ByteReader(payload_);
    return true;
  }
  return false;
}

void Reader::read_end(const BlockHeader& header) {
  constexpr uint32_t kMostBytes = 1 << 16;
  constexpr size_t kMostSentences = 16;
  has_end_ = true;
  continues_ = (header.probes & 1) != 0;
  if (header.raw_bytes == 0 || header.raw_bytes > kMostBytes || header.stored_bytes > kMostBytes) return;
  const auto stored = file_.read_at(block_offset_ + kBlockHeaderBytes, header.stored_bytes);
  const auto raw = stored ? decompress(*stored, header) : Result<std::string>(fail("it cannot be read"));
  if (!raw) return give_up_block(raw.error().message);
  ByteReader reader(*raw);
  while (!reader.at_end() && incomplete_.size() < kMostSentences) {
    const std::string_view sentence = take_text(reader);
    if (!reader.ok()) return give_up_block("its content makes no sense");
    incomplete_.emplace_back(sentence);
  }
}

bool Reader::is_possible(uint64_t time_ns) const {
  return time_ns <= description_.started_ns || time_ns - description_.started_ns <= kMaxLengthNs;
}

void Reader::give_up_block(const std::string& why) {
  if (damages_.size() < kMaxDamages)
    damages_.push_back(
        fmt::format("the block at byte {} is damaged, {}: {} events skipped", block_offset_, why, events_left_));
  cursor_ = {};
}

bool Reader::next(Event& event) {
  for (;;) {
    while (!cursor_.at_end())
      if (read_item(event) && event.time_ns >= from_ns_ && event.time_ns <= to_ns_) return true;
    if (!next_block()) {
      event.task = nullptr;
      event.time_ns = 0;
      return is_paused_;
    }
    if (const auto told_ns = std::exchange(told_ns_, std::nullopt); told_ns && *told_ns <= to_ns_) {
      event.task = nullptr;
      event.time_ns = *told_ns;
      return true;
    }
  }
}

// Returns whether the item is an event.
bool Reader::read_item(Event& event) {
  const uint64_t tag = cursor_.take_uleb128();
  bool is_event = false;
  if (tag == kTaskTag) {
    read_task();
  } else if (tag == kPlaceTag) {
    read_place();
  } else if (tag == kStackTag) {
    read_stack();
  } else if (tag == kLostTag) {
    lost_count_ += cursor_.take_uleb128();
  } else {
    is_event = read_event(tag - kFirstProbeTag, event);
    if (!is_event) cursor_.fail();
  }
  if (!cursor_.ok()) {
    give_up_block("its content makes no sense");
    return false;
  }
  if (is_event && events_left_ > 0) --events_left_;
  return is_event;
}

// For an item of the block.
void Reader::take_memory(uint64_t bytes) {
  taken_bytes_ += bytes;
  if (taken_bytes_ > kMaxTakenBytes) cursor_.fail();
}

void Reader::read_task() {
  Task task;
  for (uint32_t* number : {&task.pid, &task.tid, &task.uid, &task.gid})
    *number = static_cast<uint32_t>(cursor_.take_uleb128());
  task.cgroup = cursor_.take_uleb128();
  task.comm = take_text(cursor_);
  const uint64_t parents = cursor_.take_uleb128();
  if (parents > kMaxParents) return cursor_.fail();
  take_memory(sizeof(Task) + parents * sizeof(Parent));
  for (uint64_t left = parents; left > 0 && cursor_.ok(); --left) {
    Parent& parent = task.parents.emplace_back();
    parent.pid = static_cast<uint32_t>(cursor_.take_uleb128());
    parent.comm = take_text(cursor_);
  }
  tasks_.push_back(std::move(task));
}

void Reader::read_place() {
  Place place;
  place.pid = static_cast<uint32_t>(cursor_.take_uleb128());
  place.is_caller = cursor_.take_uleb128() != 0;
  place.address = cursor_.take_uleb128();
  const uint64_t count = cursor_.take_uleb128();
  if (count > kMaxFrames) return cursor_.fail();
  take_memory(sizeof(place.address));
  std::vector<Frame> frames;
  frames.reserve(count);
  for (uint64_t left = count; left > 0 && cursor_.ok(); --left) frames.push_back(take_frame(cursor_));
  places_.push_back(place.address);
  if (cursor_.ok()) keep_names(place, std::move(frames));
}

// Without their names, addresses are shown as numbers.
void Reader::keep_names(const Place& place, std::vector<Frame> frames) {
  const uint64_t more = memory_of(frames);
  const auto known = names_.find(place);
  const uint64_t less = known != names_.end() ? memory_of(known->second) : 0;
  if (names_bytes_ - less + more > kMaxNamesBytes + kNamesBytesPerStored * stored_bytes_) {
    if (!std::exchange(has_left_out_names_, true))
      damages_.push_back(
          fmt::format("{}: the names of its addresses take too much memory; espy skips the names "
                      "from the block at byte {} on",
                      file_.path, block_offset_));
    return;
  }
  names_bytes_ += more - less;
  names_.insert_or_assign(place, std::move(frames));
}

void Reader::read_stack() {
  std::vector<uint64_t> stack;
  const uint64_t count = cursor_.take_uleb128();
  if (count > cursor_.remaining_bytes()) return cursor_.fail();
  take_memory(sizeof(std::vector<uint64_t>) + count * sizeof(uint64_t));
  stack.reserve(cursor_.ok() ? count : 0);
  for (uint64_t left = count; left > 0 && cursor_.ok(); --left) {
    const uint64_t place = cursor_.take_uleb128();
    if (place >= places_.size()) return cursor_.fail();
    stack.push_back(places_[place]);
  }
  stacks_.push_back(std::move(stack));
}

bool Reader::read_event(uint64_t probe, Event& event) {
  if (probe >= description_.probes.size()) return false;
  event.probe = static_cast<uint32_t>(probe);
  time_ns_ += static_cast<uint64_t>(cursor_.take_sleb128());
  event.time_ns = time_ns_;
  if (!is_possible(time_ns_)) return false;
  const uint64_t cpu = cursor_.take_uleb128();
  const uint64_t task = cursor_.take_uleb128();
  if (cpu >= description_.cpu_count || task >= tasks_.size()) return false;
  event.cpu = static_cast<uint32_t>(cpu);
  event.task = &tasks_[task];
  const std::vector<Field>& fields = description_.layout_of(event.probe).fields;
  event.values.resize(fields.size());
  for (size_t i = 0; i < fields.size(); ++i)
    if (!read_value(fields[i], event.values[i])) return false;
  return cursor_.ok();
}

bool Reader::read_value(const Field& field, Value& value) {
  value = {};
  switch (field.kind) {
    case FieldKind::kNumber: value.number = cursor_.take_sleb128(); break;
    case FieldKind::kText:
    case FieldKind::kChars:
    case FieldKind::kBytes: value.text = take_text(cursor_); break;
    case FieldKind::kStack: {
      const uint64_t stack = cursor_.take_uleb128();
      if (stack > stacks_.size()) return false;
      if (stack > 0) value.stack = stacks_[stack - 1];
      break;
    }
    case FieldKind::kNothing: break;
  }
  return true;
}

}  // namespace espy::recording

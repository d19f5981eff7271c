#include "recording/writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "base/files.h"
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
  head.append(reinterpret_cast<const char*>(&kReadableSince), sizeof(kReadableSince));
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

namespace {

constexpr int kDigits = 6;          // of a number, at least
constexpr uint64_t kAgeParts = 10;  // an age is cut into so many files
constexpr size_t kLeastBlocks = 4;  // in a file of a limited size
constexpr int kMostTries = 1000;    // to create a file

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }
std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? "." : path.substr(0, slash + 1);
}

// The number of a file of a ring, or 0.
uint64_t number_in(std::string_view file, std::string_view name) {
  if (!file.starts_with(name)) return 0;
  const std::string_view rest = file.substr(name.size());
  if (rest.size() < 1 + kDigits || rest[0] != '.') return 0;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), number);
  return error == std::errc() && end == rest.data() + rest.size() ? number : 0;
}

}  // namespace

std::vector<RingFile> find_ring_files(const std::string& name) {
  std::vector<RingFile> out;
  const std::string directory = directory_of(name), base = base_name(name);
  std::error_code error;
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string file = it->path().filename().string();
    if (const uint64_t number = number_in(file, base); number > 0)
      out.push_back({number, name.substr(0, name.size() - base.size()) + file});
  }
  std::ranges::sort(out, {}, &RingFile::number);
  return out;
}

Result<FileRing> FileRing::make(const std::string& name, const RingLimits& limits, const Description& description) {
  if (::access(name.c_str(), F_OK) == 0)
    return fail(fmt::format("{} exists, and `espy -i` would read it instead of {}.000001 and the like", name, name), 0,
                "choose another name, or remove it");
  FileRing out(description);
  out.name_ = name;
  out.limits_ = limits;
  out.directory_ = OwnedFd(::open(directory_of(name).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!out.directory_.valid()) return fail_errno("cannot write to " + name, errno);
  const std::vector<RingFile> there = find_ring_files(name);
  out.description_.ring_id = std::max<uint64_t>(description.started_wall_ns, 1);
  out.description_.ring_number = there.empty() ? 0 : there.back().number;
  return out;
}

Result<Writer> FileRing::begin() {
  OwnedFd file = TRY(create_next());
  Writer out = TRY(Writer::begin(std::move(file), files_.back().path, description_));
  if (limits_.file_bytes > 0)
    out.set_block_bytes(std::min<size_t>(out.block_bytes(), limits_.file_bytes / kLeastBlocks));
  return out;
}

// Neither follows a link nor opens what is there.
Result<OwnedFd> FileRing::create_next() {
  for (int tries = 0;; ++tries) {
    ++description_.ring_number;
    const std::string path = fmt::format("{}.{:0{}}", name_, description_.ring_number, kDigits);
    OwnedFd file(::openat(directory_.get(), base_name(path).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file.valid() && errno == EEXIST && tries < kMostTries) continue;
    struct stat status = {};
    if (!file.valid() || ::fstat(file.get(), &status) != 0) return fail_errno("cannot create " + path, errno);
    files_.push_back({path, status.st_dev, status.st_ino, 0});
    return file;
  }
}

Status FileRing::delete_oldest() {
  const File file = files_.front();
  files_.pop_front();
  struct stat status = {};
  const std::string name = base_name(file.path);
  if (::fstatat(directory_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return {};
  if (!S_ISREG(status.st_mode) || status.st_dev != file.device || status.st_ino != file.inode) return {};
  if (::unlinkat(directory_.get(), name.c_str(), 0) != 0 && errno != ENOENT)
    return fail_errno("cannot delete " + file.path, errno);
  return {};
}

bool FileRing::is_over(const Writer& writer, uint64_t now_ns) const {
  const Writer::Extent& extent = writer.extent();
  if (extent.event_count == 0) return false;
  if (limits_.file_bytes > 0 && writer.file_bytes() + writer.block_bytes() > limits_.file_bytes) return true;
  return limits_.age_ns > 0 && now_ns > extent.first_ns && now_ns - extent.first_ns >= limits_.age_ns / kAgeParts;
}

Status FileRing::turn(Writer& writer, uint64_t now_ns) {
  if (is_over(writer, now_ns)) {
    files_.back().last_ns = writer.extent().last_ns;
    const uint64_t passed_ns = files_.back().last_ns - description_.started_ns;
    description_.started_ns += passed_ns;
    description_.started_wall_ns += passed_ns;
    while (limits_.file_count > 0 && files_.size() >= limits_.file_count) TRY_STATUS(delete_oldest());
    OwnedFd next = TRY(create_next());
    TRY_STATUS(writer.continue_in(std::move(next), files_.back().path, description_));
  }
  while (limits_.age_ns > 0 && files_.size() > 1 && files_.front().last_ns + limits_.age_ns < now_ns)
    TRY_STATUS(delete_oldest());
  return {};
}

}  // namespace espy::recording

#include "recording/file_ring.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>

namespace espy::recording {

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

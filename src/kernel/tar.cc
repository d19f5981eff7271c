#include "kernel/tar.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/end_request.h"
#include "base/untrusted_file.h"

namespace espy::kernel {

namespace {

constexpr size_t kBlockBytes = 512;
constexpr size_t kNameBytes = 100, kPrefixBytes = 155;
constexpr uint64_t kMaxArchiveBytes = 256 << 20;
constexpr uint32_t kMaxFiles = 20'000;  // a kernel has some thousands
constexpr int kMaxParts = 8;            // of a path
constexpr uint64_t kMaxSeconds = 20;

// The header of a file, in a block. Numbers are octal text.
struct TarHeader {
  char name[kNameBytes], mode[8], uid[8], gid[8], size[12], time[12], checksum[8], type, link[100], magic[6],
      version[2], user[32], group[32], major[8], minor[8], prefix[kPrefixBytes], unused[12];
};
static_assert(sizeof(TarHeader) == kBlockBytes);
constexpr char kRegular = '0';

// The sum of the bytes, with spaces for the checksum itself.
uint32_t checksum_of(TarHeader header) {
  std::memset(header.checksum, ' ', sizeof(header.checksum));
  std::array<unsigned char, kBlockBytes> bytes;
  std::memcpy(bytes.data(), &header, sizeof(header));
  uint32_t sum = 0;
  for (const unsigned char byte : bytes) sum += byte;
  return sum;
}

template <size_t kSize>
void put(char (&field)[kSize], std::string_view text) {
  std::memcpy(field, text.data(), std::min(text.size(), kSize));
}

template <size_t kSize>
std::string_view text_of(const char (&field)[kSize]) {
  return {field, ::strnlen(field, kSize)};
}

std::optional<uint64_t> octal(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\0')) text.remove_suffix(1);
  uint64_t out = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '7') return std::nullopt;
    out = out * 8 + static_cast<uint64_t>(digit - '0');
  }
  return out;
}

uint64_t padding_after(uint64_t size_bytes) { return (kBlockBytes - size_bytes % kBlockBytes) % kBlockBytes; }

// Relative, not deep, without empty components, "." and "..".
bool is_plain(std::string_view path) {
  for (int parts = 1; parts <= kMaxParts; ++parts) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == path.npos) return true;
    path.remove_prefix(slash + 1);
  }
  return false;
}

class Unpacker {
 public:
  Unpacker(const std::string& path, gzFile stream, const std::string& directory, uint64_t limit_bytes)
      : path_(path), stream_(stream), directory_(directory), left_bytes_(limit_bytes) {}

  Status run() {
    const uint64_t until_ns = monotonic_ns() + kMaxSeconds * 1'000'000'000;
    for (uint32_t files = 0;; ++files) {
      TarHeader header;
      TRY_STATUS(read(&header, sizeof(header)));
      if (header.name[0] == '\0') return {};  // the first of the two blocks that end an archive
      if (files == kMaxFiles) return damaged(fmt::format("it has more than {} files", kMaxFiles));
      if (monotonic_ns() > until_ns) return damaged(fmt::format("it takes more than {} s to unpack", kMaxSeconds));
      TRY_STATUS(unpack(header));
    }
  }

 private:
  tl::unexpected<Error> damaged(std::string_view what) const {
    return fail(fmt::format("{} is not a snapshot of a kernel: {}", path_, what), kRefusedFile,
                "`espy snapshot > FILE` writes one");
  }

  Status read(void* to, uint64_t size_bytes) {
    const int got = ::gzread(stream_, to, static_cast<unsigned>(size_bytes));
    if (got < 0) return damaged("it is damaged");
    if (static_cast<uint64_t>(got) != size_bytes) return damaged("it ends early");
    return {};
  }

  Status unpack(const TarHeader& header) {
    const std::string prefix(text_of(header.prefix));
    const std::string name = (prefix.empty() ? "" : prefix + "/") + std::string(text_of(header.name));
    const auto size = octal({header.size, sizeof(header.size)});
    const auto checksum = octal(text_of(header.checksum));
    if (!size || checksum != checksum_of(header)) return damaged("it is no tar archive");
    if (header.type != kRegular || !is_plain(name)) return damaged("it has more than plain files");
    if (*size > left_bytes_) return damaged("it is too large");
    left_bytes_ -= *size;
    std::string content(*size + padding_after(*size), '\0');
    TRY_STATUS(read(content.data(), content.size()));
    content.resize(*size);
    return write_file(name, content);
  }

  Status write_file(const std::string& name, std::string_view content) {
    for (size_t slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1))
      ::mkdir((directory_ + "/" + name.substr(0, slash)).c_str(), 0700);
    const std::string path = directory_ + "/" + name;
    const OwnedFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.valid() || ::write(file.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()))
      return fail_errno("cannot write " + path, errno);
    return {};
  }

  const std::string& path_;
  gzFile stream_;
  const std::string& directory_;
  uint64_t left_bytes_;
};

}  // namespace

Result<TarWriter> TarWriter::create(int fd) {
  OwnedFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  gzFile stream = copy.valid() ? ::gzdopen(copy.get(), "wb6") : nullptr;
  if (stream == nullptr) return fail_errno("cannot write the archive", errno);
  copy.release();  // closed with the stream
  return TarWriter(stream);
}

TarWriter::TarWriter(TarWriter&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}

TarWriter::~TarWriter() {
  if (stream_ != nullptr) ::gzclose(static_cast<gzFile>(stream_));
}

Status TarWriter::write(std::string_view bytes) {
  errno = 0;
  if (bytes.empty() || ::gzwrite(static_cast<gzFile>(stream_), bytes.data(), static_cast<unsigned>(bytes.size())) > 0)
    return {};
  return fail_errno("cannot write the archive", errno);
}

Status TarWriter::add(std::string_view path, std::string_view content) {
  TarHeader header = {};
  const size_t slash = path.size() > kNameBytes ? path.rfind('/') : path.npos;
  if (slash != path.npos) put(header.prefix, path.substr(0, slash));
  put(header.name, slash == path.npos ? path : path.substr(slash + 1));
  put(header.mode, "0000644");
  put(header.uid, "0000000");
  put(header.gid, "0000000");
  put(header.size, fmt::format("{:011o}", content.size()));
  put(header.time, "00000000000");
  header.type = kRegular;
  put(header.magic, "ustar");
  put(header.version, "00");
  put(header.checksum, fmt::format("{:06o}", checksum_of(header)));
  header.checksum[7] = ' ';
  std::string block(sizeof(header), '\0');
  std::memcpy(block.data(), &header, sizeof(header));
  TRY_STATUS(write(block));
  TRY_STATUS(write(content));
  return write(std::string(padding_after(content.size()), '\0'));
}

Status TarWriter::finish() {
  TRY_STATUS(write(std::string(2 * kBlockBytes, '\0')));
  errno = 0;
  if (::gzclose(static_cast<gzFile>(std::exchange(stream_, nullptr))) != Z_OK)
    return fail_errno("cannot write the archive", errno);
  return {};
}

Status unpack_tar(const std::string& path, const std::string& directory, uint64_t limit_bytes) {
  UntrustedFile file = TRY(open_untrusted(path, kMaxArchiveBytes));
  gzFile stream = ::gzdopen(file.fd.get(), "rb");
  if (stream == nullptr) return fail_errno("cannot read " + path, errno);
  file.fd.release();
  const Status done = Unpacker(path, stream, directory, limit_bytes).run();
  ::gzclose(stream);
  return done;
}

}  // namespace espy::kernel

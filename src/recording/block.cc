#include "recording/block.h"

#include <lz4.h>
#include <zlib.h>

#include <cstring>

#include "base/byte_reader.h"
#include "base/check.h"

namespace espy::recording {

namespace {

constexpr uint32_t kBlockMagic = 0x4b4c4245;  // "EBLK"
constexpr size_t kCheckedBytes = kBlockHeaderBytes - sizeof(uint32_t);

uint32_t checksum_of(std::string_view bytes) {
  return static_cast<uint32_t>(::crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

}  // namespace

std::array<char, kBlockHeaderBytes> encode(const BlockHeader& header) {
  std::array<char, kBlockHeaderBytes> out = {};
  size_t at = 0;
  const auto put = [&](uint64_t value, size_t size_bytes) {
    std::memcpy(out.data() + at, &value, size_bytes);
    at += size_bytes;
  };
  put(kBlockMagic, 4);
  put(static_cast<uint8_t>(header.kind), 1);
  put(static_cast<uint8_t>(header.compression), 1);
  put(0, 2);
  put(header.stored_bytes, 4);
  put(header.raw_bytes, 4);
  put(header.first_ns, 8);
  put(header.last_ns, 8);
  put(header.probes, 8);
  put(header.event_count, 4);
  put(header.checksum, 4);
  put(header.number, 4);
  CHECK(at == kCheckedBytes);
  put(checksum_of({out.data(), kCheckedBytes}), 4);
  return out;
}

std::optional<BlockHeader> decode_header(std::string_view bytes) {
  if (bytes.size() < kBlockHeaderBytes) return std::nullopt;
  ByteReader reader(bytes.substr(0, kBlockHeaderBytes));
  if (reader.take_le<uint32_t>() != kBlockMagic) return std::nullopt;
  BlockHeader out;
  const auto kind = reader.take_le<uint8_t>();
  const auto compression = reader.take_le<uint8_t>();
  reader.take_le<uint16_t>();
  out.stored_bytes = reader.take_le<uint32_t>();
  out.raw_bytes = reader.take_le<uint32_t>();
  out.first_ns = reader.take_le<uint64_t>();
  out.last_ns = reader.take_le<uint64_t>();
  out.probes = reader.take_le<uint64_t>();
  out.event_count = reader.take_le<uint32_t>();
  out.checksum = reader.take_le<uint32_t>();
  out.number = reader.take_le<uint32_t>();
  const bool is_intact = reader.take_le<uint32_t>() == checksum_of(bytes.substr(0, kCheckedBytes));
  const bool is_known = kind >= static_cast<uint8_t>(BlockKind::kDescription) &&
                        kind <= static_cast<uint8_t>(BlockKind::kEnd) &&
                        compression <= static_cast<uint8_t>(Compression::kLz4);
  if (!is_intact || !is_known || out.stored_bytes > kMaxBlockBytes || out.raw_bytes > kMaxBlockBytes)
    return std::nullopt;
  out.kind = static_cast<BlockKind>(kind);
  out.compression = static_cast<Compression>(compression);
  return out;
}

std::string compress(std::string_view raw, BlockHeader& header) {
  CHECK(raw.size() <= kMaxBlockBytes);
  const int bound = ::LZ4_compressBound(static_cast<int>(raw.size()));
  std::string out(static_cast<size_t>(bound), '\0');
  const int size = ::LZ4_compress_default(raw.data(), out.data(), static_cast<int>(raw.size()), bound);
  const bool is_smaller = size > 0 && static_cast<size_t>(size) < raw.size();
  header.compression = is_smaller ? Compression::kLz4 : Compression::kNone;
  if (is_smaller) {
    out.resize(static_cast<size_t>(size));
  } else {
    out = raw;
  }
  header.raw_bytes = static_cast<uint32_t>(raw.size());
  header.stored_bytes = static_cast<uint32_t>(out.size());
  header.checksum = checksum_of(out);
  return out;
}

Result<std::string> decompress(std::string_view stored, const BlockHeader& header) {
  if (stored.size() != header.stored_bytes || checksum_of(stored) != header.checksum)
    return fail("its checksum does not match");
  if (header.compression == Compression::kNone) {
    if (header.raw_bytes != header.stored_bytes) return fail("its sizes contradict each other");
    return std::string(stored);
  }
  std::string out(header.raw_bytes, '\0');
  const int size =
      ::LZ4_decompress_safe(stored.data(), out.data(), static_cast<int>(stored.size()), static_cast<int>(out.size()));
  if (size < 0 || static_cast<uint32_t>(size) != header.raw_bytes) return fail("it cannot be decompressed");
  return out;
}

}  // namespace espy::recording

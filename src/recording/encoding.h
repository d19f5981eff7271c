// The encoding of a recording: blocks, and their payloads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/byte_reader.h"
#include "base/format_version.h"
#include "base/result.h"
#include "recording/recording.h"

namespace espy::recording {

// ---- A block of a recording: a header of fixed size, and a compressed payload. Both have a checksum.

constexpr std::string_view kFileMagic = "espyrec\n";
constexpr uint32_t kVersion = 3;
constexpr uint32_t kReadableSince = release_number(1, 0, 0);
constexpr size_t kFileHeaderBytes = 16;  // the magic, the version, the first release that reads it, or 0
constexpr size_t kBlockHeaderBytes = 56;
constexpr uint32_t kMaxBlockBytes = 64 << 20;  // of a payload, before compression and after it

enum class BlockKind : uint8_t { kDescription = 1, kEvents = 2, kEnd = 3 };
enum class Compression : uint8_t { kNone = 0, kLz4 = 1 };

struct BlockHeader {
  BlockKind kind = BlockKind::kEvents;
  Compression compression = Compression::kNone;
  uint32_t stored_bytes = 0;
  uint32_t raw_bytes = 0;
  uint64_t first_ns = 0, last_ns = 0;  // the earliest and the latest event
  // Bit n: there are events of a probe whose index is n, modulo 64. For an end, bit 0: the next file of the ring
  // continues.
  uint64_t probes = 0;
  uint32_t event_count = 0;
  uint32_t checksum = 0;  // CRC-32 of the stored bytes
  uint32_t number = 0;    // of the block in its file, from 1; 0 in older recordings
};

std::array<char, kBlockHeaderBytes> encode(const BlockHeader& header);
// nullopt if the bytes are not header of a block: too few, without the magic number, with another checksum, or with a
// size above kMaxBlockBytes.
std::optional<BlockHeader> decode_header(std::string_view bytes);

// Sets `compression`, the sizes and the checksum of `header`, and returns the payload as it is stored.
std::string compress(std::string_view raw, BlockHeader& header);
// The error describes the payload.
Result<std::string> decompress(std::string_view stored, const BlockHeader& header);

// ---- The payloads of blocks.

// An item of a block of events begins with an unsigned number: one of these, or the index of a probe plus
// kFirstProbeTag.
constexpr uint64_t kTaskTag = 0, kLostTag = 1, kPlaceTag = 2, kStackTag = 3, kFirstProbeTag = 4;

void append_uleb128(std::string& out, uint64_t value);
void append_sleb128(std::string& out, int64_t value);
void append_text(std::string& out, std::string_view text);  // its length, then its bytes

std::string_view take_text(ByteReader& reader);

std::string encode(const Description& description);
// nullopt if the bytes are not description, or one whose indexes lead nowhere.
std::optional<Description> decode_description(std::string_view bytes);

void append_frame(std::string& out, const Frame& frame);
Frame take_frame(ByteReader& reader);

}  // namespace espy::recording

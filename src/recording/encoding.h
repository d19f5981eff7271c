// The payloads of blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/byte_reader.h"
#include "recording/recording.h"

namespace espy::recording {

// An item of a block of events begins with an unsigned number: one of these, or the index of a probe plus
// kFirstProbeTag.
constexpr uint64_t kTaskTag = 0, kLostTag = 1, kPlaceTag = 2, kStackTag = 3, kFirstProbeTag = 4;

void append_uleb128(std::string& out, uint64_t value);
void append_sleb128(std::string& out, int64_t value);
void append_text(std::string& out, std::string_view text);  // its length, then its bytes

std::string_view take_text(ByteReader& reader);

std::string encode(const Description& description);
// nullopt if the bytes are no description, or one whose indexes lead nowhere.
std::optional<Description> decode_description(std::string_view bytes);

void append_frame(std::string& out, const Frame& frame);
Frame take_frame(ByteReader& reader);

}  // namespace espy::recording

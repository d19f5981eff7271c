#include <gtest/gtest.h>

#include <string>

#include "base/byte_reader.h"

namespace espy {
namespace {

using namespace std::literals;

TEST(LoadLe, TakesTheLowestByteFirst) {
  EXPECT_EQ(load_le("\x01\x02\x03\x04\x05\x06\x07\x08\x09"), 0x0807060504030201u);
  EXPECT_EQ(load_le("\x01\x02\x03", 1, 2), 0x0302u);
}

TEST(LoadLe, BytesPastTheEndAreZero) {
  EXPECT_EQ(load_le("\x01\x02", 1, 4), 0x02u);
  EXPECT_EQ(load_le("\x01\x02", 2), 0u);
  EXPECT_EQ(load_le("\x01\x02", UINT64_MAX), 0u);
}

TEST(LoadLe, OfMoreThanEightBytesTheFirstCount) {
  EXPECT_EQ(load_le("\x01\x02\x03\x04\x05\x06\x07\x08\x09", 0, 16), 0x0807060504030201u);
}

TEST(LoadStruct, IsNothingPastTheEnd) {
  EXPECT_EQ(load_struct<uint32_t>("\x01\x02\x03\x04\x05", 1), 0x05040302u);
  EXPECT_FALSE(load_struct<uint32_t>("\x01\x02\x03\x04\x05", 2));
  EXPECT_FALSE(load_struct<uint32_t>("\x01\x02\x03\x04\x05", 6));
  EXPECT_FALSE(load_struct<uint32_t>("\x01\x02\x03\x04\x05", UINT64_MAX));
  EXPECT_FALSE(load_struct<uint32_t>("\x01\x02\x03\x04\x05", UINT64_MAX - 2));
}

TEST(ByteReader, ReadsForward) {
  ByteReader reader("\x01\x02\xff\xff\xff\xfftext\0rest"sv);
  EXPECT_EQ(reader.take_le<uint16_t>(), 0x0201u);
  EXPECT_EQ(reader.take_le<int32_t>(), -1);
  EXPECT_EQ(reader.take_string(), "text");
  EXPECT_EQ(reader.offset(), 11u);
  EXPECT_EQ(reader.remaining_bytes(), 4u);
  EXPECT_EQ(reader.take_bytes(4), "rest");
  EXPECT_TRUE(reader.at_end());
  EXPECT_TRUE(reader.ok());
}

TEST(ByteReader, TruncatedInputReadsAsZeroFromThenOn) {
  ByteReader reader("\x01\x02\x03"sv);
  EXPECT_EQ(reader.take_le<uint32_t>(), 0u);
  EXPECT_FALSE(reader.ok());
  EXPECT_TRUE(reader.at_end());
  EXPECT_EQ(reader.take_le<uint8_t>(), 0u);
  EXPECT_EQ(reader.take_bytes(1), "");
  EXPECT_EQ(reader.take_string(), "");
  EXPECT_EQ(reader.take_uleb128(), 0u);
  EXPECT_FALSE(reader.ok());
}

TEST(ByteReader, CountsThatWouldOverflowTheOffsetAreRefused) {
  for (const uint64_t count : {UINT64_MAX, UINT64_MAX - 1, uint64_t{1} << 63, uint64_t{3}}) {
    ByteReader reader("\x01\x02\x03"sv);
    reader.take_le<uint8_t>();
    EXPECT_EQ(reader.take_bytes(count), "") << count;
    EXPECT_FALSE(reader.ok()) << count;
  }
}

TEST(ByteReader, StringsEndWithNul) {
  ByteReader reader("\0open"sv);
  EXPECT_EQ(reader.take_string(), "");
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.take_string(), "");
  EXPECT_FALSE(reader.ok());
}

TEST(ByteReader, Leb128) {
  ByteReader reader("\x02\xe5\x8e\x26\x7e\xff\x00\x80\x7f\x3f\x40"sv);
  EXPECT_EQ(reader.take_uleb128(), 2u);
  EXPECT_EQ(reader.take_uleb128(), 624485u);
  EXPECT_EQ(reader.take_sleb128(), -2);
  EXPECT_EQ(reader.take_sleb128(), 127);
  EXPECT_EQ(reader.take_sleb128(), -128);
  EXPECT_EQ(reader.take_sleb128(), 63);
  EXPECT_EQ(reader.take_sleb128(), -64);
  EXPECT_TRUE(reader.ok() && reader.at_end());
}

TEST(ByteReader, Leb128OfAnyLengthIsRead) {
  const std::string widest = std::string(9, '\xff') + '\x01';
  EXPECT_EQ(ByteReader(widest).take_uleb128(), UINT64_MAX);
  const std::string minimum = std::string(9, '\x80') + '\x7f';
  EXPECT_EQ(ByteReader(minimum).take_sleb128(), INT64_MIN);
  const std::string padded = '\x85' + std::string(50, '\x80') + '\0';
  EXPECT_EQ(ByteReader(padded).take_uleb128(), 5u);
  const std::string endless(1000, '\xff');
  ByteReader reader(endless);
  reader.take_uleb128();
  EXPECT_FALSE(reader.ok());
}

}  // namespace
}  // namespace espy

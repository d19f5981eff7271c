// A writer of BTF, as small as the tests need it.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/btf.h"

namespace espy::kernel {

class BtfWriter {
 public:
  // `first_id` and `first_string` go on where a base ends.
  explicit BtfWriter(uint32_t first_id = 1, uint32_t first_string = 0)
      : next_id_(first_id), first_string_(first_string), strings_(1, '\0') {}

  uint32_t string(std::string_view text) {
    if (text.empty()) return 0;
    const auto offset = static_cast<uint32_t>(strings_.size());
    strings_.append(text).push_back('\0');
    return first_string_ + offset;
  }

  // A record: `words` follow its first three.
  uint32_t add(BtfKind kind, std::string_view name, uint32_t size_or_type, const std::vector<uint32_t>& words = {},
               uint32_t count = 0, bool flag = false) {
    const uint32_t name_offset = string(name);
    for (const uint32_t word :
         {name_offset, uint32_t{flag} << 31 | static_cast<uint32_t>(kind) << 24 | count, size_or_type}) {
      put(types_, word);
    }
    for (const uint32_t word : words) put(types_, word);
    return next_id_++;
  }

  uint32_t integer(std::string_view name, uint32_t size, uint32_t encoding = 0) {
    return add(BtfKind::kInt, name, size, {encoding << 24 | size * 8});
  }
  uint32_t pointer(uint32_t to) { return add(BtfKind::kPtr, "", to); }
  uint32_t array(uint32_t of, uint32_t count) { return add(BtfKind::kArray, "", 0, {of, 0, count}); }

  struct MemberSpec {
    std::string_view name;
    uint32_t type;
    uint32_t offset_bits;
    uint32_t bit_size = 0;
  };
  uint32_t structure(std::string_view name, uint32_t size, const std::vector<MemberSpec>& members,
                     BtfKind kind = BtfKind::kStruct) {
    bool flag = false;
    for (const auto& member : members) flag |= member.bit_size != 0;
    std::vector<uint32_t> words;
    for (const auto& member : members) {
      words.insert(words.end(), {string(member.name), member.type, member.bit_size << 24 | member.offset_bits});
    }
    return add(kind, name, size, words, static_cast<uint32_t>(members.size()), flag);
  }

  struct ParameterSpec {
    std::string_view name;
    uint32_t type;
  };
  uint32_t prototype(uint32_t result, const std::vector<ParameterSpec>& parameters) {
    std::vector<uint32_t> words;
    for (const auto& parameter : parameters) words.insert(words.end(), {string(parameter.name), parameter.type});
    return add(BtfKind::kFuncProto, "", result, words, static_cast<uint32_t>(parameters.size()));
  }

  // Of the strings so far: where those of a module go on.
  uint32_t strings_bytes() const { return static_cast<uint32_t>(strings_.size()); }
  uint32_t next_id() const { return next_id_; }

  std::string bytes() const {
    std::string out;
    put(out, 0x0001'eb9f);  // magic, version 1, no flags
    put(out, 24);
    put(out, 0);
    put(out, static_cast<uint32_t>(types_.size()));
    put(out, static_cast<uint32_t>(types_.size()));
    put(out, strings_bytes());
    return out + types_ + strings_;
  }

 private:
  static void put(std::string& out, uint32_t word) {
    char raw[4];
    std::memcpy(raw, &word, 4);
    out.append(raw, 4);
  }

  uint32_t next_id_;
  uint32_t first_string_;
  std::string types_;
  std::string strings_;
};

}  // namespace espy::kernel

#include "output/profile_tables.h"

#include <algorithm>
#include <utility>

#include "base/printable.h"

namespace espy::output {

namespace {

using protozero::pbf_writer;

// Fields of profile.proto.
namespace profile {
enum : uint32_t { kMapping = 3, kLocation = 4, kFunction = 5, kStringTable = 6 };
}
namespace mapping_field {
enum : uint32_t {
  kId = 1,
  kStart = 2,
  kLimit = 3,
  kOffset = 4,
  kFile = 5,
  kBuildId = 6,
  kHasFunctions = 7,
  kHasFileNames = 8,
  kHasLineNumbers = 9,
  kHasInlineFrames = 10
};
}
namespace location_field {
enum : uint32_t { kId = 1, kMapping = 2, kAddress = 3, kLine = 4 };
}
namespace line_field {
enum : uint32_t { kFunction = 1, kLine = 2 };
}
namespace function_field {
enum : uint32_t { kId = 1, kName = 2, kSystemName = 3, kFile = 4 };
}

// The name that perf gives to the kernel.
std::string kernel_file(const std::string& module) { return module.empty() ? "[kernel.kallsyms]" : "[" + module + "]"; }

}  // namespace

int64_t ProfileTables::text(std::string_view text) {
  const auto [known, is_new] = texts_.try_emplace(printable_line(text), static_cast<int64_t>(text_order_.size()));
  if (is_new) text_order_.push_back(&known->first);
  return known->second;
}

// Returns the id of the mapping of a frame; 0 if there is none, as for code that was made at run time.
uint64_t ProfileTables::mapping(const Frame& frame, bool is_user, uint64_t address) {
  if (is_user && (frame.module.empty() || !frame.module_address)) return 0;
  const CodeFile segment = frame.code ? *frame.code : CodeFile{};
  std::string file = is_user ? frame.module : kernel_file(frame.module);
  const auto [known, is_new] =
      mapping_ids_.try_emplace({file, segment.build_id, segment.address}, mappings_.size() + 1);
  if (is_new)
    mappings_.push_back({is_user ? segment.address : UINT64_MAX, segment.address + segment.size_bytes,
                         segment.file_offset, text(file), text(segment.build_id)});
  Mapping& mapping = mappings_[known->second - 1];
  if (!is_user) mapping.start = std::min(mapping.start, address);
  if (!frame.code) mapping.limit = std::max(mapping.limit, address + 1);
  mapping.has_functions &= is_named(frame);
  mapping.has_lines &= !frame.file.empty();
  return known->second;
}

uint64_t ProfileTables::function(const Frame& frame) {
  return functions_.try_emplace({text(exact_utf8(frame.symbol)), text(frame.file)}, functions_.size() + 1)
      .first->second;
}

// `frames`: the functions that are inlined at one address, innermost first, and the one that they are in.
uint64_t ProfileTables::location(Frames frames, bool is_user, bool is_caller) {
  const Frame& outer = *frames.back();
  // A caller's address is behind its call: the byte before it belongs to the call.
  const uint64_t address = outer.module_address.value_or(outer.address);
  const uint64_t code = address - (is_caller && address > 0 ? 1 : 0);
  std::string bytes;
  pbf_writer out(bytes);
  if (const uint64_t id = mapping(outer, is_user, code)) out.add_uint64(location_field::kMapping, id);
  out.add_uint64(location_field::kAddress, code);
  for (const auto& frame : frames) {
    if (!is_named(*frame)) continue;
    pbf_writer line(out, location_field::kLine);
    line.add_uint64(line_field::kFunction, function(*frame));
    if (frame->line != 0) line.add_int64(line_field::kLine, frame->line);
  }
  return locations_.try_emplace(std::move(bytes), locations_.size() + 1).first->second;
}

std::vector<uint64_t> ProfileTables::locations(const StackValue& stack) {
  std::vector<uint64_t> out;
  const Frames all = stack.frames;
  for (size_t first = 0, last = 0; first < all.size(); first = ++last) {
    while (all[last]->is_inlined && last + 1 < all.size()) ++last;
    out.push_back(location(all.subspan(first, last - first + 1), stack.is_user, first > 0));
  }
  return out;
}

void ProfileTables::write(pbf_writer& out) const {
  for (size_t i = 0; i < mappings_.size(); ++i) {
    const Mapping& mapping = mappings_[i];
    pbf_writer each(out, profile::kMapping);
    each.add_uint64(mapping_field::kId, i + 1);
    each.add_uint64(mapping_field::kStart, mapping.start);
    each.add_uint64(mapping_field::kLimit, mapping.limit);
    each.add_uint64(mapping_field::kOffset, mapping.file_offset);
    each.add_int64(mapping_field::kFile, mapping.file);
    each.add_int64(mapping_field::kBuildId, mapping.build_id);
    each.add_bool(mapping_field::kHasFunctions, mapping.has_functions);
    for (const auto field :
         {mapping_field::kHasFileNames, mapping_field::kHasLineNumbers, mapping_field::kHasInlineFrames})
      each.add_bool(field, mapping.has_lines);
  }
  for (const auto& [bytes, id] : locations_) {
    std::string whole;
    pbf_writer(whole).add_uint64(location_field::kId, id);
    out.add_message(profile::kLocation, whole + bytes);
  }
  for (const auto& [names, id] : functions_) {
    pbf_writer each(out, profile::kFunction);
    each.add_uint64(function_field::kId, id);
    each.add_int64(function_field::kName, names.first);
    each.add_int64(function_field::kSystemName, names.first);
    each.add_int64(function_field::kFile, names.second);
  }
  for (const std::string* text : text_order_) out.add_string(profile::kStringTable, *text);
}

}  // namespace espy::output

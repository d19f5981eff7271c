#include "cli/bundled_files.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/fatal.h"
#include "base/strings.h"
#include "bundled_files_data.h"
#include "tool/tool.h"

namespace espy::cli {

namespace {

std::string decompressed(const EmbeddedFile& file) {
  constexpr int kOfGzip = 16 + MAX_WBITS;
  std::string out(file.bytes, '\0');
  z_stream stream = {};
  stream.next_in = const_cast<unsigned char*>(kBundledFiles + file.offset);  // zlib does not write there
  stream.avail_in = static_cast<uInt>(file.compressed_bytes);
  stream.next_out = reinterpret_cast<unsigned char*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  CHECK(::inflateInit2(&stream, kOfGzip) == Z_OK);
  const int result = ::inflate(&stream, Z_FINISH);
  ::inflateEnd(&stream);
  CHECK(result == Z_STREAM_END && stream.avail_out == 0);
  return out;
}

}  // namespace

std::string_view bundled_file(std::string_view path) {
  static std::map<std::string_view, std::string> texts;  // those that were asked for
  const auto* found = std::ranges::find(kBundledFilesIndex, path, &EmbeddedFile::path);
  if (found == std::end(kBundledFilesIndex)) return {};
  const auto [text, is_new] = texts.try_emplace(found->path);
  if (is_new) text->second = decompressed(*found);
  return text->second;
}

std::span<const BundledTool> bundled_tools() {
  static const std::vector<BundledTool> kTools = [] {
    std::vector<BundledTool> out;
    for (const std::string_view line : split(bundled_file("tools/topics"), '\n')) {
      if (line.empty() || line.starts_with('#')) continue;
      const size_t name = line.find(' '), topic = line.find(' ', name + 1);
      out.push_back({line.substr(0, name), line.substr(name + 1, topic - name - 1), line.substr(topic + 1)});
    }
    return out;
  }();
  return kTools;
}

std::string_view bundled_script(std::string_view name) { return bundled_file(fmt::format("tools/{}.bt", name)); }

std::shared_ptr<const tool::Tool> bundled_tool(std::string_view name) {
  const std::string_view script = bundled_script(name);
  if (script.empty()) return nullptr;
  tool::Tool out;
  out.name = name;
  out.script_name = fmt::format("{}.bt", name);
  out.script = script;
  out.options = tool::script_options(script);
  out.knows_all_options = true;
  out.is_bundled = true;
  return std::make_shared<const tool::Tool>(std::move(out));
}

}  // namespace espy::cli

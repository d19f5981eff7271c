#include "cli/bundled_files.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/fatal.h"
#include "base/strings.h"
#include "bundled_files_data.h"
#include "tool/tool.h"

namespace espy::cli {

namespace {

constexpr char kMark = '\x1e';  // before the path of each file

std::string decompressed() {
  constexpr int kOfGzip = 16 + MAX_WBITS;
  std::string out(kBundledFilesBytes, '\0');
  z_stream stream = {};
  stream.next_in = const_cast<unsigned char*>(kBundledFiles);  // zlib does not write there
  stream.avail_in = sizeof(kBundledFiles);
  stream.next_out = reinterpret_cast<unsigned char*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  CHECK(::inflateInit2(&stream, kOfGzip) == Z_OK);
  const int result = ::inflate(&stream, Z_FINISH);
  ::inflateEnd(&stream);
  CHECK(result == Z_STREAM_END && stream.avail_out == 0);
  return out;
}

struct File {
  std::string_view path, text;
};

const std::vector<File>& files() {
  static const std::string kText = decompressed();
  static const std::vector<File> kFiles = [] {
    std::vector<File> out;
    const std::string_view all = kText;
    for (size_t begin = all.find(kMark); begin != all.npos;) {
      const size_t end = std::min(all.find(kMark, begin + 1), all.size());
      const size_t line = all.find('\n', begin);
      out.push_back({all.substr(begin + 1, line - begin - 1), all.substr(line + 1, end - line - 1)});
      begin = end == all.size() ? all.npos : end;
    }
    return out;
  }();
  return kFiles;
}

}  // namespace

std::string_view bundled_file(std::string_view path) {
  const auto found = std::ranges::find(files(), path, &File::path);
  return found == files().end() ? std::string_view() : found->text;
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
  // A file. Most runs are of one, and do not pay for the decompression.
  if (name.find('/') != name.npos || name.ends_with(".bt")) return nullptr;
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

#include "tool/tool.h"

#include <fmt/format.h>
#include <zlib.h>

#include "base/byte_reader.h"
#include "recording/encoding.h"

namespace espy::tool {

namespace {

using recording::append_text;
using recording::append_uleb128;

constexpr std::string_view kMagic = "espytool";

uint32_t checksum_of(std::string_view bytes) {
  return static_cast<uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

template <typename Items, typename Append>
void append_list(std::string& out, const Items& items, Append append) {
  append_uleb128(out, items.size());
  for (const auto& item : items) append(item);
}

void append_texts(std::string& out, const std::vector<std::string>& texts) {
  append_list(out, texts, [&](const std::string& text) { append_text(out, text); });
}

void append_imports(std::string& out, const check::ScriptFiles& files) {
  append_list(out, files.imports, [&](const auto& import) {
    append_text(out, import.first);
    append_list(out, import.second, [&](const check::ImportedFile& file) {
      append_text(out, file.name);
      append_text(out, file.text);
    });
  });
}

void append_headers(std::string& out, const check::ScriptFiles& files) {
  append_list(out, files.headers, [&](const auto& headers) {
    append_text(out, headers.first);
    append_list(out, headers.second.macros, [&](const syntax::CDefine& macro) {
      append_text(out, macro.name);
      append_uleb128(out, macro.is_function_like ? 1 : 0);
      append_texts(out, macro.parameters);
      append_text(out, macro.body);
    });
    append_list(out, headers.second.types, [&](const check::HeaderTypes& types) {
      append_text(out, types.btf);
      append_uleb128(out, types.before_kernel ? 1 : 0);
    });
  });
}

std::string take_text(ByteReader& reader) { return std::string(reader.take_bytes(reader.take_uleb128())); }

// Calls `take` for each item of a list. An item has at least one byte, so that a wrong count ends with the bytes.
template <typename Take>
void take_list(ByteReader& reader, Take take) {
  for (uint64_t left = reader.take_uleb128(); left != 0 && reader.ok(); --left) take();
}

std::vector<std::string> take_texts(ByteReader& reader) {
  std::vector<std::string> out;
  take_list(reader, [&] { out.push_back(take_text(reader)); });
  return out;
}

check::ImportedFile take_file(ByteReader& reader) {
  check::ImportedFile out;
  out.name = take_text(reader);
  out.text = take_text(reader);
  return out;
}

syntax::CDefine take_macro(ByteReader& reader) {
  syntax::CDefine out;
  out.name = take_text(reader);
  out.is_function_like = reader.take_uleb128() != 0;
  out.parameters = take_texts(reader);
  out.body = take_text(reader);
  return out;
}

check::CompiledHeaders take_headers(ByteReader& reader) {
  check::CompiledHeaders out;
  take_list(reader, [&] { out.macros.push_back(take_macro(reader)); });
  take_list(reader, [&] {
    check::HeaderTypes types;
    types.btf = take_text(reader);
    types.before_kernel = reader.take_uleb128() != 0;
    out.types.push_back(std::move(types));
  });
  return out;
}

check::ScriptOption take_option(ByteReader& reader) {
  check::ScriptOption out;
  out.name = take_text(reader);
  out.initial = take_text(reader);
  out.doc = take_text(reader);
  return out;
}

}  // namespace

std::string encode(const Tool& tool) {
  std::string body;
  for (const std::string* text : {&tool.name, &tool.script_name, &tool.script, &tool.cpu}) append_text(body, *text);
  append_texts(body, tool.arguments);
  append_uleb128(body, tool.knows_all_options ? 1 : 0);
  append_list(body, tool.options, [&](const check::ScriptOption& option) {
    for (const std::string* text : {&option.name, &option.initial, &option.doc}) append_text(body, *text);
  });
  append_imports(body, tool.files);
  append_headers(body, tool.files);
  std::string out(kMagic);
  const auto append_u32 = [&](uint32_t number) { out.append(reinterpret_cast<const char*>(&number), sizeof(number)); };
  append_u32(kFormat);
  append_u32(checksum_of(body));
  return out + body;
}

Result<Tool> decode(std::string_view bytes) {
  ByteReader reader(bytes);
  if (reader.take_bytes(kMagic.size()) != kMagic) return fail("the script in the tool is damaged: it has no beginning");
  const uint32_t format = reader.take_le<uint32_t>();
  if (reader.ok() && format != kFormat)
    return fail(
        fmt::format("the tool was built by another version of espy: its format is {}, not {}", format, kFormat));
  Tool out;
  out.checksum = reader.take_le<uint32_t>();
  if (!reader.ok() || out.checksum != checksum_of(bytes.substr(reader.offset())))
    return fail("the script in the tool is damaged: its checksum is wrong");
  for (std::string* text : {&out.name, &out.script_name, &out.script, &out.cpu}) *text = take_text(reader);
  out.arguments = take_texts(reader);
  out.knows_all_options = reader.take_uleb128() != 0;
  take_list(reader, [&] { out.options.push_back(take_option(reader)); });
  take_list(reader, [&] {
    std::vector<check::ImportedFile>& files = out.files.imports[take_text(reader)];
    take_list(reader, [&] { files.push_back(take_file(reader)); });
  });
  take_list(reader, [&] {
    std::string name = take_text(reader);
    out.files.headers[std::move(name)] = take_headers(reader);
  });
  if (!reader.ok() || !reader.at_end()) return fail("the script in the tool is damaged: it is cut off");
  return out;
}

}  // namespace espy::tool

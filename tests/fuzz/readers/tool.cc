// Tools: the bytes as an executable, and, as a checksum keeps random bytes out, as what is behind it.
#include "tool/tool.h"

#include <zlib.h>

#include "../reader.h"

namespace espy::fuzz {

void run_tool(std::string_view bytes) {
  if (const auto executable = tool::describe(bytes)) use(executable->script.value_or(""));
  if (const auto built = tool::with_script(std::string(bytes), "script")) use(*built);
  const auto checksum = static_cast<uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  std::string whole = "espytool";
  for (const uint32_t number : {tool::kFormat, checksum})
    whole.append(reinterpret_cast<const char*>(&number), sizeof(number));
  whole += bytes;
  const auto tool = tool::decode(whole);
  if (!tool) return use(tool.error().message);
  for (const std::string& argument : tool->arguments) use(argument);
  for (const check::ScriptOption& option : tool->options) use(option.doc);
  for (const auto& [path, files] : tool->files.imports)
    for (const check::ImportedFile& file : files) use(file.text);
  use(tool::encode(*tool));
}

}  // namespace espy::fuzz

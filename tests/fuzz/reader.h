// What the fuzzers do with bytes from outside: one function for each reader of the product.
//
// readers_main.cc runs them with the driver of this folder, readers_libfuzzer.cc with libFuzzer; both also run the
// files of seeds/NAME, found/NAME and slow/NAME as they are, which the tests do in every build.
#pragma once

#include <elf.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace espy::fuzz {

constexpr uint16_t kMachines[] = {EM_X86_64, EM_AARCH64};  // whose programs are read on each host

// What the bytes are, which says how the fuzzers change them.
enum class Content : uint8_t { kBytes, kScript };

struct Reader {
  std::string_view name;
  // Takes any bytes. What must not be ends the process: a crash, an endless loop, a wrong result (std::abort).
  void (*run_one)(std::string_view bytes) = nullptr;
  Content content = Content::kBytes;
};

// The readers of this program. Each program defines them.
std::span<const Reader> readers();
const Reader* find_reader(std::string_view name);  // null if there is none
// Prints "engine: ENGINE", then for each reader its name, and " script" if that is its content.
void list_readers(const char* engine);

// Runs a reader on a copy of the bytes that ends where they end, so that sanitizers see reads behind it. Aborts if the
// reader takes more than 2 s of CPU time; with sanitizers, which make it some 10 times slower, 20 s.
void run_limited(const Reader& reader, std::string_view bytes);

// Bytes as a file, for readers that take a path.
class MemoryFile {
 public:
  // `descriptor`: the number of its descriptor, so that the bytes may have a path of their own file.
  explicit MemoryFile(std::string_view bytes, std::optional<int> descriptor = std::nullopt);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  int fd_ = -1;
  std::string path_;
};

// Keeps a result from being optimised out, and reads all of a text, so that sanitizers see views of freed bytes.
void use(std::string_view text);

void run_archive(std::string_view bytes);
void run_btf(std::string_view bytes);
void run_c_header(std::string_view bytes);
void run_demangle(std::string_view bytes);
void run_dwarf(std::string_view bytes);
void run_dwp(std::string_view bytes);
void run_eh_frame(std::string_view bytes);
void run_elf(std::string_view bytes);
void run_go_functions(std::string_view bytes);
void run_http(std::string_view bytes);
void run_instructions(std::string_view bytes);
void run_json(std::string_view bytes);
void run_ld_cache(std::string_view bytes);
void run_perf_map(std::string_view bytes);
void run_proc_text(std::string_view bytes);
void run_recording(std::string_view bytes);
void run_records(std::string_view bytes);
void run_lsp(std::string_view bytes);
void run_tar(std::string_view bytes);
void run_text(std::string_view bytes);
void run_tool(std::string_view bytes);
void run_tracefs(std::string_view bytes);
void run_usdt(std::string_view bytes);

void run_check(std::string_view bytes);
void run_command_line(std::string_view bytes);
void run_parse(std::string_view bytes);

}  // namespace espy::fuzz

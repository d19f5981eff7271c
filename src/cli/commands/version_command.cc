// `espy version`: what this executable is, and what it is linked with.
#include <bzlib.h>
#include <event2/event.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gnu/libc-version.h>
#include <lz4.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <protozero/version.hpp>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "cli/command.h"
#include "commit.h"
#include "kernel/arch/arch.h"
#include "symbols/elf_file.h"

namespace espy::cli {

namespace {

// Programs that run bpftrace read its version, and what it can do from that.
constexpr const char* kAlias = "bpftrace";
constexpr const char* kAliasVersion = "bpftrace v0.26.1";

#ifdef __clang__
constexpr std::string_view kCompiler = "clang " __clang_version__;
#else
constexpr std::string_view kCompiler = "GCC " __VERSION__;
#endif

// Libraries of C give the version that runs, which can be later than their headers in a shared build. The others are
// headers, and in the executable.
std::vector<std::string> libraries() {
  const std::string_view bzip2 = BZ2_bzlibVersion();  // "1.0.8, 13-Jul-2019"
  return {fmt::format("bzip2 {}", bzip2.substr(0, bzip2.find(','))),
          fmt::format("elfutils {}", symbols::elfutils_version()),
          fmt::format("fmt {}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100),
          fmt::format("glibc {}", ::gnu_get_libc_version()),
          fmt::format("libevent {}", ::event_get_version()),
          fmt::format("libstdc++ {}", _GLIBCXX_RELEASE),
          fmt::format("lz4 {}", ::LZ4_versionString()),
          fmt::format("nlohmann-json {}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                      NLOHMANN_JSON_VERSION_PATCH),
          fmt::format("protozero {}", PROTOZERO_VERSION_STRING),
          fmt::format("tl-expected {}.{}.{}", TL_EXPECTED_VERSION_MAJOR, TL_EXPECTED_VERSION_MINOR,
                      TL_EXPECTED_VERSION_PATCH),
          fmt::format("xz {}", ::lzma_version_string()),
          fmt::format("zlib {}", ::zlibVersion()),
          fmt::format("zstd {}", ::ZSTD_versionString())};
}

int show_version(const Options&, const Host&) {
  if (std::string_view(program_invocation_short_name) == kAlias) {
    std::puts(fmt::format("{} (espy {})", kAliasVersion, ESPY_VERSION).c_str());
    return EXIT_SUCCESS;
  }
  const std::string out =
      fmt::format("espy {}\ncommit: {}\nbuild: {}, {}, {}\nlibraries: {}\n", ESPY_VERSION, ESPY_COMMIT, ESPY_BUILD_TYPE,
                  kernel::host_arch().name, kCompiler, fmt::join(libraries(), ", "));
  std::fputs(out.c_str(), stdout);
  return EXIT_SUCCESS;
}

constexpr std::string_view kUsage[] = {"version"};
constexpr std::string_view kNotes =
    "The first line is `espy` and the version. The others name the commit, the\n"
    "build, and the libraries in this executable. Called as `bpftrace`, espy prints\n"
    "one line in the form of bpftrace.\n";
constexpr Example kExamples[] = {{"espy version", "show the version"},
                                 {"espy features", "show what this kernel offers"}};

}  // namespace

extern const Command kVersion = {
    .word = "version",
    .summary = "show the version, the commit, and the linked libraries",
    .topic = Topic::kMachine,
    .option = {'V', "version", "", "the same as `espy version`"},
    .usage = kUsage,
    .notes = kNotes,
    .examples = kExamples,
    .run = show_version,
};

}  // namespace espy::cli

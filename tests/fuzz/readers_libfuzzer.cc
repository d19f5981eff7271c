// PROGRAM --list | --reader=NAME [libFuzzer's options] [DIR...]
//
// The readers of reader.h for libFuzzer, which ignores options that begin with two dashes.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mutate.h"
#include "reader.h"
#include "scripts.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* bytes, size_t size, size_t max_size);

namespace {

const espy::fuzz::Reader* chosen = nullptr;

size_t change_script(uint8_t* bytes, size_t size, size_t max_size, espy::fuzz::Random& random) {
  if (random() % 8 == 0) return LLVMFuzzerMutate(bytes, size, max_size);
  static const espy::fuzz::ScriptMutator mutator({});
  std::string changed = mutator.changed(random, {reinterpret_cast<const char*>(bytes), size});
  changed.resize(std::min(changed.size(), max_size));
  std::memcpy(bytes, changed.data(), changed.size());
  return changed.size();
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view kReader = "--reader=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view word = (*argv)[i];
    if (word == "--list") {
      espy::fuzz::list_readers("libfuzzer");
      std::exit(0);
    }
    if (word.starts_with(kReader)) chosen = espy::fuzz::find_reader(word.substr(kReader.size()));
  }
  if (chosen != nullptr) return 0;
  std::fprintf(stderr, "usage: --list | --reader=NAME [OPTIONS] [DIR...]\n");
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  espy::fuzz::run_limited(*chosen, {reinterpret_cast<const char*>(bytes), size});
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* bytes, size_t size, size_t max_size, unsigned seed) {
  espy::fuzz::Random random(seed);
  if (chosen->content == espy::fuzz::Content::kScript) return change_script(bytes, size, max_size, random);
  const bool is_elf = size > 4 && std::memcmp(bytes,
                                              "\x7f"
                                              "ELF",
                                              4) == 0;
  if (!is_elf || random() % 2 == 0) return LLVMFuzzerMutate(bytes, size, max_size);
  static const espy::fuzz::ByteMutator mutator({});
  std::string changed(reinterpret_cast<const char*>(bytes), size);
  for (uint32_t n = 1 + random() % 3; n > 0; --n) mutator.change(random, changed, max_size);
  std::memcpy(bytes, changed.data(), changed.size());
  return changed.size();
}

// What is undefined ends the input that did it, as an access out of bounds does.
extern "C" const char* __ubsan_default_options() { return "halt_on_error=1:print_stacktrace=1"; }

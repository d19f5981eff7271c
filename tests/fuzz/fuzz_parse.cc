// Any bytes may be handed to the parser. Whatever parses without errors must survive being formatted: the text that
// comes back has the same tree and formats to itself.
//
// With a fuzzing engine, link with -fsanitize=fuzzer and define ESPY_FUZZ_ENGINE. Without one, this is a program that
// damages seeds at random: fuzz_parse SECONDS [SEED-FILE...]
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "../unit/syntax_scripts.h"
#include "../unit/syntax_support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using espy::syntax::Parsed;
  const Parsed parsed(std::string(reinterpret_cast<const char*>(data), size));
  const std::string once = parsed.formatted();
  parsed.tree();
  parsed.errors();
  if (parsed.diagnostics.has_errors()) return 0;
  const Parsed again(once);
  if (again.tree() != parsed.tree() || again.formatted() != once) {
    std::fprintf(stderr, "not stable:\n%.*s\n--- formatted\n%s\n--- again\n%s\n%s", static_cast<int>(size),
                 reinterpret_cast<const char*>(data), once.c_str(), again.formatted().c_str(), again.errors().c_str());
    std::abort();
  }
  return 0;
}

#ifndef ESPY_FUZZ_ENGINE
namespace {

class Mutator {
 public:
  explicit Mutator(std::vector<std::string> seeds) : seeds_(std::move(seeds)) {}

  // A seed with up to eight changes: bytes lost, doubled, replaced; pieces moved within or in from another seed.
  std::string next() {
    std::string text = pick();
    for (uint32_t n = below(8) + 1; n > 0; --n) change(text);
    return text;
  }

 private:
  uint32_t below(size_t n) { return static_cast<uint32_t>(random_() % n); }
  const std::string& pick() { return seeds_[below(seeds_.size())]; }
  std::string piece(const std::string& of) {
    if (of.empty()) return "";
    const uint32_t begin = below(of.size());
    return of.substr(begin, below(20) + 1);
  }

  void change(std::string& text) {
    constexpr char kBytes[] = "(){}[]<>/*:;,.$@#\"'\\+-=!~?&|^% \n\taz09_";
    const uint32_t at = below(text.size() + 1);
    switch (below(5)) {
      case 0: text.erase(at, below(4) + 1); break;
      case 1: text.insert(at, 1, kBytes[below(sizeof kBytes - 1)]); break;
      case 2: text.insert(at, piece(text)); break;
      case 3: text.insert(at, piece(pick())); break;
      default:
        if (at < text.size())
          text[at] = below(8) == 0 ? static_cast<char>(below(256)) : kBytes[below(sizeof kBytes - 1)];
    }
  }

  std::mt19937 random_{1};
  std::vector<std::string> seeds_;
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> seeds(std::begin(espy::syntax::kScripts), std::end(espy::syntax::kScripts));
  for (int i = 2; i < argc; ++i) {
    std::ifstream file(argv[i]);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  Mutator mutator(std::move(seeds));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(argc > 1 ? std::atoi(argv[1]) : 5);
  uint64_t count = 0;
  for (; std::chrono::steady_clock::now() < end; ++count) {
    const std::string text = mutator.next();
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  }
  std::printf("%llu inputs\n", static_cast<unsigned long long>(count));
}
#endif

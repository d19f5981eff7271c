// Runs tests/ir/*.ir: a head comment, `// pass: NAME[,NAME]` (or `all`), a module, then behind a line `//--- NAME` the
// module that the passes make of it, as comments. With ESPY_BLESS=1 in the environment the expectations are rewritten.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/strings.h"
#include "ir/ir_text.h"
#include "opt/pipeline.h"

namespace espy::opt {
namespace {

namespace fs = std::filesystem;

fs::path folder() { return ESPY_ROOT "/tests/ir"; }

std::vector<fs::path> all_files() {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder()))
    if (entry.path().extension() == ".ir") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string slurp(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string as_comments(std::string_view text) {
  std::string out;
  for (std::string_view line : split(text.substr(0, text.size() - 1), '\n'))
    out += (line.empty() ? "//" : "// ") + std::string(line) + "\n";
  return out;
}

void run_passes(std::string_view names, ir::Module& module) {
  std::vector<std::string_view> known = pass_names();
  for (std::string_view name : split(names, ',')) {
    name = trim(name);
    if (name == "all") {
      optimize(module, verify_after_pass);
      continue;
    }
    ASSERT_NE(std::find(known.begin(), known.end(), name), known.end()) << "no pass " << name;
    run_pass(name, module);
    ASSERT_EQ(ir::verify(module), "") << "after " << name << "\n" << ir::print(module);
  }
}

class IrFile : public testing::TestWithParam<fs::path> {};

TEST_P(IrFile, GivesWhatItSays) {
  std::string text = slurp(GetParam());
  size_t mark = text.find("//--- ");
  std::string input = text.substr(0, mark);
  size_t passes = input.find("// pass: ");
  ASSERT_NE(passes, std::string::npos);
  std::string_view names = std::string_view(input).substr(passes + 9);
  names = names.substr(0, names.find('\n'));

  Result<ir::Module> module = ir::read(input);
  ASSERT_TRUE(module) << module.error().message;
  ASSERT_EQ(ir::verify(*module), "");
  run_passes(names, *module);
  std::string expected = "//--- ir\n" + as_comments(ir::print(*module));
  if (const char* bless = std::getenv("ESPY_BLESS"); bless && *bless == '1') {
    std::ofstream(GetParam()) << input << expected;
    return;
  }
  ASSERT_NE(mark, std::string::npos) << "no expectation; run with ESPY_BLESS=1";
  EXPECT_EQ(text.substr(mark), expected);
}

INSTANTIATE_TEST_SUITE_P(Files, IrFile, testing::ValuesIn(all_files()),
                         [](const testing::TestParamInfo<fs::path>& file) {
                           std::string name = file.param.stem().string();
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace espy::opt

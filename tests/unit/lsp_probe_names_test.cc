// The names of probes that a completion offers, and when they are listed.
#include <gtest/gtest.h>

#include "lsp/names.h"

namespace espy::lsp {
namespace {

std::vector<spec::ListedProbe> list_none(spec::ListRequest&) { return {}; }

TEST(LspProbeNames, ListsEachProviderAheadOnceAndThenNoMore) {
  spec::Provider kernel, user, other;
  kernel.name = "kprobe";
  user.name = "uprobe";
  user.needs_target_to_list = true;
  other.name = "rawtracepoint";
  kernel.list = user.list = other.list = list_none;
  const spec::Registry registry({}, {&kernel, &user, &other});
  std::vector<std::string> listed;
  const Services services{
      [](const std::string&, const std::string&) -> Result<std::unique_ptr<Analysis>> { return fail("not here"); },
      [&](const spec::Provider& provider, const std::vector<std::string>&) {
        listed.emplace_back(provider.name);
        return std::vector<std::string>{listed.back() + ":b", listed.back() + ":a"};
      },
      [](const std::string&) { return Status(); }, registry, "1"};
  ProbeNames names(services);
  EXPECT_TRUE(names.list_ahead());
  EXPECT_TRUE(names.list_ahead());
  EXPECT_FALSE(names.list_ahead());
  EXPECT_EQ(listed, (std::vector<std::string>{"kprobe", "rawtracepoint"}));
  EXPECT_EQ(names.with_prefix("kprobe:", 9), (std::vector<std::string>{"kprobe:a", "kprobe:b"}));
  EXPECT_EQ(listed.size(), 2u);
  names.clear();
  EXPECT_TRUE(names.list_ahead());
}

}  // namespace
}  // namespace espy::lsp

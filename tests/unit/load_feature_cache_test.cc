#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "load/find_features.h"

namespace espy::load {
namespace {

using kernel::Feature;

class FeatureCacheTest : public ::testing::Test {
 protected:
  FeatureCacheTest() {
    std::string name = (std::filesystem::temp_directory_path() / "espy-features-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) directory_ = name + "/espy";
  }
  ~FeatureCacheTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(std::filesystem::path(directory_).parent_path(), ignored);
  }
  std::string file() const { return directory_ + "/features"; }
  std::string content() const {
    std::ostringstream out;
    out << std::ifstream(file()).rdbuf();
    return out.str();
  }
  // Returns how often `feature` was tried by a cache that finds it as `result`.
  int tries(const std::string& key, Feature feature = Feature::kBpfV3, bool result = true) const {
    int count = 0;
    FeatureCache cache(directory_, "features", key);
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(cache.find(feature,
                           [&] {
                             ++count;
                             return result;
                           }),
                result);
    return count;
  }

  std::string directory_;
};

TEST_F(FeatureCacheTest, KeepsWhatWasFoundForTheSameKey) {
  EXPECT_EQ(tries("a"), 1);
  EXPECT_EQ(content(), "espy features 1\na\nbpf_v3\n");
  EXPECT_EQ(tries("a"), 0);
  EXPECT_EQ(tries("a", Feature::kBpfV4), 1);
  EXPECT_EQ(content(), "espy features 1\na\nbpf_v3\nbpf_v4\n");
  EXPECT_EQ(tries("b"), 1);
  EXPECT_EQ(content(), "espy features 1\nb\nbpf_v3\n");
  EXPECT_EQ(tries("a"), 1);
}

TEST_F(FeatureCacheTest, TriesAgainWhatWasMissing) {
  EXPECT_EQ(tries("a", Feature::kBpfV3, false), 2);
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(FeatureCacheTest, DoesNotKeepWhatSettingsChange) {
  for (const Feature feature : {Feature::kFentry, Feature::kProbeReadKernel, Feature::kProbeWriteUser, Feature::kKprobe,
                                Feature::kPerfEventHardware})
    EXPECT_EQ(tries("a", feature), 2);
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(FeatureCacheTest, KeepsNothingWithoutAKey) {
  FeatureCache cache(directory_, "features", std::nullopt);
  EXPECT_TRUE(cache.find(Feature::kBpfV3, [] { return true; }));
  EXPECT_FALSE(std::filesystem::exists(directory_));
}

TEST_F(FeatureCacheTest, ReplacesWhatIsNotItsOwn) {
  const std::string right = "espy features 1\na\nbpf_v3\n";
  tries("a");
  for (const std::string wrong : {"", "x", "espy features 2\na\nbpf_v3\n", "espy features 1\na\nbpf_v3",
                                  "espy features 1\na\nbpf_v3\nnonsense\n", "espy features 1\na\nbpf_v3\nfentry\n"}) {
    std::ofstream(file()) << wrong;
    EXPECT_EQ(tries("a"), 1) << wrong;
    EXPECT_EQ(content(), right);
  }
  std::ofstream(file()) << right + std::string(10'000, '\n');
  EXPECT_EQ(tries("a"), 1);
  EXPECT_EQ(content(), right);
}

TEST_F(FeatureCacheTest, RefusesFilesThatOthersCouldWrite) {
  tries("a");
  ASSERT_EQ(::chmod(file().c_str(), 0622), 0);
  EXPECT_EQ(tries("a"), 1);
  EXPECT_EQ(tries("a"), 0);
  std::filesystem::create_hard_link(file(), file() + ".link");
  EXPECT_EQ(tries("a"), 1);
  std::filesystem::rename(file(), file() + ".moved");
  std::filesystem::create_symlink(file() + ".moved", file());
  EXPECT_EQ(tries("a"), 1);
  EXPECT_FALSE(std::filesystem::is_symlink(file()));
  ASSERT_EQ(::chmod(directory_.c_str(), 0777), 0);
  EXPECT_EQ(tries("a"), 2);
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chmod(directory_.c_str(), 0700), 0);
  EXPECT_EQ(tries("a"), 0);
  ASSERT_EQ(::chown(file().c_str(), 1, 1), 0);
  EXPECT_EQ(tries("a"), 1);
  ASSERT_EQ(::chown(directory_.c_str(), 1, 1), 0);
  EXPECT_EQ(tries("a"), 2);
}

TEST_F(FeatureCacheTest, DoesNotFollowADirectoryThatIsALink) {
  std::filesystem::create_directory(directory_ + ".real");
  std::filesystem::permissions(directory_ + ".real", std::filesystem::perms::owner_all);
  std::filesystem::create_symlink(directory_ + ".real", directory_);
  EXPECT_EQ(tries("a"), 2);
}

}  // namespace
}  // namespace espy::load

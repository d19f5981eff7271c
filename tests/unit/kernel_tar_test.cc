// Snapshots of kernels as archives: what is written is read, by tar(1) as well, and nothing else is taken.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "base/files.h"
#include "kernel/snapshot.h"

namespace espy::kernel {
namespace {

constexpr uint64_t kLimitBytes = 1 << 20;

class TarTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "espy-tar-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    std::filesystem::create_directory(directory_ / "out");
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string archive() const { return directory_ / "archive"; }
  std::string out() const { return directory_ / "out"; }
  std::string content(const std::string& name) const {
    std::ifstream file(directory_ / "out" / name);
    std::stringstream text;
    text << file.rdbuf();
    return file ? text.str() : "none";
  }
  void write(const std::function<void(TarWriter&)>& add) {
    const OwnedFd file(::open(archive().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    auto writer = TarWriter::create(file.get());
    ASSERT_TRUE(writer);
    add(*writer);
    ASSERT_TRUE(writer->finish());
  }
  // An archive that is not compressed, whose bytes can be changed.
  std::string plain() const {
    const std::string path = directory_ / "plain";
    EXPECT_EQ(std::system(("gzip -dc < " + archive() + " > " + path).c_str()), 0);
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  std::string error_of(const std::string& bytes) const {
    std::ofstream(archive(), std::ios::binary) << bytes;
    const Status done = unpack_tar(archive(), out(), kLimitBytes);
    return done ? "" : done.error().message;
  }
  // The same archive with the header's checksum made right again.
  static std::string with_checksum(std::string bytes) {
    unsigned sum = 0;
    std::fill_n(bytes.begin() + 148, 8, ' ');
    for (size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(bytes[i]);
    char text[8];
    std::snprintf(text, sizeof(text), "%06o", sum);
    return bytes.replace(148, 7, std::string(text, 7));
  }

  std::filesystem::path directory_;
};

TEST_F(TarTest, ReadsWhatItWrites) {
  const std::string long_name = "sys/kernel/" + std::string(80, 'd') + "/" + std::string(90, 'f');
  const std::string binary("\0\x01\xff", 3);
  write([&](TarWriter& tar) {
    EXPECT_TRUE(tar.add("release", "6.1\n"));
    EXPECT_TRUE(tar.add(long_name, binary));
    EXPECT_TRUE(tar.add("empty", ""));
    EXPECT_TRUE(tar.add("block", std::string(512, 'b')));
  });
  ASSERT_TRUE(unpack_tar(archive(), out(), kLimitBytes));
  EXPECT_EQ(content("release"), "6.1\n");
  EXPECT_EQ(content(long_name), binary);
  EXPECT_EQ(content("empty"), "");
  EXPECT_EQ(content("block"), std::string(512, 'b'));
  const std::string listed = "test \"$(tar -xzOf " + archive() + " release block | wc -c)\" = 516";
  EXPECT_EQ(std::system(listed.c_str()), 0);
}

TEST_F(TarTest, TakesNothingButPlainFilesBelowTheDirectory) {
  for (const std::string name : {"../x", "/etc/x", "a/../x", "a//x", "./x", "a/"}) {
    write([&](TarWriter& tar) { EXPECT_TRUE(tar.add(name, "x")); });
    const Status done = unpack_tar(archive(), out(), kLimitBytes);
    ASSERT_FALSE(done) << name;
    EXPECT_NE(done.error().message.find("more than plain files"), std::string::npos) << name;
  }
  write([](TarWriter& tar) { EXPECT_TRUE(tar.add("link", "x")); });
  std::string bytes = plain();
  bytes[156] = '2';  // a symbolic link
  EXPECT_NE(error_of(with_checksum(bytes)).find("more than plain files"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "x"));
}

TEST_F(TarTest, RefusesWhatIsDamaged) {
  write([](TarWriter& tar) { EXPECT_TRUE(tar.add("file", std::string(2000, 'x'))); });
  const std::string bytes = plain();
  EXPECT_EQ(error_of(bytes), "");
  std::filesystem::remove(out() + "/file");
  for (const size_t size : {size_t{0}, size_t{1}, size_t{511}, size_t{512}, size_t{600}, size_t{2559}})
    EXPECT_NE(error_of(bytes.substr(0, size)).find("ends early"), std::string::npos) << size;
  std::string changed = bytes;
  changed[3] ^= 1;
  EXPECT_NE(error_of(changed).find("not a tar archive"), std::string::npos);
  changed = bytes;
  changed.replace(124, 11, "77777777777");  // bytes in the file
  EXPECT_NE(error_of(with_checksum(changed)).find("too large"), std::string::npos);
  EXPECT_NE(error_of(std::string(4000, 'x')).find("not a snapshot of a kernel"), std::string::npos);
}

TEST_F(TarTest, ReportsADiskThatIsFull) {
  const OwnedFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  if (!full.valid()) GTEST_SKIP() << "no /dev/full";
  auto writer = TarWriter::create(full.get());
  ASSERT_TRUE(writer);
  Status done = writer->add("file", std::string(100, 'x'));
  if (done) done = writer->finish();
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("No space left"), std::string::npos) << done.error().message;
}

}  // namespace
}  // namespace espy::kernel

// Positions as editors count them, URIs, and the framing of messages.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.h"
#include "lsp/document.h"
#include "lsp/server.h"

namespace espy::lsp {
namespace {

TEST(LspText, CountsUtf16UnitsInALine) {
  const Text text("ab\n\xc3\xa4\xf0\x9f\x98\x80x\r\nz");  // a letter of two bytes, a character of four, CR LF
  EXPECT_EQ(text.position(0), (Position{0, 0}));
  EXPECT_EQ(text.position(3), (Position{1, 0}));
  EXPECT_EQ(text.position(5), (Position{1, 1}));
  EXPECT_EQ(text.position(9), (Position{1, 3}));
  EXPECT_EQ(text.position(12), (Position{2, 0}));
  EXPECT_EQ(text.offset({1, 3}), 9u);
  EXPECT_EQ(text.offset({1, 1}), 5u);
}

TEST(LspText, KeepsPlacesBeyondTheTextInside) {
  const Text text("ab\ncd");
  EXPECT_EQ(text.offset({0, 99}), 2u);
  EXPECT_EQ(text.offset({99, 0}), 5u);
  EXPECT_EQ(text.position(99), (Position{1, 2}));
  EXPECT_EQ(Text("").position(7), (Position{0, 0}));
  EXPECT_EQ(Text("\xf0").offset({0, 5}), 1u);  // cut in the middle of a character
}

TEST(LspDocument, DecodesAndEncodesUris) {
  EXPECT_EQ(path_of("file:///home/a%20b%C3%A4.bt"), "/home/a b\xc3\xa4.bt");
  EXPECT_EQ(path_of("file:///a%zz%4"), "/a%zz%4");
  EXPECT_EQ(path_of("untitled:Untitled-1"), "untitled:Untitled-1");
  EXPECT_EQ(uri_of("/home/a b.bt"), "file:///home/a%20b.bt");
  EXPECT_EQ(path_of(uri_of("/%/\xff?#")), "/%/\xff?#");
}

class LspConnectionTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    in_ = OwnedFd(ends[0]);
    out_ = OwnedFd(ends[1]);
  }
  void send(std::string_view bytes) { ASSERT_TRUE(write_all(out_.get(), bytes)); }
  void end() { out_.reset(); }
  Connection connection() { return {in_.get(), out_.get()}; }

  OwnedFd in_, out_;
};

TEST_F(LspConnectionTest, ReadsWhatItWrites) {
  Connection both = connection();
  EXPECT_FALSE(both.has_input());
  ASSERT_TRUE(both.write("{\"a\": 1}"));
  ASSERT_TRUE(both.write(""));
  EXPECT_TRUE(both.has_input());
  EXPECT_EQ(both.read().value(), "{\"a\": 1}");
  EXPECT_EQ(both.read().value(), "");
  end();
  EXPECT_EQ(both.read().value(), std::nullopt);
}

TEST_F(LspConnectionTest, TakesOtherHeadersInAnyCase) {
  Connection both = connection();
  send("content-type: x; charset=utf-8\r\nCONTENT-LENGTH:  2\r\n\r\n{}");
  EXPECT_EQ(both.read().value(), "{}");
}

TEST_F(LspConnectionTest, RefusesWhatIsNotTheProtocol) {
  for (const char* input : {"Content-Length: -1\r\n\r\n", "Content-Length: 1x\r\n\r\n", "Length: 1\r\n\r\n",
                            "Content-Length: 99999999999\r\n\r\n", "Content-Length: 99999999999999999999\r\n\r\n"}) {
    send(input);
    Connection both = connection();
    EXPECT_FALSE(both.read().has_value()) << input;
  }
  send(std::string(5000, 'x'));
  Connection both = connection();
  EXPECT_FALSE(both.read().has_value());
}

TEST_F(LspConnectionTest, ReportsAMessageThatIsCutOff) {
  Connection both = connection();
  send("Content-Length: 10\r\n\r\n{}");
  end();
  const auto message = both.read();
  ASSERT_FALSE(message.has_value());
  EXPECT_EQ(message.error().message, "the input ends within a message");
}

}  // namespace
}  // namespace espy::lsp

#include "nacre/base/printable.h"

#include <gtest/gtest.h>

#include "nacre/base/error.h"

namespace nacre {
namespace {

TEST(Printable, LeavesTextAlone) {
  for (const char* text : {"", "plain", "naïve café", "図形", "🐚 nacre", "a\\nb"}) EXPECT_EQ(printable(text), text);
}

TEST(Printable, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(printable("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(printable("one\ntwo\r\tthree"), "one\\ntwo\\r\\tthree");
  EXPECT_EQ(printable(std::string("nul\0!", 5)), "nul\\x00!");
  EXPECT_EQ(printable("del\x7f"), "del\\x7f");
  EXPECT_EQ(printable("c1 \xc2\x9b"
                      "31m"),
            "c1 \\xc2\\x9b31m")
      << "the one-character form of ESC [";
}

TEST(Printable, EscapesBytesThatAreNoCharacters) {
  EXPECT_EQ(printable("\xff\x80"), "\\xff\\x80");
  EXPECT_EQ(printable("cut \xe2\x82"), "cut \\xe2\\x82");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf") << "an overlong form";
}

TEST(Printable, KeepsLinesWhereAskedTo) { EXPECT_EQ(printable("a\tb\nc\r", true), "a\tb\nc\\r"); }

TEST(Printable, MessagesOfErrorsUseIt) { EXPECT_STREQ(UserError("na\x1bme", "is\nbad").what(), "na\\x1bme: is bad"); }

TEST(XmlText, HasNoMarkupAndNoControlCharacters) {
  EXPECT_EQ(xml_text("a<b & \"c\">d"), "a&lt;b &amp; &quot;c&quot;&gt;d");
  EXPECT_EQ(xml_text("a\n\x1b[1mb"), "a  [1mb");
}

}  // namespace
}  // namespace nacre

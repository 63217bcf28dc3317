#include <gtest/gtest.h>

#include "harness/report/html.h"
#include "harness/report/svg.h"

namespace warmleg::report {
namespace {

TEST(Escape, LeavesNoMarkup) {
  EXPECT_EQ(Escape("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  EXPECT_EQ(Escape("Gr\u00fc\u00dfe \u2192 \U0001F642"), "Gr\u00fc\u00dfe \u2192 \U0001F642");
  EXPECT_EQ(Escape("line\nnext\ttab"), "line\nnext\ttab");
}

TEST(Escape, ReplacesWhatIsNoText) {
  const std::string bad = "\uFFFD";
  EXPECT_EQ(Escape(std::string_view("a\0b", 3)), "a" + bad + "b");
  EXPECT_EQ(Escape("\x1b[31m"), bad + "[31m");
  EXPECT_EQ(Escape("\xff\xc3"), bad + bad);
  EXPECT_EQ(Escape("\xc0\xbc"), bad + bad) << "an overlong <";
  EXPECT_EQ(Escape("\xed\xa0\x80"), bad + bad + bad) << "a surrogate";
  EXPECT_EQ(Escape("\xf4\x90\x80\x80"), bad + bad + bad + bad) << "beyond U+10FFFF";
  EXPECT_EQ(Escape("\xe2\x82"), bad + bad) << "cut";
}

TEST(Format, EscapesTextAndKeepsMarkup) {
  const Html bold = Format("<b>{}</b>", "<x>");
  EXPECT_EQ(bold.str(), "<b>&lt;x&gt;</b>");
  EXPECT_EQ(Format("{} {} {:.1f}", bold, 7, 0.5).str(), "<b>&lt;x&gt;</b> 7 0.5");
  EXPECT_EQ(Join({Text("a"), bold}, " & ").str(), "a &amp; <b>&lt;x&gt;</b>");
}

TEST(Table, HasHeadingsAndIsReachable) {
  Table table("caption <1>", {{"name"}, {"n", true}});
  EXPECT_TRUE(table.empty());
  table.Row({Text("a"), Text("1")}, "out");
  const std::string html = table.Done(true).str();
  for (const char* part :
       {"<caption>caption &lt;1&gt;</caption>", "<th scope=\"col\" class=\"n\">n</th>",
        "<tr class=\"out\"><th scope=\"row\">a</th><td class=\"n\">1</td></tr>", "tabindex=\"0\"", "scroll"})
    EXPECT_NE(html.find(part), std::string::npos) << part << " in " << html;
}

TEST(Ticks, AreRoundAndInside) {
  EXPECT_EQ(Ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(Ticks(0, 2900, 3), (std::vector<double>{0, 1000, 2000}));
  const std::vector<double> small = Ticks(-0.013, 0.021, 4);
  ASSERT_GE(small.size(), 3U);
  EXPECT_GE(small.front(), -0.013);
  EXPECT_LE(small.back(), 0.021);
  EXPECT_EQ(TickText(small.front(), small), "-0.01");
  EXPECT_EQ(TickText(2000, Ticks(0, 2900, 3)), "2000");
  EXPECT_EQ(Ticks(5, 5, 4), std::vector<double>{5}) << "no range";
}

TEST(Scale, MapsBothWays) {
  const Scale up{0, 100, 200, 0};  // the value 0 lies at the bottom
  EXPECT_EQ(up(0), 200);
  EXPECT_EQ(up(25), 150);
  EXPECT_EQ((Scale{3, 3, 0, 10}(3)), 5);
}

TEST(Svg, NamesItselfAndItsMarks) {
  Svg svg(100, 50, "A <plot>", "what it shows");
  svg.Circle({1, 2}, 3, "plain", "tip & more");
  svg.Path({{0, 0}, {1, 1}}, "line");
  const std::string html = svg.Done().str();
  for (const char* part :
       {"role=\"img\" aria-label=\"A &lt;plot&gt;: what it shows\"", "<title>tip &amp; more</title>",
        "<circle cx=\"1.0\" cy=\"2.0\" r=\"3.0\" class=\"plain\"/>", "d=\"M0.0 0.0L1.0 1.0\""})
    EXPECT_NE(html.find(part), std::string::npos) << part << " in " << html;
}

}  // namespace
}  // namespace warmleg::report

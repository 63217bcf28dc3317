// Small SVG plots: marks in a fixed coordinate system, coloured by the classes of the page's style sheet.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/report/html.h"

namespace warmleg::report {

struct Point {
  double x = 0, y = 0;
};

// From values to coordinates; `low` may lie at the larger coordinate.
struct Scale {
  double low = 0, high = 1;   // values
  double from = 0, to = 100;  // where they lie
  double operator()(double value) const;
};

// Where a plot's data lie.
struct Frame {
  double left = 0, top = 0, width = 0, height = 0;
  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

// About `count` round numbers (1, 2 or 5 times a power of ten) within [low, high].
std::vector<double> Ticks(double low, double high, int count);
// "1200", "0.25": as many places as the step of the ticks needs.
std::string TickText(double value, const std::vector<double>& ticks);

class Svg {
 public:
  // `title` names the plot to a screen reader, `description` says what is to be seen.
  Svg(double width, double height, std::string_view title, std::string_view description);

  void Line(Point a, Point b, std::string_view kind);
  void Path(const std::vector<Point>& points, std::string_view kind);
  // `tip` is shown by the browser when the pointer rests on the mark.
  void Rect(const Frame& frame, std::string_view kind, std::string_view tip = {});
  void Circle(Point centre, double radius, std::string_view kind, std::string_view tip = {});
  void Diamond(Point centre, double radius, std::string_view kind, std::string_view tip = {});
  void Square(Point centre, double radius, std::string_view kind, std::string_view tip = {});
  void Triangle(Point centre, double radius, std::string_view kind, std::string_view tip = {});
  void Cross(Point centre, double radius, std::string_view kind, std::string_view tip = {});
  // `kind` may hold "end" or "middle" to anchor the text there.
  void Words(Point at, std::string_view text, std::string_view kind = "label");

  // Grid lines and tick texts; the scale runs from the frame's bottom to its top, or from left to right.
  Scale YAxis(const Frame& frame, double low, double high, int ticks, std::string_view unit);
  Scale XAxis(const Frame& frame, double low, double high, int ticks, std::string_view unit);

  Html Done() const;

 private:
  void Mark(const Html& shape, std::string_view kind, std::string_view tip);
  double width_, height_;
  std::string title_, description_;
  Html body_;
};

}  // namespace warmleg::report

#include "harness/report/svg.h"

#include <algorithm>
#include <cmath>

namespace warmleg::report {
namespace {

// "M x y L x y ..."
std::string PathData(const std::vector<Point>& points) {
  std::string data;
  for (size_t i = 0; i < points.size(); ++i)
    data += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", points[i].x, points[i].y);
  return data;
}

}  // namespace

double Scale::operator()(double value) const {
  if (high == low) return (from + to) / 2;
  return from + (value - low) / (high - low) * (to - from);
}

std::vector<double> Ticks(double low, double high, int count) {
  if (!(high > low) || !std::isfinite(high - low)) return {low};
  const double rough = (high - low) / std::max(count, 1);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power * 10;
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * 0.999) {
      step = factor * power;
      break;
    }
  std::vector<double> ticks;
  constexpr double kSlack = 1e-9;  // a tick at the very end counts
  const auto first = static_cast<int64_t>(std::ceil(low / step - kSlack));
  const auto last = static_cast<int64_t>(std::floor(high / step + kSlack));
  for (int64_t i = first; i <= last; ++i) ticks.push_back(static_cast<double>(i) * step);
  return ticks;
}

std::string TickText(double value, const std::vector<double>& ticks) {
  const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : 1;
  const int places = std::clamp(static_cast<int>(-std::floor(std::log10(step) + 1e-9)), 0, 6);
  return fmt::format("{:.{}f}", value, places);
}

Svg::Svg(double width, double height, std::string_view title, std::string_view description)
    : width_(width), height_(height), title_(title), description_(description) {}

void Svg::Mark(const Html& shape, std::string_view kind, std::string_view tip) {
  if (tip.empty())
    body_ += Format("<{} class=\"{}\"/>\n", shape, kind);
  else
    body_ += Format("<g><title>{}</title><{} class=\"{}\"/></g>\n", tip, shape, kind);
}

void Svg::Line(Point a, Point b, std::string_view kind) {
  Mark(Format("line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"", a.x, a.y, b.x, b.y), kind, {});
}

void Svg::Path(const std::vector<Point>& points, std::string_view kind) {
  if (points.size() == 1) return Circle(points[0], 1.2, fmt::format("{} dot", kind));
  if (!points.empty()) Mark(Format("path d=\"{}\"", PathData(points)), kind, {});
}

void Svg::Rect(const Frame& f, std::string_view kind, std::string_view tip) {
  Mark(Format("rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"", f.left, f.top,
              std::max(f.width, 0.5), std::max(f.height, 0.5)),
       kind, tip);
}

void Svg::Circle(Point c, double r, std::string_view kind, std::string_view tip) {
  Mark(Format("circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"", c.x, c.y, r), kind, tip);
}

void Svg::Diamond(Point c, double r, std::string_view kind, std::string_view tip) {
  const std::string data = PathData({{c.x, c.y - r}, {c.x + r, c.y}, {c.x, c.y + r}, {c.x - r, c.y}});
  Mark(Format("path d=\"{}Z\"", data), kind, tip);
}

void Svg::Square(Point c, double r, std::string_view kind, std::string_view tip) {
  Rect({c.x - r, c.y - r, 2 * r, 2 * r}, kind, tip);
}

void Svg::Triangle(Point c, double r, std::string_view kind, std::string_view tip) {
  const std::string data = PathData({{c.x, c.y - r}, {c.x + r, c.y + r}, {c.x - r, c.y + r}});
  Mark(Format("path d=\"{}Z\"", data), kind, tip);
}

void Svg::Cross(Point c, double r, std::string_view kind, std::string_view tip) {
  const std::string data =
      PathData({{c.x - r, c.y - r}, {c.x + r, c.y + r}}) + PathData({{c.x - r, c.y + r}, {c.x + r, c.y - r}});
  Mark(Format("path d=\"{}\"", data), kind, tip);
}

void Svg::Words(Point at, std::string_view text, std::string_view kind) {
  body_ += Format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", at.x, at.y, kind, text);
}

Scale Svg::YAxis(const Frame& f, double low, double high, int count, std::string_view unit) {
  const Scale scale{low, high, f.bottom(), f.top};
  const std::vector<double> ticks = Ticks(low, high, count);
  for (const double tick : ticks) {
    Line({f.left, scale(tick)}, {f.right(), scale(tick)}, "grid");
    Words({f.left - 8, scale(tick) + 4}, TickText(tick, ticks), "label end");
  }
  if (!unit.empty()) Words({f.left - 8, f.top - 10}, unit, "unit end");
  return scale;
}

Scale Svg::XAxis(const Frame& f, double low, double high, int count, std::string_view unit) {
  const Scale scale{low, high, f.left, f.right()};
  const std::vector<double> ticks = Ticks(low, high, count);
  Line({f.left, f.bottom()}, {f.right(), f.bottom()}, "axis");
  for (const double tick : ticks) {
    Line({scale(tick), f.bottom()}, {scale(tick), f.bottom() + 4}, "axis");
    Words({scale(tick), f.bottom() + 18}, TickText(tick, ticks), "label middle");
  }
  if (!unit.empty()) Words({f.right(), f.bottom() + 34}, unit, "unit end");
  return scale;
}

Html Svg::Done() const {
  return Format(
      "<div class=\"plot\"><svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}: "
      "{}\">\n{}</svg></div>",
      width_, height_, title_, description_, body_);
}

}  // namespace warmleg::report

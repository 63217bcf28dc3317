#include "backend/bench/replay.h"

#include <numeric>
#include <random>

#include "backend/vt/error.h"

namespace vt::bench {

namespace {

constexpr int kFrom = 0, kTo = 1;             // stamps
constexpr double kBatch_s = 2e-3;             // of one timed batch, at least
constexpr double kMeasure_s = 0.05;           // of all batches of a call
constexpr int kMostCalls = 256;               // in one batch
constexpr size_t kPattern = size_t{1} << 20;  // bytes of random numbers, repeated

struct Span {
  std::byte *begin, *end;
};

std::byte* EndOf(const Tensor& t) {
  int64_t last = 0;
  for (int d = 0; d < t.rank; ++d) last += (t.dim(d) - 1) * t.step(d);
  return t.data + (last + 1) * SizeOf(t.dtype);
}

std::vector<Span> SpansOf(const std::vector<Tensor*>& tensors) {
  std::vector<Span> all;
  for (const Tensor* t : tensors) {
    if (*t) all.push_back({t->data, EndOf(*t)});
  }
  std::sort(all.begin(), all.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::vector<Span> joined;
  for (const Span& span : all) {
    if (!joined.empty() && span.begin < joined.back().end) {
      joined.back().end = std::max(joined.back().end, span.end);
    } else {
      joined.push_back(span);
    }
  }
  return joined;
}

// Random values in [-1, 1); the upper half of a float32 is a bf16.
std::vector<std::byte> Pattern(DType dtype) {
  std::mt19937 random(20261130);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<std::byte> bytes(kPattern);
  const auto size = static_cast<size_t>(SizeOf(dtype));
  for (size_t at = 0; at < kPattern; at += size) {
    const float value = uniform(random);
    const auto* first = reinterpret_cast<const std::byte*>(&value);
    std::copy(first + 4 - size, first + 4, bytes.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return bytes;
}

// The pattern once from the host, then doubled on the device.
void FillRandom(Queue& queue, DType dtype, std::byte* data, size_t bytes) {
  static const std::vector<std::byte> patterns[] = {Pattern(DType::f32), Pattern(DType::bf16)};
  Backend& backend = queue.backend();
  size_t done = std::min(bytes, kPattern);
  backend.CopyIn(queue, data, patterns[dtype == DType::bf16 ? 1 : 0].data(), done);
  while (done < bytes) {
    const size_t n = std::min(done, bytes - done);
    backend.Copy(queue, data + done, data, n);
    done += n;
  }
}

}  // namespace

Stand::Stand(Queue& queue, const std::vector<Tensor*>& tensors) {
  const std::vector<Span> spans = SpansOf(tensors);
  std::vector<std::byte*> real;
  for (const Span& span : spans) {
    buffers_.push_back(queue.backend().Alloc(static_cast<size_t>(span.end - span.begin)));
    real.push_back(static_cast<std::byte*>(buffers_.back().data()));
  }
  std::vector<bool> filled(spans.size(), false);
  for (Tensor* t : tensors) {
    if (!*t) continue;
    size_t i = 0;
    while (t->data < spans[i].begin || t->data >= spans[i].end) ++i;
    t->data = real[i] + (t->data - spans[i].begin);
    if (t->dtype == DType::i32) {
      std::vector<int32_t> values(static_cast<size_t>(t->count()));
      std::iota(values.begin(), values.end(), 0);
      WriteInts(queue, *t, values);
    } else if (!filled[i]) {
      FillRandom(queue, t->dtype, real[i], static_cast<size_t>(spans[i].end - spans[i].begin));
    }
    filled[i] = true;
  }
  queue.backend().Synchronize(queue);
}

void WriteInts(Queue& queue, const Tensor& to, const std::vector<int32_t>& values) {
  queue.backend().CopyIn(queue, to.data, values.data(), values.size() * sizeof(int32_t));
}

uint64_t Footprint(const std::vector<Tensor*>& tensors) {
  uint64_t bytes = 0;
  for (const Span& span : SpansOf(tensors)) bytes += static_cast<uint64_t>(span.end - span.begin);
  return bytes;
}

double MedianSeconds(Queue& queue, int copies, const std::function<void(int)>& call) {
  Backend& backend = queue.backend();
  const auto timed = [&](const std::function<void()>& work) {
    backend.Stamp(queue, kFrom);
    work();
    backend.Stamp(queue, kTo);
    backend.Synchronize(queue);
    return backend.StampSeconds(queue, kFrom, kTo);
  };
  for (int i = 0; i < copies; ++i) call(i);  // first use: scratch, code, pages
  backend.Synchronize(queue);
  const double one = std::max(timed([&] { call(0); }), 1e-7);
  const int batch = std::clamp(static_cast<int>(kBatch_s / one), copies, std::max(copies, kMostCalls));
  const auto all = [&] {
    for (int i = 0; i < batch; ++i) call(i % copies);
  };
  std::unique_ptr<Graph> graph;
  if (backend.can_capture()) {
    try {
      backend.BeginCapture(queue);
      all();
      graph = backend.EndCapture(queue);
    } catch (...) {
      backend.AbandonCapture(queue);
      throw;
    }
    graph->Launch(queue);
    backend.Synchronize(queue);
  }
  std::vector<double> seconds;
  double total = 0;
  while (seconds.size() < 5 || total < kMeasure_s) {
    seconds.push_back(timed([&] { graph ? graph->Launch(queue) : all(); }) / batch);
    total += seconds.back() * batch;
    if (seconds.size() >= 5 && total > 20 * kMeasure_s) break;
  }
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

}  // namespace vt::bench

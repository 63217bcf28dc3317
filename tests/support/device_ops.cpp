#include "tests/support/device_ops.h"

#include <algorithm>
#include <numeric>

namespace testing_support {

namespace {

// A piece of host memory that tensors lie in, and its copy.
struct Span {
  std::byte *begin, *end;
  vt::Buffer copy;
};

std::byte* EndOf(const vt::Tensor& t) {
  int64_t last = 0;
  for (int d = 0; d < t.rank; ++d) last += (t.dim(d) - 1) * t.step(d);
  return t.data + (last + 1) * vt::SizeOf(t.dtype);
}

std::vector<Span> SpansOf(const std::vector<vt::Tensor*>& tensors) {
  std::vector<Span> all;
  for (const vt::Tensor* t : tensors) {
    if (*t) all.push_back({t->data, EndOf(*t), {}});
  }
  std::sort(all.begin(), all.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::vector<Span> joined;
  for (Span& span : all) {
    if (!joined.empty() && span.begin < joined.back().end) {
      joined.back().end = std::max(joined.back().end, span.end);
    } else {
      joined.push_back(std::move(span));
    }
  }
  return joined;
}

}  // namespace

DeviceOps::DeviceOps() : queue_(vt::GetBackend(TestDevice()).CreateQueue()) {}

vt::Tensor DeviceOps::Ascending(int32_t first, int64_t n) {
  std::vector<int32_t> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), first);
  return t_.Ints(values);
}

void DeviceOps::RunMirrored(const std::vector<vt::Tensor*>& tensors,
                            const std::function<void(vt::Queue&)>& run) {
  vt::Backend& backend = queue_->backend();
  std::vector<Span> spans = SpansOf(tensors);
  for (Span& span : spans) {
    const auto bytes = static_cast<size_t>(span.end - span.begin);
    span.copy = backend.Alloc(bytes);
    backend.CopyIn(*queue_, span.copy.data(), span.begin, bytes);
  }
  for (vt::Tensor* t : tensors) {
    for (const Span& span : spans) {
      if (!*t || t->data < span.begin || t->data >= span.end) continue;
      t->data = static_cast<std::byte*>(span.copy.data()) + (t->data - span.begin);
      break;
    }
  }
  run(*queue_);
  for (const Span& span : spans) {
    backend.CopyOut(*queue_, span.begin, span.copy.data(), static_cast<size_t>(span.end - span.begin));
  }
}

}  // namespace testing_support

// Comparisons of op results.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "tests/support/host_tensors.h"
#include "tests/support/reference_ops.h"

namespace testing_support {

// |got - want| <= tolerance * max(1, |want|) for every element; elements whose reference is NaN are not
// looked at.
inline testing::AssertionResult Near(const vt::Tensor& got, const reference::Values& want, double tolerance) {
  const reference::Values values = reference::All(got);
  if (values.size() != want.size()) {
    return testing::AssertionFailure() << values.size() << " elements, expected " << want.size();
  }
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i])) continue;
    if (!(std::abs(values[i] - want[i]) <= tolerance * std::max(1.0, std::abs(want[i])))) {
      return testing::AssertionFailure()
             << "element " << i << " is " << values[i] << ", expected " << want[i];
    }
  }
  return testing::AssertionSuccess();
}

// The same bits in every element.
inline testing::AssertionResult SameBits(const vt::Tensor& a, const vt::Tensor& b) {
  if (a.count() != b.count())
    return testing::AssertionFailure() << a.count() << " and " << b.count() << " elements";
  HostTensors copies(0);
  const vt::Tensor left = copies.Copy(a);
  const vt::Tensor right = copies.Copy(b);
  const int64_t size = vt::SizeOf(a.dtype);
  for (int64_t i = 0; i < a.count(); ++i) {
    if (std::memcmp(left.data + i * size, right.data + i * size, static_cast<size_t>(size)) != 0) {
      return testing::AssertionFailure() << "element " << i << " differs";
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace testing_support

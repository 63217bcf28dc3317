#include "backend/vt/tensor.h"

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>
#include <vector>

namespace {

class TensorViews : public testing::Test {
 protected:
  TensorViews() { std::iota(data_.begin(), data_.end(), 0.0F); }
  vt::Tensor Make(std::initializer_list<int64_t> shape) {
    return vt::MakeTensor(data_.data(), vt::DType::f32, shape);
  }
  std::vector<float> data_ = std::vector<float>(120);
};

TEST_F(TensorViews, CountsElementsAndBytes) {
  const vt::Tensor t = Make({4, 5, 6});
  EXPECT_EQ(t.count(), 120);
  EXPECT_EQ(t.bytes(), 480);
  EXPECT_TRUE(t.contiguous());
  EXPECT_EQ(vt::MakeTensor(nullptr, vt::DType::bf16, {3, 7}).bytes(), 42);
  EXPECT_EQ(vt::Tensor{}.count(), 0);
  EXPECT_FALSE(vt::Tensor{});
  EXPECT_EQ(vt::ShapeText(t), "[4, 5, 6] f32");
}

TEST_F(TensorViews, RowsColumnsAndElements) {
  const vt::Tensor t = Make({4, 30});
  EXPECT_EQ(t.Rows(1, 2).as<float>()[0], 30);
  EXPECT_TRUE(t.Rows(1, 2).contiguous());
  const vt::Tensor cols = t.Cols(10, 12);
  EXPECT_EQ(cols.dim(1), 12);
  EXPECT_EQ(cols.step(0), 30);
  EXPECT_EQ(cols.as<float>()[cols.step(0)], 40);
  EXPECT_FALSE(cols.contiguous());
  EXPECT_TRUE(cols.Rows(2, 1).contiguous()) << "one row has no gap";
  EXPECT_EQ(cols.bytes(), 4 * 12 * 4);
  EXPECT_EQ(t.At(3).rank, 1);
  EXPECT_EQ(t.At(3).as<float>()[0], 90);
}

TEST_F(TensorViews, SplitsTheLastDimensionOfASlice) {
  const vt::Tensor heads = Make({4, 30}).Cols(6, 24).SplitLast(3, 8);
  EXPECT_EQ(vt::ShapeText(heads), "[4, 3, 8] f32");
  EXPECT_EQ(heads.as<float>()[2 * heads.step(0) + heads.step(1) + 5], 2 * 30 + 6 + 8 + 5);
  EXPECT_EQ(heads.At(1).At(2).as<float>()[0], 30 + 6 + 16);
}

TEST_F(TensorViews, RefuseWhatLiesOutside) {
  const vt::Tensor t = Make({4, 30});
  EXPECT_THROW(t.Rows(3, 2), std::logic_error);
  EXPECT_THROW(t.Rows(-1, 1), std::logic_error);
  EXPECT_THROW(t.Cols(29, 2), std::logic_error);
  EXPECT_THROW(t.At(4), std::logic_error);
  EXPECT_THROW(t.SplitLast(4, 7), std::logic_error);
  EXPECT_THROW(t.Reshape({4, 31}), std::logic_error);
  EXPECT_THROW(t.Cols(0, 3).Reshape({12}), std::logic_error);
  EXPECT_EQ(vt::ShapeText(t.Reshape({2, 60})), "[2, 60] f32");
}

}  // namespace

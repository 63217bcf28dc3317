// Made-up weights and acceptance on the host. Bytes of a fill: the tensor once; bound: the hash.
#include "backend/cpu/made_up.h"

#include <algorithm>

#include "backend/vt/random_bits.h"

namespace vt::cpu {

namespace {

template <class T, class Convert>
void Fill(T* out, int64_t n, const RandomFill& fill, Convert convert) {
#pragma omp parallel for schedule(static)
  for (int64_t group = 0; group < (n + kFillGroup - 1) / kFillGroup; ++group) {
    const uint64_t word = RandomWord(fill.key, static_cast<uint64_t>(group));
    const int64_t first = group * kFillGroup;
    const auto count = static_cast<int>(std::min<int64_t>(kFillGroup, n - first));
    for (int lane = 0; lane < count; ++lane)
      out[first + lane] = convert(FillValue(word, lane, fill.amplitude, fill.centre));
  }
}

void FillTensor(Queue&, const Tensor& out, const RandomFill& fill) {
  if (out.dtype == DType::bf16)
    Fill(out.as<uint16_t>(), out.count(), fill, RoundToBf16);
  else
    Fill(out.as<float>(), out.count(), fill, [](float v) { return v; });
}

void Accept(Queue&, const ForcedAccept& args) {
  int32_t& round = args.round.as<int32_t>()[0];
  const auto* block = args.block.as<int32_t>();
  auto* target = args.target.as<int32_t>();
  const auto drafts = static_cast<int32_t>(args.block.dim(0)) - 1;
  const int32_t accepted = std::min(args.counts.as<int32_t>()[round % args.counts.dim(0)], drafts);
  for (int32_t i = 0; i < accepted; ++i) target[i] = block[i + 1];
  if (accepted < drafts && target[accepted] == block[accepted + 1])
    target[accepted] = target[accepted] == 0 ? 1 : target[accepted] - 1;
  ++round;
}

}  // namespace

const MadeUpKernels kMadeUpKernels = {.fill = FillTensor, .accept = Accept};

}  // namespace vt::cpu

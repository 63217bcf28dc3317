#include "tests/support/reference_ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace reference {

namespace {

using vt::DType;
using vt::Tensor;

double FromBf16(uint16_t half) {
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Round to nearest even through the spacing of bf16 numbers around x.
double ToBf16(double x) {
  if (x == 0) return x;
  int exponent = 0;
  std::frexp(x, &exponent);
  const double spacing = std::ldexp(1.0, exponent - 8);
  return std::nearbyint(x / spacing) * spacing;
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double Silu(double x) { return x * Sigmoid(x); }
int32_t Int(const Tensor& t, int64_t i) { return t.as<int32_t>()[i * t.step(0)]; }
size_t Size(int64_t n) { return static_cast<size_t>(n); }

// The norm of one vector with one weight each.
Values Norm(const Values& x, const Tensor& weight, double eps, bool one_plus) {
  double squares = 0;
  for (const double v : x) squares += v * v;
  const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps);
  Values out;
  for (size_t i = 0; i < x.size(); ++i) {
    out.push_back(x[i] * scale * ((one_plus ? 1 : 0) + At(weight, static_cast<int64_t>(i))));
  }
  return out;
}

void Append(Values& to, const Values& more) { to.insert(to.end(), more.begin(), more.end()); }

struct KeyValue {
  Values key, value;
};

Values HeadRow(const Tensor& t, int64_t row, int64_t head) {
  Values out;
  for (int64_t c = 0; c < t.dim(2); ++c) out.push_back(At(t, row, head, c));
  return out;
}

// softmax(q . keys * scale) values, in two plain passes.
Values Attend(const Values& q, const std::vector<KeyValue>& seen, double scale) {
  Values scores;
  for (const KeyValue& kv : seen) {
    scores.push_back(scale * std::inner_product(q.begin(), q.end(), kv.key.begin(), 0.0));
  }
  const double max = *std::max_element(scores.begin(), scores.end());
  Values out(q.size(), 0.0);
  double sum = 0;
  for (size_t j = 0; j < seen.size(); ++j) {
    const double p = std::exp(scores[j] - max);
    sum += p;
    for (size_t c = 0; c < out.size(); ++c) out[c] += p * seen[j].value[c];
  }
  for (double& v : out) v /= sum;
  return out;
}

}  // namespace

double At(const Tensor& t, int64_t i, int64_t j, int64_t k, int64_t l) {
  const int64_t at[Tensor::kMaxRank] = {i, j, k, l};
  int64_t offset = 0;
  for (int d = 0; d < t.rank; ++d) offset += at[d] * t.step(d);
  switch (t.dtype) {
    case DType::f32:
      return t.as<float>()[offset];
    case DType::bf16:
      return FromBf16(t.as<uint16_t>()[offset]);
    case DType::i32:
      return t.as<int32_t>()[offset];
  }
  return std::numeric_limits<double>::quiet_NaN();
}

Values All(const Tensor& t) {
  const auto size = [&](int d) { return d < t.rank ? t.dim(d) : 1; };
  Values out;
  for (int64_t i = 0; i < size(0); ++i) {
    for (int64_t j = 0; j < size(1); ++j) {
      for (int64_t k = 0; k < size(2); ++k) {
        for (int64_t l = 0; l < size(3); ++l) out.push_back(At(t, i, j, k, l));
      }
    }
  }
  return out;
}

Values Embedding(const vt::EmbeddingArgs& a) {
  Values out;
  for (int64_t r = 0; r < a.ids.dim(0); ++r) {
    for (int64_t c = 0; c < a.table.dim(1); ++c) out.push_back(At(a.table, Int(a.ids, r), c) * a.scale);
  }
  return out;
}

Values RmsNorm(const vt::RmsNormArgs& a) {
  Values out;
  for (int64_t r = 0; r < a.x.dim(0); ++r) {
    if (a.x.rank == 2) {
      Values x;
      for (int64_t c = 0; c < a.x.dim(1); ++c) x.push_back(At(a.x, r, c));
      Append(out, Norm(x, a.weight, a.eps, a.one_plus));
    } else {
      for (int64_t h = 0; h < a.x.dim(1); ++h)
        Append(out, Norm(HeadRow(a.x, r, h), a.weight, a.eps, a.one_plus));
    }
  }
  return out;
}

AddRmsNormResult AddRmsNorm(const vt::AddRmsNormArgs& a) {
  AddRmsNormResult result;
  for (int64_t r = 0; r < a.h.dim(0); ++r) {
    Values h;
    for (int64_t c = 0; c < a.h.dim(1); ++c) h.push_back(At(a.h, r, c) + At(a.delta, r, c));
    Append(result.h, h);
    if (a.out) Append(result.out, Norm(h, a.weight, a.eps, a.one_plus));
  }
  return result;
}

Values MatMul(const vt::MatMulArgs& a) {
  const bool round = a.precision == vt::Precision::bf16 && a.x.dim(0) > vt::kMaxRows;
  Values out;
  for (int64_t r = 0; r < a.x.dim(0); ++r) {
    Values x;
    for (int64_t k = 0; k < a.x.dim(1); ++k) x.push_back(At(a.x, r, k));
    if (a.norm) x = Norm(x, a.norm, a.eps, a.one_plus);
    Values row;
    for (int64_t n = 0; n < a.w.dim(0); ++n) {
      double sum = a.bias ? At(a.bias, n) : 0;
      if (a.residual) sum += At(a.residual, r, n);
      for (int64_t k = 0; k < a.x.dim(1); ++k)
        sum += (round ? ToBf16(x[Size(k)]) : x[Size(k)]) * At(a.w, n, k);
      row.push_back(sum);
    }
    const size_t half = row.size() / 2;
    for (size_t i = 0; a.silu_mul && i < half; ++i) row[i] = Silu(row[i]) * row[half + i];
    if (a.silu_mul) row.resize(half);
    Append(out, row);
  }
  return out;
}

Values SiluMul(const vt::SiluMulArgs& a) {
  Values out;
  const int64_t m = a.out.dim(1);
  for (int64_t r = 0; r < a.out.dim(0); ++r) {
    for (int64_t i = 0; i < m; ++i) out.push_back(Silu(At(a.gate_up, r, i)) * At(a.gate_up, r, m + i));
  }
  return out;
}

// The angle is float32 by contract: at position 1e5 its rounding is part of the result.
Values Rope(const vt::RopeArgs& a) {
  Values out;
  const int64_t half = a.inv_freq.dim(0);
  for (int64_t r = 0; r < a.x.dim(0); ++r) {
    for (int64_t h = 0; h < a.x.dim(1); ++h) {
      Values x = HeadRow(a.x, r, h);
      for (int64_t i = 0; i < half; ++i) {
        const double angle = static_cast<float>(Int(a.positions, r)) * a.inv_freq.as<float>()[i];
        const double first = x[Size(i)];
        const double second = x[Size(half + i)];
        x[Size(i)] = first * std::cos(angle) - second * std::sin(angle);
        x[Size(half + i)] = second * std::cos(angle) + first * std::sin(angle);
      }
      Append(out, x);
    }
  }
  return out;
}

Values Attention(const vt::AttentionArgs& a) {
  Values out;
  const int64_t group = a.q.dim(1) / a.k.dim(1);
  for (int64_t r = 0; r < a.q.dim(0); ++r) {
    for (int64_t h = 0; h < a.q.dim(1); ++h) {
      std::vector<KeyValue> seen;
      for (int64_t j = 0; j <= Int(a.positions, r); ++j) {
        seen.push_back({HeadRow(a.k, j, h / group), HeadRow(a.v, j, h / group)});
      }
      Append(out, Attend(HeadRow(a.q, r, h), seen, a.scale));
    }
  }
  return out;
}

StateResult CausalConv1d(const vt::CausalConv1dArgs& a) {
  StateResult result;
  result.state = All(a.state);
  const int64_t rows = a.x.dim(0);
  const int64_t channels = a.x.dim(1);
  const int64_t kept = a.weight.dim(1) - 1;
  const auto input = [&](int64_t r, int64_t c) { return r < 0 ? At(a.state, kept + r, c) : At(a.x, r, c); };
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (int64_t j = 0; j <= kept; ++j) sum += At(a.weight, c, j) * input(r - kept + j, c);
      result.out.push_back(Silu(sum));
    }
  }
  for (int64_t j = 0; !a.hold && j < kept; ++j) {
    for (int64_t c = 0; c < channels; ++c) result.state[Size(j * channels + c)] = input(rows - kept + j, c);
  }
  return result;
}

Values CommitConv(const vt::CommitConvArgs& a) {
  Values states;
  const int64_t kept = a.states.dim(1);
  const int64_t rows = Int(a.last, 0) + 1;
  for (int64_t layer = 0; layer < a.x.dim(0); ++layer) {
    for (int64_t j = 0; j < kept; ++j) {
      const int64_t i = std::max<int64_t>(rows, 0) + j;  // from the oldest input that was kept
      for (int64_t c = 0; c < a.x.dim(2); ++c) {
        states.push_back(i < kept ? At(a.states, layer, i, c) : At(a.x, layer, i - kept, c));
      }
    }
  }
  return states;
}

StateResult GatedDeltaRule(const vt::GatedDeltaRuleArgs& a) {
  const int64_t rows = a.q.dim(0);
  const int64_t dk = a.q.dim(2);
  const int64_t nv = a.v.dim(1);
  const int64_t dv = a.v.dim(2);
  StateResult result;
  result.state = All(a.state);
  result.out.resize(Size(rows * nv * dv));
  result.changes.resize(Size(rows * nv * dv));
  result.decays.resize(Size(rows * nv));
  const auto unit = [](Values x, double scale) {
    const double norm = 1 / std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0) + 1e-6);
    for (double& v : x) v *= norm * scale;
    return x;
  };
  for (int64_t h = 0; h < nv; ++h) {
    const int64_t key_head = h / (nv / a.q.dim(1));
    std::vector<Values> s(Size(dk), Values(Size(dv)));
    for (int64_t i = 0; i < dk; ++i) {
      for (int64_t c = 0; c < dv; ++c) s[Size(i)][Size(c)] = At(a.state, h, i, c);
    }
    for (int64_t r = 0; r < rows; ++r) {
      const Values q = unit(HeadRow(a.q, r, key_head), 1 / std::sqrt(static_cast<double>(dk)));
      const Values k = unit(HeadRow(a.k, r, key_head), 1);
      const double decay =
          std::exp(-std::exp(At(a.a_log, h)) * std::log1p(std::exp(At(a.a, r, h) + At(a.dt_bias, h))));
      const double beta = Sigmoid(At(a.b, r, h));
      const Values raw_k = HeadRow(a.k, r, key_head);
      const double k_norm =
          1 / std::sqrt(std::inner_product(raw_k.begin(), raw_k.end(), raw_k.begin(), 0.0) + 1e-6);
      result.decays[Size(r * nv + h)] = decay;
      for (int64_t c = 0; c < dv; ++c) {
        double seen = 0;
        for (int64_t i = 0; i < dk; ++i) seen += (s[Size(i)][Size(c)] *= decay) * k[Size(i)];
        const double change = (At(a.v, r, h, c) - seen) * beta;
        double out = 0;
        for (int64_t i = 0; i < dk; ++i) out += (s[Size(i)][Size(c)] += k[Size(i)] * change) * q[Size(i)];
        result.out[Size((r * nv + h) * dv + c)] = out;
        result.changes[Size((r * nv + h) * dv + c)] = change * k_norm;
      }
    }
    for (int64_t i = 0; !a.changes && i < dk; ++i) {
      std::copy(s[Size(i)].begin(), s[Size(i)].end(), result.state.begin() + (h * dk + i) * dv);
    }
  }
  return result;
}

Values CommitDelta(const vt::CommitDeltaArgs& a) {
  Values states;
  const int64_t nv = a.changes.dim(2);
  const int64_t served = nv / a.k.dim(2);
  for (int64_t layer = 0; layer < a.k.dim(0); ++layer) {
    const vt::Tensor k = a.k.At(layer);
    const vt::Tensor changes = a.changes.At(layer);
    for (int64_t h = 0; h < nv; ++h) {
      for (int64_t i = 0; i < a.k.dim(3); ++i) {
        for (int64_t c = 0; c < a.changes.dim(3); ++c) {
          double s = At(a.states, layer, h, i, c);
          for (int64_t r = 0; r <= Int(a.last, 0); ++r) {
            s = s * At(a.decays, layer, r, h) + At(k, r, h / served, i) * At(changes, r, h, c);
          }
          states.push_back(s);
        }
      }
    }
  }
  return states;
}

Values GatedRmsNorm(const vt::GatedRmsNormArgs& a) {
  Values out;
  for (int64_t r = 0; r < a.x.dim(0); ++r) {
    for (int64_t h = 0; h < a.x.dim(1); ++h) {
      Values y = Norm(HeadRow(a.x, r, h), a.weight, a.eps, false);
      for (size_t c = 0; c < y.size(); ++c) y[c] *= Silu(At(a.z, r, h, static_cast<int64_t>(c)));
      Append(out, y);
    }
  }
  return out;
}

Values SigmoidGate(const vt::SigmoidGateArgs& a) {
  Values out = All(a.x);
  const Values gate = All(a.gate);
  for (size_t i = 0; i < out.size(); ++i) out[i] *= Sigmoid(gate[i]);
  return out;
}

Values IndexSelect(const vt::IndexSelectArgs& a) {
  Values out;
  for (int64_t r = 0; r < a.index.dim(0); ++r) {
    for (int64_t c = 0; c < a.src.dim(1); ++c) out.push_back(At(a.src, Int(a.index, r), c));
  }
  return out;
}

Values IndexCopy(const vt::IndexCopyArgs& a) {
  Values out = All(a.dst);
  for (int64_t r = 0; r < a.index.dim(0); ++r) {
    for (int64_t c = 0; c < a.src.dim(1); ++c)
      out[Size(Int(a.index, r) * a.dst.dim(1) + c)] = At(a.src, r, c);
  }
  return out;
}

Values DFlashGroupedConv(const vt::DFlashGroupedConvArgs& a) {
  Values out;
  const int64_t group = a.y.dim(1) / a.delta.dim(3);
  for (int64_t i = 0; i < a.y.dim(0); ++i) {
    for (int64_t c = 0; c < a.y.dim(1); ++c) {
      double sum = a.residual ? At(a.residual, i, c) : 0;
      for (int64_t t = 0; t < a.base.dim(1); ++t) {
        const double y = i - t < 0 ? 0 : At(a.y, i - t, c);
        sum += (At(a.base, a.side, t, c) + At(a.delta, i, a.side, t, c / group)) * y;
      }
      out.push_back(sum);
    }
  }
  return out;
}

Values DFlashBlockAttn(const vt::DFlashBlockAttnArgs& a) {
  Values out;
  const int64_t group = a.q.dim(1) / a.k_block.dim(1);
  const int64_t p = Int(a.start, 0);
  for (int64_t i = 0; i < a.q.dim(0); ++i) {
    for (int64_t h = 0; h < a.q.dim(1); ++h) {
      std::vector<KeyValue> seen;
      for (int64_t j = 0; j < p; ++j) {
        if (a.window != 0 && p + i - j >= a.window) continue;
        const int64_t row =
            a.pages ? Int(a.pages, j / a.page_size) * int64_t{a.page_size} + j % a.page_size : j;
        seen.push_back({HeadRow(a.k_ctx, row, h / group), HeadRow(a.v_ctx, row, h / group)});
      }
      for (int64_t m = 0; m < a.q.dim(0); ++m) {
        if (a.causal && m > i) continue;
        if (a.window != 0 && std::abs(i - m) >= a.window) continue;
        seen.push_back({HeadRow(a.k_block, m, h / group), HeadRow(a.v_block, m, h / group)});
      }
      Append(out, Attend(HeadRow(a.q, i, h), seen, a.scale));
    }
  }
  return out;
}

TopKResult TopKPairs(const vt::TopKPairsArgs& a) {
  TopKResult result;
  const int64_t k = a.values.dim(1);
  for (int64_t r = 0; r < a.x.dim(0); ++r) {
    Values z;
    for (int64_t i = 0; i < a.x.dim(1); ++i) {
      const double scaled = At(a.x, r, i) * a.multiplier;
      z.push_back(a.softcap > 0 ? std::tanh(scaled / a.softcap) * a.softcap : scaled);
    }
    std::vector<int32_t> order(z.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t l, int32_t m) { return z[Size(l)] > z[Size(m)]; });
    for (int64_t i = 0; i < k; ++i) {
      result.ids.push_back(order[Size(i)]);
      result.values.push_back(z[Size(order[Size(i)])]);
    }
  }
  return result;
}

Values SelectorEdges(const vt::SelectorEdgesArgs& a) {
  Values out;
  const int64_t k = a.ids.dim(1);
  for (int64_t t = 0; t < a.ids.dim(0); ++t) {
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = 0; j < k; ++j) {
        if (t == 0 && i > 0) {
          out.push_back(std::numeric_limits<double>::quiet_NaN());
          continue;
        }
        const auto before = t == 0 ? Int(a.anchor, 0) : static_cast<int32_t>(At(a.ids, t - 1, i));
        const auto after = static_cast<int32_t>(At(a.ids, t, j));
        double sum = At(a.values, t, j);
        for (int64_t r = 0; r < a.hidden.dim(1); ++r) {
          sum += At(a.predecessor, before, r) * At(a.hidden, t, r) * At(a.successor, after, r);
        }
        out.push_back(sum);
      }
    }
  }
  return out;
}

std::vector<int32_t> PathWalk(const vt::PathWalkArgs& a) {
  std::vector<int32_t> out;
  int64_t from = 0;
  for (int64_t t = 0; t < a.ids.dim(0); ++t) {
    int64_t best = 0;
    for (int64_t j = 1; j < a.ids.dim(1); ++j) {
      if (At(a.edges, t, from, j) > At(a.edges, t, from, best)) best = j;
    }
    out.push_back(static_cast<int32_t>(At(a.ids, t, best)));
    from = best;
  }
  return out;
}

std::vector<int32_t> ArgMax(const vt::ArgMaxArgs& a) {
  std::vector<int32_t> out;
  for (int64_t r = 0; r < a.x.dim(0); ++r) {
    int64_t best = 0;
    for (int64_t i = 1; i < a.x.dim(1); ++i) {
      if (At(a.x, r, i) > At(a.x, r, best)) best = i;
    }
    out.push_back(static_cast<int32_t>(best));
  }
  return out;
}

AcceptResult AcceptGreedy(const vt::AcceptGreedyArgs& a) {
  AcceptResult result{};
  const int64_t rows = a.block.dim(0);
  std::vector<int32_t> fresh;
  bool equal = true;
  for (int64_t i = 0; i < rows && equal; ++i) {
    fresh.push_back(Int(a.target, i));
    equal = i + 1 < rows && Int(a.block, i + 1) == Int(a.target, i);
    if (equal) ++result.accepted;
  }
  const int32_t position = Int(a.position, 0);
  for (const int32_t token : fresh) {
    if (position + 1 + static_cast<int32_t>(result.tokens.size()) >= Int(a.limit, 0)) break;
    result.tokens.push_back(token);
    bool stop = false;
    for (int64_t i = 0; a.stop_ids && i < a.stop_ids.dim(0); ++i) stop = stop || Int(a.stop_ids, i) == token;
    if (stop) break;
  }
  result.emitted = static_cast<int32_t>(result.tokens.size());
  result.position = position + result.emitted;
  result.last = result.emitted - 1;
  result.newest = result.tokens.back();
  return result;
}

}  // namespace reference

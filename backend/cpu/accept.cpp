// The end of a greedy round.
#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "backend/cpu/kernels.h"

namespace vt::cpu {

void AcceptGreedy(Queue&, const AcceptGreedyArgs& args) {
  const auto* block = args.block.as<int32_t>();
  const auto* target = args.target.as<int32_t>();
  int32_t& position = args.position.as<int32_t>()[0];
  const int32_t room = args.limit.as<int32_t>()[0] - position - 1;  // tokens that may still follow the anchor
  if (room < 1) {
    throw std::logic_error(fmt::format("op AcceptGreedy: position {} leaves no room below limit {}", position,
                                       args.limit.as<int32_t>()[0]));
  }
  const auto drafts = static_cast<int32_t>(args.block.dim(0)) - 1;
  int32_t accepted = 0;
  while (accepted < drafts && block[accepted + 1] == target[accepted]) ++accepted;
  // an accepted draft equals the target's argmax: the new tokens are target[0..accepted]
  int32_t emitted = std::min(accepted + 1, room);
  const auto stops = [&](int32_t token) {
    if (!args.stop_ids) return false;
    const auto* first = args.stop_ids.as<int32_t>();
    const auto* last = first + args.stop_ids.dim(0);
    return std::find(first, last, token) != last;
  };
  auto* result = args.result.as<int32_t>();
  for (int32_t i = 0; i < emitted; ++i) {
    result[2 + i] = target[i];
    if (stops(target[i])) emitted = i + 1;
  }
  result[0] = accepted;
  result[1] = emitted;
  position += emitted;
  args.last.as<int32_t>()[0] = emitted - 1;
  args.newest.as<int32_t>()[0] = target[emitted - 1];
}

}  // namespace vt::cpu

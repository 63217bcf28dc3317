// On which kind of device a campaign computed, from what its legs say.
#pragma once

#include "harness/record/result.h"

namespace warmleg::record {

// Every op ran on the cpu device. The environment may still describe a GPU: the one whose clocks were
// watched.
inline bool ComputedOnCpu(const Result& result) {
  bool any = false;
  for (const Leg& leg : result.legs) {
    for (const Provider& provider : leg.providers) {
      if (provider.device != "cpu") return false;
      any = true;
    }
  }
  return any;
}

}  // namespace warmleg::record

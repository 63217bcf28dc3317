// A captured graph and what it holds.
#pragma once

#include "backend/hip/backend.h"

namespace vt::hip::WARMLEG_VENDOR {

class RocmGraph final : public Graph {
 public:
  // Takes over `graph`, also when it throws.
  RocmGraph(RocmQueue& queue, hipGraph_t graph, Recording recording);
  ~RocmGraph() override;
  RocmGraph(const RocmGraph&) = delete;
  RocmGraph& operator=(const RocmGraph&) = delete;

  // Only on the queue that captured it: its scratch and its stamps are that queue's. Throws RefusedError.
  void Launch(Queue& queue) override;

 private:
  RocmBackend& backend_;
  const Queue* queue_;
  Recording recording_;
  hipGraphExec_t exec_ = nullptr;
};

}  // namespace vt::hip::WARMLEG_VENDOR

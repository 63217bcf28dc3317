#include "backend/hip/graph.h"

#include "backend/vt/error.h"
#include "backend/vt/stats.h"

namespace vt::hip::WARMLEG_VENDOR {

RocmGraph::RocmGraph(RocmQueue& queue, hipGraph_t graph, Recording recording)
    : backend_(queue.rocm()), queue_(&queue), recording_(std::move(recording)) {
  const WaitsAllowed allowed;
  const hipError_t error = hipGraphInstantiate(&exec_, graph, nullptr, nullptr, 0);
  static_cast<void>(hipGraphDestroy(graph));
  CheckHip(error, "hipGraphInstantiate", __FILE__, __LINE__);
}

RocmGraph::~RocmGraph() {
  const WaitsAllowed allowed;
  try {
    backend_.Bind();
    backend_.DrainStreams();  // the last launch may still use the buffers
  } catch (const std::exception&) {
    // The device is gone; its memory is given back all the same.
  }
  static_cast<void>(hipGraphExecDestroy(exec_));
  static_cast<void>(hipGetLastError());
}

void RocmGraph::Launch(Queue& queue) {
  if (&queue != queue_) throw RefusedError("a graph runs on the queue that captured it");
  if (queue.capturing()) throw RefusedError("a graph cannot be launched while its queue captures");
  WARMLEG_HIP(hipGraphLaunch(exec_, StreamOf(queue)));
  for (const Recording::Calls& row : recording_.calls) {
    internal::Count(row.op, backend_.device(), internal::Tier::native, nullptr, row.calls, row.bytes);
  }
}

}  // namespace vt::hip::WARMLEG_VENDOR

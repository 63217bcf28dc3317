// Stream capture and graphs. The rules are those of the HIP runtime API reference (hipStreamBeginCapture,
// hipStreamEndCapture, hipThreadExchangeStreamCaptureMode).
#include <algorithm>

#include "backend/sim/runtime.h"

namespace vt::sim {

void InvalidateCapture(Stream* stream) { stream->capture->invalid = true; }

// hipThreadExchangeStreamCaptureMode: in global mode a potentially unsafe call is refused while this thread
// has a capture that is not relaxed, or any thread a global one; in thread-local mode only this thread's
// count; in relaxed mode none do. The refused call invalidates the captures.
hipError_t RefuseDuringCapture(Runtime& rt) {
  const hipStreamCaptureMode mode = ThisThread().mode;
  bool refused = false;
  for (Stream* stream : rt.streams) {
    if (stream->capture == nullptr || stream->capture->origin != stream ||
        mode == hipStreamCaptureModeRelaxed) {
      continue;
    }
    const Capture& capture = *stream->capture;
    const bool mine =
        capture.thread == std::this_thread::get_id() && capture.mode != hipStreamCaptureModeRelaxed;
    const bool global = capture.mode == hipStreamCaptureModeGlobal && mode == hipStreamCaptureModeGlobal;
    if (!mine && !global) continue;
    InvalidateCapture(stream);
    refused = true;
  }
  return refused ? hipErrorStreamCaptureUnsupported : hipSuccess;
}

// hipStreamBeginCapture: later work is recorded, not run; hipErrorIllegalState when the stream captures
// already.
hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode) {
  return Api([&](Runtime& rt) {
    if (const hipError_t error = CheckStream(rt, stream); error != hipSuccess) return error;
    if (stream->capture != nullptr) return hipErrorIllegalState;
    auto capture = std::make_shared<Capture>();
    capture->id = ++rt.captures;
    capture->origin = stream;
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    stream->capture = std::move(capture);
    return hipSuccess;
  });
}

// hipStreamEndCapture: on the stream that began it, and on the thread that began it unless the mode is
// relaxed; an invalidated capture gives hipErrorStreamCaptureInvalidated and no graph; streams pulled in must
// have been joined. Either way the capture is over.
hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* graph) {
  return Api([&](Runtime& rt) {
    if (const hipError_t error = CheckStream(rt, stream); error != hipSuccess) return error;
    if (graph == nullptr) return hipErrorInvalidValue;
    *graph = nullptr;
    if (stream->capture == nullptr) return hipErrorIllegalState;
    if (stream->capture->origin != stream) return hipErrorStreamCaptureUnmatched;
    if (stream->capture->mode != hipStreamCaptureModeRelaxed &&
        stream->capture->thread != std::this_thread::get_id()) {
      return hipErrorStreamCaptureWrongThread;
    }
    const std::shared_ptr<Capture> capture = stream->capture;
    for (Stream* member : rt.streams) {
      if (member->capture == capture) member->capture = nullptr;
    }
    if (capture->invalid) return hipErrorStreamCaptureInvalidated;
    const bool joined =
        std::all_of(capture->joined.begin(), capture->joined.end(), [](const auto& m) { return m.second; });
    if (!joined) {
      capture->invalid = true;
      return hipErrorStreamCaptureUnjoined;
    }
    auto made = std::make_unique<GraphNodes>();
    made->device = stream->device;
    made->operations = std::move(capture->operations);
    rt.graphs.insert(made.get());
    *graph = made.release();
    return hipSuccess;
  });
}

hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus* status) {
  return hipStreamGetCaptureInfo(stream, status, nullptr);
}

hipError_t hipStreamGetCaptureInfo(hipStream_t stream, hipStreamCaptureStatus* status,
                                   unsigned long long* id) {
  return Api([&](Runtime& rt) {
    if (const hipError_t error = CheckStream(rt, stream); error != hipSuccess) return error;
    if (status == nullptr) return hipErrorInvalidValue;
    *status = stream->capture == nullptr ? hipStreamCaptureStatusNone
              : stream->capture->invalid ? hipStreamCaptureStatusInvalidated
                                         : hipStreamCaptureStatusActive;
    if (id != nullptr && *status == hipStreamCaptureStatusActive) *id = stream->capture->id;
    return hipSuccess;
  });
}

hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode) {
  if (mode == nullptr) return hipErrorInvalidValue;
  std::swap(*mode, ThisThread().mode);
  return hipSuccess;
}

// An NVIDIA card refuses it to a thread that captures, as it refuses waits.
hipError_t hipGraphInstantiate(hipGraphExec_t* exec, hipGraph_t graph, hipGraphNode_t*, char*, size_t) {
  return Api([&](Runtime& rt) {
    if (exec == nullptr || !rt.graphs.contains(graph)) return hipErrorInvalidValue;
    if (const hipError_t error = RefuseDuringCapture(rt); error != hipSuccess) return error;
    if (Current(rt).sticky != hipSuccess) return Current(rt).sticky;
    auto made = std::make_unique<GraphExec>(GraphExec{graph->device, graph->operations});
    rt.execs.insert(made.get());
    *exec = made.release();
    return hipSuccess;
  });
}

// hipGraphLaunch: the graph's work in the order of the stream, any number of times; the arguments of its
// kernels are those of the capture.
hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream) {
  return Api([&](Runtime& rt) {
    if (const hipError_t error = Inject(rt, Point::launch); error != hipSuccess) return error;
    if (!rt.execs.contains(exec)) return hipErrorInvalidValue;
    if (const hipError_t error = CheckStream(rt, stream); error != hipSuccess) return error;
    if (stream->device != exec->device) return hipErrorInvalidValue;
    if (stream->capture != nullptr && stream->capture->invalid) return hipErrorStreamCaptureInvalidated;
    for (const Operation& operation : exec->operations) Enqueue(rt, stream, operation);
    return hipSuccess;
  });
}

hipError_t hipGraphExecDestroy(hipGraphExec_t exec) {
  return Api([&](Runtime& rt) {
    if (!rt.execs.contains(exec)) return hipErrorInvalidValue;
    rt.execs.erase(exec);
    delete exec;
    return hipSuccess;
  });
}

hipError_t hipGraphDestroy(hipGraph_t graph) {
  return Api([&](Runtime& rt) {
    if (!rt.graphs.contains(graph)) return hipErrorInvalidValue;
    rt.graphs.erase(graph);
    delete graph;
    return hipSuccess;
  });
}

}  // namespace vt::sim

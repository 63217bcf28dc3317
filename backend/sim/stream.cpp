// Streams and events. A stream runs nothing by itself: its work runs on the thread that waits for it.
#include <algorithm>
#include <chrono>

#include "backend/sim/kernel.h"
#include "backend/sim/runtime.h"

namespace vt::sim {

uint64_t ClockTicks() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

namespace {

hipError_t CheckEvent(const Runtime& rt, Event* event) {
  return rt.events.contains(event) ? hipSuccess : hipErrorInvalidResourceHandle;
}

void DropWork(Stream& stream) {
  for (const Operation& operation : stream.queue) {
    if (operation.set != nullptr) operation.set->done = true;
  }
  stream.queue.clear();
}

hipError_t Break(Runtime& rt, Stream& stream, hipError_t error, const char* what) {
  rt.fault = what;
  rt.devices[static_cast<size_t>(stream.device)].sticky = error;
  DropWork(stream);
  return error;
}

}  // namespace

hipError_t CheckStream(Runtime& rt, Stream* stream) {
  if (!rt.streams.contains(stream)) return hipErrorInvalidResourceHandle;
  return rt.devices[static_cast<size_t>(stream->device)].sticky;
}

hipError_t CheckEnqueue(Runtime& rt, Stream* stream) {
  if (const hipError_t error = CheckStream(rt, stream); error != hipSuccess) return error;
  // HIP programming guide, multi-device: work goes to a stream of the current device.
  if (stream->device != ThisThread().device) return hipErrorInvalidResourceHandle;
  if (stream->capture != nullptr && stream->capture->invalid) return hipErrorStreamCaptureInvalidated;
  return hipSuccess;
}

hipError_t Enqueue(Runtime&, Stream* stream, Operation operation) {
  if (stream->capture == nullptr) {
    stream->queue.push_back(std::move(operation));
    return hipSuccess;
  }
  stream->capture->operations.push_back(std::move(operation));
  if (stream != stream->capture->origin) stream->capture->joined[stream] = false;
  return hipSuccess;
}

hipError_t Drain(Runtime& rt, Stream* stream, const Marker* until) {
  SimDevice& device = rt.devices[static_cast<size_t>(stream->device)];
  if (device.sticky != hipSuccess) return device.sticky;
  if (stream->queue.empty()) return hipSuccess;
  const OpenArena open(*device.arena);
  while (!stream->queue.empty() && (until == nullptr || !until->done)) {
    const Operation operation = std::move(stream->queue.front());
    stream->queue.pop_front();
    if (operation.waits != nullptr && !operation.waits->done &&
        rt.streams.contains(operation.waits->stream)) {
      const hipError_t error = Drain(rt, operation.waits->stream, operation.waits.get());
      if (error != hipSuccess) return error;
    }
    try {
      if (operation.run) {
        operation.run();
        device.arena->CheckCanaries();
      }
    } catch (const Fault& fault) {
      return Break(rt, *stream, hipErrorLaunchFailure, fault.what());
    }
    if (operation.set != nullptr) {
      operation.set->done = true;
      operation.set->ns = ClockTicks();
    }
  }
  return hipSuccess;
}

hipError_t DrainDevice(Runtime& rt, int device) {
  for (Stream* stream : rt.streams) {
    if (stream->device != device) continue;
    if (const hipError_t error = Drain(rt, stream); error != hipSuccess) return error;
  }
  return rt.devices[static_cast<size_t>(device)].sticky;
}

// HIP runtime API reference, hipDeviceSynchronize: waits for every stream of the device; not permitted while
// one of them captures.
hipError_t hipDeviceSynchronize() {
  return Api([](Runtime& rt) {
    bool capturing = false;
    for (Stream* stream : rt.streams) {
      if (stream->device != ThisThread().device || stream->capture == nullptr) continue;
      InvalidateCapture(stream);
      capturing = true;
    }
    if (capturing) return hipErrorStreamCaptureUnsupported;
    return DrainDevice(rt, ThisThread().device);
  });
}

hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned flags) {
  return Api([&](Runtime& rt) {
    if (stream == nullptr || flags > hipStreamNonBlocking) return hipErrorInvalidValue;
    if (Current(rt).sticky != hipSuccess) return Current(rt).sticky;
    auto made = std::make_unique<Stream>();
    made->device = ThisThread().device;
    rt.streams.insert(made.get());
    *stream = made.release();
    return hipSuccess;
  });
}

// HIP runtime API reference, hipStreamDestroy: work still queued may or may not be done before the stream is
// gone. Here it never is, so that a missing wait shows.
hipError_t hipStreamDestroy(hipStream_t stream) {
  return Api([&](Runtime& rt) {
    if (!rt.streams.contains(stream)) return hipErrorInvalidResourceHandle;
    if (stream->capture != nullptr) InvalidateCapture(stream);
    DropWork(*stream);
    rt.streams.erase(stream);
    for (Event* event : rt.events) {
      if (event->captured_on == stream) event->captured_on = nullptr;
    }
    delete stream;
    return hipSuccess;
  });
}

// HIP runtime API reference, hipStreamBeginCapture: a capturing stream may not be synchronised or queried;
// doing so invalidates the capture. A wait for another stream is a potentially unsafe call (an NVIDIA card
// refuses it, hipThreadExchangeStreamCaptureMode lifts that).
hipError_t hipStreamSynchronize(hipStream_t stream) {
  return Api([&](Runtime& rt) {
    if (const hipError_t error = CheckStream(rt, stream); error != hipSuccess) return error;
    if (stream->capture != nullptr) {
      InvalidateCapture(stream);
      return hipErrorStreamCaptureUnsupported;
    }
    if (const hipError_t error = RefuseDuringCapture(rt); error != hipSuccess) return error;
    return Drain(rt, stream);
  });
}

hipError_t hipStreamQuery(hipStream_t stream) {
  return Api([&](Runtime& rt) {
    if (const hipError_t error = CheckStream(rt, stream); error != hipSuccess) return error;
    if (stream->capture != nullptr) {
      InvalidateCapture(stream);
      return hipErrorStreamCaptureUnsupported;
    }
    if (const hipError_t error = RefuseDuringCapture(rt); error != hipSuccess) return error;
    return stream->queue.empty() ? hipSuccess : hipErrorNotReady;
  });
}

hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned flags) {
  return Api([&](Runtime& rt) {
    if (event == nullptr) return hipErrorInvalidValue;
    if (Current(rt).sticky != hipSuccess) return Current(rt).sticky;
    auto made = std::make_unique<Event>();
    made->device = ThisThread().device;
    made->timing = (flags & hipEventDisableTiming) == 0;
    rt.events.insert(made.get());
    *event = made.release();
    return hipSuccess;
  });
}

hipError_t hipEventDestroy(hipEvent_t event) {
  return Api([&](Runtime& rt) {
    if (const hipError_t error = CheckEvent(rt, event); error != hipSuccess) return error;
    rt.events.erase(event);
    delete event;
    return hipSuccess;
  });
}

// HIP runtime API reference, hipEventRecord: the event stands for the work queued so far, and a later record
// replaces it; event and stream must be of one device.
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  return Api([&](Runtime& rt) {
    if (const hipError_t error = CheckEvent(rt, event); error != hipSuccess) return error;
    if (const hipError_t error = CheckStream(rt, stream); error != hipSuccess) return error;
    if (event->device != stream->device) return hipErrorInvalidResourceHandle;
    if (stream->capture != nullptr) {
      if (stream->capture->invalid) return hipErrorStreamCaptureInvalidated;
      event->capture = stream->capture;  // a dependency inside the graph, no point in time
      event->captured_on = stream;
      return hipSuccess;
    }
    event->capture = nullptr;
    event->captured_on = nullptr;
    event->marker = std::make_shared<Marker>(Marker{stream, false, 0});
    return Enqueue(rt, stream, {nullptr, event->marker, nullptr});
  });
}

// HIP runtime API reference, hipStreamWaitEvent: an event that was never recorded is complete. A wait on a
// captured event pulls the stream into that capture; a captured stream may not wait for work outside it.
hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned) {
  return Api([&](Runtime& rt) {
    if (const hipError_t error = CheckEvent(rt, event); error != hipSuccess) return error;
    if (const hipError_t error = CheckStream(rt, stream); error != hipSuccess) return error;
    if (stream->capture != nullptr && stream->capture->invalid) return hipErrorStreamCaptureInvalidated;
    if (event->capture != nullptr) {
      if (event->capture->invalid) return hipErrorStreamCaptureInvalidated;
      if (stream->capture != nullptr && stream->capture != event->capture) {
        InvalidateCapture(stream);
        event->capture->invalid = true;
        return hipErrorStreamCaptureMerge;
      }
      if (stream->capture == nullptr) {
        stream->capture = event->capture;
        stream->capture->joined[stream] = false;
      } else if (stream == stream->capture->origin && event->captured_on != nullptr) {
        stream->capture->joined[event->captured_on] = true;
      }
      return hipSuccess;
    }
    if (stream->capture != nullptr) {
      if (event->marker == nullptr) return hipSuccess;
      InvalidateCapture(stream);
      return hipErrorStreamCaptureIsolation;
    }
    if (event->marker == nullptr) return hipSuccess;
    return Enqueue(rt, stream, {nullptr, nullptr, event->marker});
  });
}

hipError_t hipEventQuery(hipEvent_t event) {
  return Api([&](Runtime& rt) {
    if (const hipError_t error = CheckEvent(rt, event); error != hipSuccess) return error;
    if (event->capture != nullptr) return hipErrorCapturedEvent;
    if (const hipError_t error = RefuseDuringCapture(rt); error != hipSuccess) return error;
    if (rt.devices[static_cast<size_t>(event->device)].sticky != hipSuccess) {
      return rt.devices[static_cast<size_t>(event->device)].sticky;
    }
    return event->marker == nullptr || event->marker->done ? hipSuccess : hipErrorNotReady;
  });
}

hipError_t hipEventSynchronize(hipEvent_t event) {
  return Api([&](Runtime& rt) {
    if (const hipError_t error = CheckEvent(rt, event); error != hipSuccess) return error;
    if (event->capture != nullptr) {
      event->capture->invalid = true;
      return hipErrorCapturedEvent;
    }
    if (const hipError_t error = RefuseDuringCapture(rt); error != hipSuccess) return error;
    const hipError_t sticky = rt.devices[static_cast<size_t>(event->device)].sticky;
    if (sticky != hipSuccess) return sticky;
    if (event->marker == nullptr || event->marker->done) return hipSuccess;
    return Drain(rt, event->marker->stream, event->marker.get());
  });
}

// HIP runtime API reference, hipEventElapsedTime: both events recorded with timing and complete.
hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t from, hipEvent_t to) {
  return Api([&](Runtime& rt) {
    if (milliseconds == nullptr) return hipErrorInvalidValue;
    for (Event* event : {from, to}) {
      if (const hipError_t error = CheckEvent(rt, event); error != hipSuccess) return error;
      if (event->capture != nullptr) return hipErrorCapturedEvent;
      if (!event->timing || event->marker == nullptr) return hipErrorInvalidResourceHandle;
      if (!event->marker->done) return hipErrorNotReady;
    }
    *milliseconds =
        static_cast<float>(static_cast<double>(to->marker->ns) - static_cast<double>(from->marker->ns)) *
        1e-6F;
    return hipSuccess;
  });
}

}  // namespace vt::sim

// Temporary device memory that outlives one call: owned by (device, queue, purpose), grow-only, freed with
// its queue. Two queues never share a buffer, nor do two devices: each device has its own table.
//
// While a queue captures nothing is allocated: the buffer must be warm, that is an uncaptured call asked for
// as much before. Otherwise the capture is ended and RefusedError thrown, with the table as it was. A graph
// keeps the buffers that its kernels hold alive, also when a later call grows them.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "backend/vt/backend.h"

namespace vt {

class ScratchTable {
 public:
  // At least `bytes` bytes with undefined contents, valid until the queue asks for more of the same purpose
  // or is destroyed. May be called from several host threads. Throws RefusedError (cold capture) and what
  // Alloc throws; then nothing has changed.
  void* Get(Queue& queue, std::string_view purpose, size_t bytes);
  // Frees the buffers of a queue whose work has finished.
  void Release(const Queue& queue);

  struct Usage {
    size_t buffers = 0;
    size_t bytes = 0;
  };
  Usage usage() const;                    // of the device
  Usage usage(const Queue& queue) const;  // of one queue

 private:
  using Key = std::pair<const Queue*, std::string>;
  static Key MakeKey(const Queue& queue, std::string_view purpose) { return {&queue, std::string(purpose)}; }

  mutable std::mutex mutex_;
  std::map<Key, std::shared_ptr<Buffer>> buffers_;  // shared with the graphs that use them
};

// `count` elements of T. The purpose names the op and the use: "MatMul.partials".
template <class T>
T* Scratch(Queue& queue, std::string_view purpose, size_t count) {
  return static_cast<T*>(queue.backend().scratch().Get(queue, purpose, count * sizeof(T)));
}

}  // namespace vt

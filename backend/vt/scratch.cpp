#include "backend/vt/scratch.h"

#include <fmt/core.h>

#include "backend/vt/error.h"

namespace vt {

void* ScratchTable::Get(Queue& queue, std::string_view purpose, size_t bytes) {
  Backend& backend = queue.backend();
  std::unique_lock lock(mutex_);
  const Key key = MakeKey(queue, purpose);
  const auto found = buffers_.find(key);
  const size_t warm = found != buffers_.end() ? found->second->bytes() : 0;
  if (found != buffers_.end() && warm >= bytes) {
    if (queue.capturing()) queue.RecordBuffer(found->second);
    return found->second->data();
  }
  if (queue.capturing()) {  // before anything is allocated or published
    lock.unlock();
    backend.AbandonCapture(queue);
    throw RefusedError(
        fmt::format("scratch '{}' on {} has {} bytes and a captured call needs {}: run the call once outside "
                    "capture first; the capture was ended",
                    purpose, ToString(backend.device()), warm, bytes));
  }
  auto fresh = std::make_shared<Buffer>(backend.Alloc(bytes));
  if (found != buffers_.end()) {
    backend.Synchronize(queue);  // queued work may still read the smaller buffer
    found->second = fresh;       // frees it, unless a graph holds it
  } else {
    buffers_.emplace(key, fresh);
  }
  return fresh->data();
}

void ScratchTable::Release(const Queue& queue) {
  const std::lock_guard lock(mutex_);
  std::erase_if(buffers_, [&](const auto& entry) { return entry.first.first == &queue; });
}

ScratchTable::Usage ScratchTable::usage() const {
  const std::lock_guard lock(mutex_);
  Usage sum;
  for (const auto& [key, buffer] : buffers_) sum = {sum.buffers + 1, sum.bytes + buffer->bytes()};
  return sum;
}

ScratchTable::Usage ScratchTable::usage(const Queue& queue) const {
  const std::lock_guard lock(mutex_);
  Usage sum;
  for (const auto& [key, buffer] : buffers_) {
    if (key.first == &queue) sum = {sum.buffers + 1, sum.bytes + buffer->bytes()};
  }
  return sum;
}

}  // namespace vt

// The worker process: loads the checkpoints once and serves one request after another until its parent is
// done with it or gone.
#pragma once

#include <sys/types.h>

namespace warmleg::run {

// Reads requests from descriptor 3 and answers on 4. Returns the exit code.
// `parent`: the process that started it; when that is not the parent any more, the worker leaves.
int WorkerMain(pid_t parent);

}  // namespace warmleg::run

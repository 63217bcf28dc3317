// SIGINT, SIGTERM and SIGHUP as a flag and a file descriptor, so that a wait for a worker ends at once.
#pragma once

namespace warmleg::run {

struct InterruptedError {};  // becomes exit code 130

// Installs the handlers (a signal that was ignored at start stays ignored, as nohup wants). Idempotent.
void CatchInterrupts();
bool InterruptPending();
// Readable once a signal has come. -1 before CatchInterrupts.
int InterruptFd();

}  // namespace warmleg::run

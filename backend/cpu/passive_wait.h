// Threads that wait at the end of a parallel loop must sleep, not spin.
//
// A spinning OpenMP barrier on cores that are busy with something else made one decode step 70 times slower.
// Neither libgomp nor libomp can be told so after it is loaded: both read OMP_WAIT_POLICY before main. So a
// constructor of every program that links the cpu device sets OMP_WAIT_POLICY=passive and starts the program
// again, once, before main and before any thread. A user who sets OMP_WAIT_POLICY, GOMP_SPINCOUNT or
// KMP_BLOCKTIME decides for himself.
#pragma once

namespace vt::cpu {

// Whether the OpenMP runtime of this process was started with a waiting policy that somebody chose.
bool WaitPolicyIsSet();

}  // namespace vt::cpu

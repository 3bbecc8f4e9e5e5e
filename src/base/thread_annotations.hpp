// SPDX-License-Identifier: Apache-2.0
// States which mutex guards what, so that clang can check it (-Wthread-safety). Other compilers see nothing.
//
// GRIDCTL_GUARDED_BY(mutex_) follows each member that threads share; GRIDCTL_PT_GUARDED_BY protects what a pointer
// leads
// to. A function that is called with the mutex held says GRIDCTL_REQUIRES(mutex_) in its declaration, instead of a
// comment or of a lock among its parameters; one that takes it itself may say GRIDCTL_EXCLUDES. Use os::Mutex,
// os::MutexLock and os::Condition: the library's own mutexes carry no attributes. The analysis looks at one function at
// a
// time, and treats a lambda as a separate function: wait in a loop instead of with a predicate, and if a lambda runs
// with
// the mutex held, its body begins with mutex_.assert_held(). It skips constructors and destructors. `ctest -R
// thread_annotations` runs it.
#pragma once

#if defined(__clang__)
#define GRIDCTL_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define GRIDCTL_THREAD_ATTRIBUTE(x)
#endif

#define GRIDCTL_CAPABILITY(name) GRIDCTL_THREAD_ATTRIBUTE(capability(name))
#define GRIDCTL_SCOPED_CAPABILITY GRIDCTL_THREAD_ATTRIBUTE(scoped_lockable)
#define GRIDCTL_GUARDED_BY(mutex) GRIDCTL_THREAD_ATTRIBUTE(guarded_by(mutex))
#define GRIDCTL_PT_GUARDED_BY(mutex) GRIDCTL_THREAD_ATTRIBUTE(pt_guarded_by(mutex))
#define GRIDCTL_REQUIRES(...) GRIDCTL_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define GRIDCTL_EXCLUDES(...) GRIDCTL_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define GRIDCTL_ACQUIRE(...) GRIDCTL_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define GRIDCTL_RELEASE(...) GRIDCTL_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define GRIDCTL_ASSERT_CAPABILITY(...) GRIDCTL_THREAD_ATTRIBUTE(assert_capability(__VA_ARGS__))
// Write the reason beside it.
#define GRIDCTL_NO_THREAD_SAFETY_ANALYSIS GRIDCTL_THREAD_ATTRIBUTE(no_thread_safety_analysis)

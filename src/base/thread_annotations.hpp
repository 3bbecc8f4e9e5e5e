// SPDX-License-Identifier: Apache-2.0
// Which mutex guards what, said so that clang can check it (-Wthread-safety). Other compilers see nothing.
//
// Behind each member that threads share stands GRIDCTL_GUARDED_BY(mutex_); what a pointer leads to has
// GRIDCTL_PT_GUARDED_BY. A function that is called with the mutex held says GRIDCTL_REQUIRES(mutex_) in its
// declaration, instead of a comment or of a lock among its parameters; one that takes it itself may say
// GRIDCTL_EXCLUDES. Use os::Mutex, os::MutexLock and os::Condition: the library's own mutexes carry no attributes. The
// analysis looks at one function at a time, and takes a lambda for a function of its own: wait in a loop instead of by
// a predicate, and where a lambda runs with the mutex held, its body begins with mutex_.assert_held(). It passes over
// constructors and destructors. `ctest -R thread_annotations` runs it.
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
// With the reason beside it.
#define GRIDCTL_NO_THREAD_SAFETY_ANALYSIS GRIDCTL_THREAD_ATTRIBUTE(no_thread_safety_analysis)

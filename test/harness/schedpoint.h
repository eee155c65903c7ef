// schedpoint.h - threads are delayed or held at schedule points.
//
// For programs that link test/libhooked.a, whose code has the points of
// runtime/os/schedpoint.h.  With RT_SCHED=random in the environment, threads
// lose their processors at points now and then, so orders that a scheduler
// shows once in a year come up in seconds.  RT_SEED replays the choices.
// Otherwise a point does nothing until a test calls schedpoint_random or
// schedpoint_watch.
#ifndef TEST_HARNESS_SCHEDPOINT_H
#define TEST_HARNESS_SCHEDPOINT_H

#include "runtime/os/schedpoint.h"

// schedpoint_random begins the random delays, as RT_SCHED=random does.
// schedpoint_is_random tells whether they have begun and not ended.
void schedpoint_random(void);
bool schedpoint_is_random(void);

// schedpoint_seed sets the seed of threads that come to their first point
// later.  A seed replays the choices of each thread, but not what the scheduler
// of the system does.  So it reproduces a failure more often than not.
void schedpoint_seed(uint64_t seed);

// schedpoint_watch ends the random delays.  From now on threads that come to a
// point are counted, and held if the test wants it.
void schedpoint_watch(void);

// schedpoint_passed returns how often threads came to a point while the points
// were watched.
uint64_t schedpoint_passed(enum schedpoint at);

// schedpoint_hold makes the next thread that comes to a point wait there until
// schedpoint_release.  Threads that come after it are not held.  If a thread
// is already held there, schedpoint_hold releases it first.
void schedpoint_hold(enum schedpoint at);
bool schedpoint_held(enum schedpoint at); // a thread is held there
void schedpoint_release(enum schedpoint at);

const char *schedpoint_name(enum schedpoint at);

#endif

// schedpoint.h - places where a thread may lose its processor.
//
// Go: none.
//
// A point is between two steps of a protocol, where another thread may take
// steps of its own.  The models in test/models name these steps.  A point is
// code only in the library that tests link (RT_TEST).  There a test can hold a
// thread at a point until others have taken their steps
// (test/order/check_sched.c), or delay threads at random
// (test/harness/schedpoint.h).
#ifndef RUNTIME_OS_SCHEDPOINT_H
#define RUNTIME_OS_SCHEDPOINT_H

#include "runtime/base/base.h"

// A point has the name of its C function, after the name of the file if the
// function's alone says too little.  A suffix distinguishes the points of one
// function.  The comment says what the thread has done, or is about to do.
#define SCHEDPOINTS(X)                                                         \
	X(THROW_CLAIM) /* is the one that throws, will report */               \
                                                                               \
	X(LFSTACK_PUSH) /* has linked the node to the head that it read */     \
	X(LFSTACK_POP)	/* has read the head and the link below it */          \
                                                                               \
	X(MUTEX_LOCK)	    /* will try to take the mutex */                   \
	X(MUTEX_SLEEP)	    /* has said that it waits, will sleep */           \
	X(MUTEX_UNLOCK)	    /* has released it, will wake a sleeper */         \
	X(NOTE_WAKE)	    /* will wake */                                    \
	X(NOTE_WAIT)	    /* has said that it sleeps, will sleep */          \
	X(SEMA_ACQUIRE)	    /* has a ticket, will read which is served */      \
	X(SEMA_TRY_ACQUIRE) /* has read which ticket is served */              \
	X(SEMA_RELEASE)	    /* serves the next, will see if any wait */        \
                                                                               \
	X(GATE_WAIT)	       /* has promised to wake others, will spin */    \
	X(GATE_WAIT_IN_VAIN)   /* has spun, will withdraw its promise */       \
	X(GATE_SLEEP)	       /* has said that it waits, will sleep */        \
	X(GATE_PASS_ON)	       /* waits no more, will wake others */           \
	X(LOCK_OPEN_GATE)      /* has found the gate closed */                 \
	X(PROC_ENLIST)	       /* is in the list of attached Ps */             \
	X(PROC_ATTACH)	       /* is RUNNING */                                \
	X(PROC_DETACH)	       /* is BLOCKED, will wait for the gate */        \
	X(PROC_STOPPED)	       /* is BLOCKED, will tell the stopper */         \
	X(PROC_BLOCK)	       /* is RUNNING, will be BLOCKED */               \
	X(PROC_BLOCK_DONE)     /* is BLOCKED, and knows whether to tell */     \
	X(PROC_UNBLOCK)	       /* is BLOCKED, will be RUNNING */               \
	X(PROC_UNBLOCK_STOP)   /* has found STOP, and read the gate */         \
	X(PROC_CLAIM)	       /* has another thread's P, and the lock */      \
	X(PROC_STOP_ALL)       /* will ask a P to stop */                      \
	X(PROC_STOP_ALL_ASKED) /* has asked all, will count those that ran */  \
	X(PROC_START_ALL)      /* has lowered the hint, will clear STOP */     \
	X(PROC_START_ALL_GATE) /* has cleared all STOPs, will open the gate */ \
                                                                               \
	X(HEAPSTATS_ACQUIRE)   /* has raised its seq, will load gen */         \
	X(HEAPSTATS_RELEASE)   /* has made its changes, seq is still odd */    \
	X(HEAPSTATS_READ)      /* has moved gen, will walk the list */         \
	X(HEAPSTATS_READ_NEXT) /* has seen a P, will look for the next */      \
	X(WAIT_EVEN)	       /* has found a writer in the middle */          \
	X(HEAPSTATS_FOLD)      /* has read what it will add and clear */       \
                                                                               \
	X(LOOK_UP)     /* has read the pageword */                             \
	X(EXTENT_FIND) /* has read where the object lies, not yet its bit */   \
                                                                               \
	X(DEADBITS_MOVE) /* has set the bit of the new turn, will count */     \
	X(DEADBITS_MOVE_COUNTED) /* has counted, will clear the old bit */     \
	X(DEADBITS_TEST)	 /* has read the number of moves */            \
	X(DEADBITS_TEST_ONE)	 /* has read the bit of one turn */            \
	X(DEADBITS_TEST_BOTH) /* has read both, will read the moves again */   \
	X(DEADBITS_CLEAR)     /* has cleared the bit of one turn */            \
	X(FORGET_DEAD) /* has freed slots whose objects still count as dead */ \
	X(FREE_DROPPED)	      /* the same */                                   \
	X(DROPS_ACQUIRE)      /* has found that no thread runs destructors */  \
	X(DROPS_RELEASE)      /* will let other threads run destructors */     \
	X(CALL_DROP)	      /* has begun a drop, will call the destructor */ \
	X(FREE_BATCH)	      /* has freed a part of a batch, will poll */     \
	X(FINALIZE_TELL_NEWS) /* has read how much to warn of */               \
	X(FINALIZE_TELL_NEWS_READY) /* has read how many are ready */          \
	X(FINALIZE_NOW) /* runs destructors, will stop the world and pick */   \
	X(FINALIZE_NOW_PICKED) /* has picked, and started the world */         \
                                                                               \
	X(GROW)		 /* has released the heap lock, will prepare chunks */ \
	X(AWAIT_IN_HAND) /* has released the heap lock, will wait its turn */  \
	X(SCAVENGE_STEP) /* has pages that look allocated */                   \
	X(POPULATE_RANGE) /* has pages that look allocated */                  \
                                                                               \
	X(FREELIST_SHARE) /* has linked a list to the shared one, holds the    \
			     lock */                                           \
	X(FREELIST_SHARE_SPLICED) /* its slots are on both, holds no lock */   \
	X(FREELIST_GATHER) /* has read the shared head, holds the lock */      \
                                                                               \
	X(MCACHE_NEXT_RUN)	   /* has cleared memory, will set bits */     \
	X(MCACHE_NEXT_NEAR)	   /* the same, within one allocword */        \
	X(MCACHE_RETIRE_SLOT_REST) /* has freed the rest, will count */        \
	X(MCACHE_RETIRE_SLOT)	   /* has counted, will push the span */       \
                                                                               \
	X(ASK_WAIT)	  /* has asked, will be BLOCKED */                     \
	X(ASK_WAIT_WOKEN) /* was woken, will wake others */                    \
	X(ASK_DONE)	  /* has started the world, will end its lead */       \
                                                                               \
	X(CREW_CALL) /* has made the call, will wake */                        \
	X(CREW_WAIT) /* has seen that there is a call, will read it */         \
                                                                               \
	X(WAKE)		 /* has given a marker work, will wake it */           \
	X(WORK_OPEN)	 /* will open a marking */                             \
	X(WORK_JOIN)	 /* will join */                                       \
	X(WORK_GET)	 /* has nothing left, will say so */                   \
	X(WORK_SHARE)	 /* will look for a marker that waits */               \
	X(GIVE_WORDS)	 /* has found one, will move words to it */            \
	X(WORK_OFFER)	 /* has what the opener must take, will say so */      \
	X(WORK_CLOSE)	 /* will close the marking */                          \
	X(GREY_SET)	 /* is alone: has loaded what it will store */         \
	X(GREY_PUBLISH)	 /* will show marks that it kept back */               \
	X(SCAN_OVERFLOW) /* has shown a mark, will set the bit of its page */  \
	X(OVERFLOW_SET)	 /* has set the bit, will raise the flag */            \
	X(OVERFLOW_TAKE) /* has read bits, will take them */                   \
	X(STACK_CLAIM)	 /* has read whether a stack is claimed, will claim */ \
	X(STACKS_TAKE_WARNING) /* has taken what the host must be told */      \
                                                                               \
	X(SWEEP_CLAIM)		 /* has found a span, will claim it */         \
	X(SWEEP_SPAN)		 /* has swept the lines, will say so */        \
	X(SWEEP_SPAN_SWEPT)	 /* has said so; the span may be in use */     \
	X(SWEEP_PUBLISH)	 /* has swept spans, will count their frees */ \
	X(SWEEP_PUBLISH_COUNTED) /* has counted, will push and free */         \
	X(SWEEP_DONE)		 /* has loaded left, will load active */       \
	X(SWEEP_HELP)		 /* a helper has found chunks left */          \
	X(SWEEP_ONE)		 /* is active, will take a chunk */            \
	X(SWEEP_ONE_TAKEN)	 /* has taken it, or got none */               \
	X(SWEEP_ENSURE)		 /* is active, will claim the span */          \
	X(SWEEP_ENSURE_CLAIMED)	 /* has claimed it */                          \
	X(SWEEP_ENSURE_WAIT)	 /* another thread sweeps it */                \
	X(SWEPT_END)		 /* has found all swept, may end the sweep */  \
	X(SWEPT_END_STOPPED)	 /* the stopper has, will end the sweep */     \
	X(SWEPT_FOLLOW)		 /* has done what follows, will say so */      \
	X(SWEPT_AWAIT)		 /* has read the state, will sleep */          \
	X(SLICES_REST)		 /* has swept a chunk, will poll */            \
	X(SWEEP_SOME)		 /* has got no memory, will sweep */           \
	X(TAKE_SWEPT)		 /* gets no memory yet, will poll */           \
	X(SWEEP_ALL_WAIT)	 /* has found sweepers that are active */      \
	X(CYCLE_FLIP)	    /* has emptied the sets, will move the sweepgen */ \
	X(COLLECT_PROVIDED) /* has advised, and called helpers, if wanted */   \
	X(CYCLE_END) /* has started the world, will free work buffers */       \
	X(CYCLERECORD_PUBLISH) /* will publish the record of a collection */   \
	X(WORKER_ADVISE)       /* is BLOCKED, will advise of huge pages */     \
	X(GCTRACE_WRITE)  /* is BLOCKED, will write the lines of a cycle */    \
	X(GCTRACE_FORCED) /* is BLOCKED, will write the line of a release */   \
                                                                               \
	X(ATTACH_BLOCK)	      /* has a block that no stopper knows */          \
	X(ATTACH_BLOCK_KNOWN) /* stoppers know it */                           \
	X(ATTACH_UNDO)	      /* its block is empty; stoppers know it */       \
                                                                               \
	X(LIBTHREAD_MAIN)      /* a library's thread begins, will attach */    \
	X(LIBTHREAD_MAIN_RUNS) /* is RUNNING, will be BLOCKED */               \
	X(SERVE_LEFT)	       /* a helper hears no more calls */              \
	X(SERVE_BEGIN)	       /* the scavenger is RUNNING, will be BLOCKED */ \
	X(START_ONE)	  /* a helper serves; its record does not say so */    \
	X(SCAVENGER_MAKE) /* alone makes the scavenger, and is BLOCKED */      \
	X(FINISH_SWEEP)	  /* has tried to sweep a chunk, is BLOCKED */         \
	X(SCAVENGER_TAKE_TURN) /* has decided how to sleep, will be BLOCKED */ \
	X(PERIODIC_COLLECT)    /* has found that a collection is due */        \
	X(PERIODIC_BEGIN)      /* leads without an ask, will try to stop */    \
	X(MAKE_MISSING)	       /* alone makes helpers, and is BLOCKED */       \
	X(AWAIT_THREADS) /* is BLOCKED, will await the library's threads */    \
	X(AWAIT_THREADS_ENDED) /* they have ended */                           \
	X(FORK_PREPARE) /* has stopped the world, will take the locks */       \
	X(FORK_RESUME)	/* holds no lock any more, will start the world */

enum schedpoint {
#define SCHEDPOINT_ENUM(name) SCHED_##name,
	SCHEDPOINTS(SCHEDPOINT_ENUM)
#undef SCHEDPOINT_ENUM
	    SCHEDPOINT_COUNT,
};

#ifdef RT_TEST
void schedpoint_pass(enum schedpoint at); // test/harness/schedpoint.c
#endif

// schedpoint may be called with locks held and takes none.
RT_INLINE void schedpoint(enum schedpoint at)
{
#ifdef RT_TEST
	schedpoint_pass(at);
#else
	(void)at;
#endif
}

#endif

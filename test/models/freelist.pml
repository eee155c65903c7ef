// freelist.pml - slots that are freed by hand, beside the owner of their span.
//
// Models runtime/spans/freelist.c and what runtime/spans/mcache.c does with it.
// There is one span.  Thread 0 has cached it, and changes the allocword by
// plain stores.  Both threads free any object; each lists what it frees, and
// allocates from its list first.  Only thread 0 takes new slots.  A list
// becomes full at any length, and is then shared; a thread without a list takes
// some of the shared one.  A stop flushes both caches: all allocations are
// published, and all lists are shared, then the shared list is freed.
//
// Thread 0 also forks in the stop.  The child has no thread 1.  It flushes the
// cache of thread 1 and collects, in one step (fork.pml) and on copies.  Then
// the parent continues.
//
// Mutants, each of which must be found:
// mutant BIT_AT_ONCE: a free clears the alloc bit while the owner may store it
// mutant LISTS_FIRST: a flush frees a list before the next cache is counted
// mutant NO_SEAL: a second free is not noticed
// mutant SEAL_STAYS: a slot that is taken off a list keeps its seal
// mutant PAIR_APART: the free of a reused slot is published before its malloc
// mutant LIST_FORGOTTEN: a flush leaves a list
// mutant SHARE_UNLOCKED: a share takes no lock
// mutant GATHER_UNLOCKED: a thread takes from the shared list without a lock
// mutant SHARE_SILENT: a share does not say that there is something to free
// mutant HOLDER_POLLS: a thread polls while it holds the lock
// mutant FORK_UNSTOPPED: a fork does not stop the other thread
// mutant LOST_KEPT: the child leaves the cache of the lost thread as it is

#define SLOTS 3
#define NONE SLOTS
#define STEPS 4 // of each thread

byte allocword;
bool cached = true;
byte link[SLOTS];
bool sealed[SLOTS];
byte head[2] = NONE;
byte shared = NONE; // head of the shared list
bool any;	    // it may have slots
bool lock;	    // of the two
byte reused[2];	    // not yet published
byte taken;	    // by thread 0 from the span, not yet published
byte mallocs, frees; // published

// A thread runs, or is where it polls.
bool stop, polled[2];

// Ghosts.
bool live[SLOTS];

// These belong to the step of a child.
hidden byte w_child, mallocs_child, frees_child, list;

#define BIT(s) (1 << (s))

// freelist_pop, by reuse.
// C: freelist_pop
// in: thread
inline pop(me, s)
{
	atomic {
		s = head[me];
		head[me] = link[s];
#ifndef SEAL_STAYS
		sealed[s] = false;
#endif
		reused[me]++;
		assert(!live[s]);
		live[s] = true
	}
}

// A run of one slot is taken.  The allocword is loaded here, and stored in a
// later step.
// C: mspan_take_run
// in: thread
inline take(s, w)
{
	w = allocword;
	s = 0;
	do
	:: s < SLOTS && (w & BIT(s)) -> s++
	:: else -> break
	od;
	if
	:: s < SLOTS ->
		allocword = w | BIT(s);
		atomic {
			taken++;
			assert(!live[s]);
			live[s] = true
		}
	:: else
	fi
}

// dealloc_object of a slot, which may have been freed before.
// C: dealloc_object, freelist_add
// in: thread
inline release(me, s, w)
{
#ifdef BIT_AT_ONCE
	live[s] = false;
	w = allocword;
	allocword = w & ~BIT(s)
#else
	atomic {
		if
#ifndef NO_SEAL
		:: sealed[s] -> assert(!live[s])
#endif
		:: else ->
#ifndef NO_SEAL
			assert(live[s]);
#endif
			live[s] = false;
			link[s] = head[me];
			sealed[s] = true;
			head[me] = s
		fi
	}
#endif
}

// count_reused: both numbers in one change.
// C: count_reused
// in: thread
inline publish_reused(me)
{
#ifdef PAIR_APART
	frees = frees + reused[me];
	assert(frees <= mallocs);
	mallocs = mallocs + reused[me];
	reused[me] = 0
#else
	atomic {
		mallocs = mallocs + reused[me];
		frees = frees + reused[me];
		reused[me] = 0;
		assert(frees <= mallocs)
	}
#endif
}

// C: mutex_lock
// at: MUTEX_LOCK, MUTEX_SLEEP
inline take_lock()
{
	atomic { !lock -> lock = true }
}

// C: freelist_share
// at: FREELIST_SHARE, FREELIST_SHARE_SPLICED
inline share(me, s)
{
#ifndef SHARE_UNLOCKED
	take_lock();
#endif
	atomic {
		s = head[me];
		do
		:: link[s] != NONE -> s = link[s]
		:: else -> break
		od;
		link[s] = shared
	}
#ifdef HOLDER_POLLS
	poll(me);
#endif
	atomic {
		shared = head[me];
#ifndef SHARE_SILENT
		any = true;
#endif
		s = 0
	}
#ifndef SHARE_UNLOCKED
	lock = false;
#endif
	head[me] = NONE
}

// As many slots as there is room for, or all.
// C: freelist_gather, cut
// at: FREELIST_GATHER
inline gather(me, s)
{
#ifndef GATHER_UNLOCKED
	take_lock();
#endif
	s = shared;
	if
	:: s != NONE ->
		atomic {
			head[me] = s;
			do
			:: link[s] != NONE -> s = link[s]
			:: break
			od;
			shared = link[s];
			link[s] = NONE;
			s = 0
		}
	:: else -> s = 0
	fi;
#ifndef GATHER_UNLOCKED
	lock = false
#endif
}

// C: proc_block, proc_unblock
// at: PROC_BLOCK, PROC_UNBLOCK
inline poll(me)
{
	if
	:: stop ->
		polled[me] = true;
		!stop;
		polled[me] = false
	:: else
	fi
}

// A host frees an object twice only as long as nothing else has its memory.
#define MAY_FREE(s) (live[s] || sealed[s])

// C: mcache_next, dealloc_object
// at: MCACHE_NEXT_RUN
proctype thread(byte me)
{
	byte s, w, n = STEPS;

	do
	:: n > 0 && !stop ->
		n--;
		if
		:: head[me] != NONE -> pop(me, s)
		:: head[me] == NONE && shared != NONE -> gather(me, s)
		:: head[me] == NONE && me == 0 -> take(s, w)
		:: head[me] != NONE -> share(me, s)
		:: MAY_FREE(0) -> release(me, 0, w)
		:: MAY_FREE(1) -> release(me, 1, w)
		:: MAY_FREE(2) -> release(me, 2, w)
		:: publish_reused(me)
		fi
	:: stop -> poll(me)
	:: n == 0 && !stop -> break
	od;
	polled[me] = true
}

// C: freelist_free_shared, free_slot
// in: flush
inline free_shared()
{
	do
	:: any && shared != NONE ->
		atomic {
			assert(!cached);
			assert(allocword & BIT(shared));
			allocword = allocword & ~BIT(shared);
			sealed[shared] = false;
			shared = link[shared];
			frees++;
			assert(frees <= mallocs)
		}
	:: else -> break
	od;
	any = false
}

// C: mcache_flush, share_freed
// at: MCACHE_RETIRE_SLOT
inline flush(me, s)
{
	publish_reused(me);
	if
	:: me == 0 ->
		mallocs = mallocs + taken;
		taken = 0;
		cached = false
	:: else
	fi;
	if
#ifndef LIST_FORGOTTEN
	:: head[me] != NONE -> share(me, s)
#endif
	:: else
	fi
}

// check_all asserts what marking and statistics rely on.
// C: none
inline check_all(w, m, f)
{
	s = 0;
	do
	:: s < SLOTS ->
		assert(live[s] == ((w >> s) & 1));
		s++
	:: else -> break
	od;
	s = 0;
	assert(m - f == live[0] + live[1] + live[2])
}

// The child flushes the cache that it lost, then its own, and frees all lists.
// C: delete_caches, mcache_flush_all
// at: FORK_PREPARE
inline fork_child(s)
{
	d_step {
		assert(!lock); // a flush would wait for it
		w_child = allocword;
		mallocs_child = mallocs + taken + reused[0];
		frees_child = frees + reused[0];
		list = 0;
		do
		:: list < 3 ->
			if
			:: list == 0 -> s = head[0]
			:: list == 1 ->
				s = NONE;
#ifndef LOST_KEPT
				mallocs_child = mallocs_child + reused[1];
				frees_child = frees_child + reused[1];
				s = head[1]
#endif
			:: else -> s = shared
			fi;
			do
			:: s != NONE ->
				assert(w_child & BIT(s));
				w_child = w_child & ~BIT(s);
				frees_child++;
				s = link[s]
			:: else -> break
			od;
			list++
		:: else -> break
		od;
		check_all(w_child, mallocs_child, frees_child)
	}
}

// mcache_flush_all.
// C: mcache_flush_all
// at: PROC_STOP_ALL_ASKED
active proctype stopper()
{
	byte s;

	run thread(0);
	run thread(1);
	stop = true;
#ifdef FORK_UNSTOPPED
	polled[0];
	fork_child(s);
	polled[1];
#else
	polled[0] && polled[1];
	fork_child(s);
#endif
	flush(1, s);
#ifdef LISTS_FIRST
	cached = false;
	free_shared();
#endif
	flush(0, s);
	free_shared();
	d_step {
		check_all(allocword, mallocs, frees);
		assert(!sealed[0] && !sealed[1] && !sealed[2]);
		cached = true
	}
	stop = false
}

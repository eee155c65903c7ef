// release.pml - pages look allocated while the memory behind them is released
// or brought in.
//
// Models runtime/spans/scavenge.c, runtime/spans/populate.c, and take_locked
// and grow of runtime/spans/mheap.c.  Two threads release pages or bring them
// in, one page at a time.  Two others want all the pages, and free them again.
//
// A thread that finds no room while pages are in hand waits for its turn.  It
// looks again under the heap lock, which it takes in its turn.  Pages that are
// not free then are in use.  A thread that still finds no room unlocks the heap
// while the system prepares memory, and then asks once more.  The free pages at
// the heap's end are used; the heap grows by the rest.
//
// A stop waits for all four threads.  They poll between two steps, but not
// while they wait for a turn.  In a stop, exactly the pages that a thread owns
// look allocated.
//
// The heap lock is one bit, and the semaphore is two tickets
// (runtime/os/lock.c).
//
// Mutants, each of which must be found:
// mutant UNASKED: a thread without room does not ask about pages in hand
// mutant LOCK_KEPT: a thread keeps the heap lock while it waits for its turn
// mutant TURN_EARLY: a releaser ends its turn before its page is free
// mutant LOOK_LATE: a waiter ends its turn before it has the heap lock
// mutant GROW_UNASKED: a heap that grows does not ask about pages in hand
// mutant POLL_INSIDE: a releaser polls while its page looks allocated

#define RELEASERS 2
#define TAKERS 2
#define STEPS 2 // of each releaser
#define PAGES 2
#define ALL 3 // page mask

#define BIT(page) (1 << (page))

// struct mheap.
bool locked; // lock
byte next, serving; // turn
bool in_hand;
byte used; // bits of the page allocator
byte scavenged;

// The stop.
bool stopping;
byte running = RELEASERS + TAKERS;

// Ghost: pages that a thread owns.
byte owned;

// mutex_lock of the heap lock.
// C: mutex_lock
// in: step
inline lock()
{
	atomic { !locked -> locked = true }
}

// C: mutex_unlock
// in: step
inline unlock()
{
	assert(locked);
	locked = false
}

// C: mheap_begin_turn, sema_acquire
// at: SEMA_ACQUIRE
inline begin_turn(ticket)
{
	atomic { ticket = next; next++ }
	atomic { serving == ticket; ticket = 0 }
}

// C: mheap_end_turn, sema_release
// at: SEMA_RELEASE
inline end_turn()
{
	serving++
}

// safepoint_poll: a thread parks while a stop lasts.
// C: safepoint_poll, proc_park
// in: Releaser
inline poll()
{
	if
	:: atomic { stopping -> running-- }
		atomic { !stopping -> running++ }
	:: atomic { !stopping -> skip }
	fi
}

// step of scavenge.c: find, then release.  populate_range: find, then bring_in.
// C: step, find, release, populate_range, bring_in
// at: SCAVENGE_STEP, POPULATE_RANGE, SEMA_RELEASE
inline step(page, ticket, bring)
{
	if
	:: bring = false
	:: bring = true
	fi;
	begin_turn(ticket);
	lock();
	atomic {
		page = 0;
		do
		:: page < PAGES && ((used & BIT(page)) ||
				    ((scavenged & BIT(page)) != 0) != bring) ->
			page++
		:: else -> break
		od;
		if
		:: page < PAGES ->
			used = used | BIT(page);
			scavenged = scavenged & ~BIT(page);
			in_hand = true
		:: else
		fi
	}
	unlock();
#ifdef POLL_INSIDE
	poll();
#endif
	// Here the system releases the memory, or brings it in.
#ifdef TURN_EARLY
	end_turn();
#endif
	if
	:: page < PAGES ->
		lock();
		atomic {
			assert(used & BIT(page));
			assert(!(owned & BIT(page)));
			used = used & ~BIT(page);
			if
			:: !bring -> scavenged = scavenged | BIT(page)
			:: else
			fi;
			in_hand = false
		}
		unlock()
	:: else
	fi;
#ifndef TURN_EARLY
	end_turn();
#endif
	page = 0;
	bring = false
}

// pagealloc_alloc of all pages.  The caller must hold the heap lock.
// C: pagealloc_alloc
// in: await
inline try(got)
{
	atomic {
		got = (used == 0);
		if
		:: got ->
			assert(owned == 0);
			used = ALL;
			owned = ALL;
			scavenged = 0
		:: else
		fi
	}
}

// C: await_in_hand
// at: AWAIT_IN_HAND, SEMA_ACQUIRE, SEMA_RELEASE
inline await(got, ticket)
{
	if
	:: !got && in_hand ->
#ifndef LOCK_KEPT
		unlock();
#endif
		begin_turn(ticket);
#ifdef LOOK_LATE
		end_turn();
#endif
#ifndef LOCK_KEPT
		lock();
#endif
#ifndef LOOK_LATE
		end_turn();
#endif
		try(got)
	:: else
	fi
}

// grow looks at the heap's end, and again if the system had to prepare memory.
// C: grow, prepare, enlarge
// at: GROW
inline grow(got, ticket)
{
	if
	:: !got ->
		unlock();
		// Here the system prepares memory.
		lock();
		try(got);
#ifndef GROW_UNASKED
		await(got, ticket);
#endif
	:: else
	fi
}

// take_locked: try, await_in_hand, try, grow.
// C: take_locked
// in: Taker
inline take(got, ticket)
{
	lock();
	try(got);
#ifndef UNASKED
	await(got, ticket);
#endif
	// The thread goes without memory, or lets the heap grow, only if the
	// pages are in use.
	assert(got || owned != 0);
	grow(got, ticket);
	assert(got || owned != 0);
	unlock()
}

// A pass of scavenge_range or populate_range.
// C: scavenge_range, populate_range, rt_free_os_memory
// at: SCAVENGE_STEP, POPULATE_RANGE
proctype Releaser()
{
	byte i, page, ticket;
	bool bring;

	for (i : 1 .. STEPS) {
		poll();
		step(page, ticket, bring)
	}
	running--
}

// C: mheap_alloc_large, mheap_free
// at: AWAIT_IN_HAND
proctype Taker()
{
	bool got;
	byte ticket;

	poll();
	take(got, ticket);
	if
	:: got ->
		lock();
		atomic { used = 0; owned = 0 }
		unlock()
	:: else
	fi;
	running--
}

// A stop.  The stopper could take each page that no thread owns.
// C: stw_stop, mheap_alloc_manual
// at: PROC_STOP_ALL_ASKED
proctype Stopper()
{
	stopping = true;
	running == 0;
	assert(!locked && !in_hand);
	assert(used == owned);
	stopping = false
}

init {
	byte i;

	atomic {
		for (i : 1 .. RELEASERS) {
			run Releaser()
		}
		for (i : 1 .. TAKERS) {
			run Taker()
		}
		run Stopper()
	}
}

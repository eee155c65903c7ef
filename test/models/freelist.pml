// freelist.pml - slots that are freed by hand, beside the owner of their span.
//
// Models runtime/spans/freelist.c and what runtime/spans/mcache.c does with it.
// One span, cached by thread 0, which changes the allocword by plain stores.
// Both threads free any object; each lists what it frees, and allocates from its
// list first.  Only thread 0 takes new slots.  A stop flushes both caches: first
// all allocations are published, then the lists are freed.
//
// Mutants, each of which must be found:
// mutant BIT_AT_ONCE: a free clears the alloc bit while the owner may store it
// mutant LISTS_FIRST: a flush frees a list before the next cache is counted
// mutant NO_SEAL: a second free is not noticed
// mutant SEAL_STAYS: a slot that is taken off a list keeps its seal
// mutant PAIR_APART: the free of a reused slot is published before its malloc
// mutant LIST_FORGOTTEN: a flush leaves a list

#define SLOTS 3
#define NONE SLOTS
#define STEPS 5 // of each thread

byte word; // alloc bits
bool cached = true;
byte link[SLOTS];
bool sealed[SLOTS];
byte head[2] = NONE;
byte reused[2];	    // not yet published
byte taken;	    // by thread 0 from the span, not yet published
byte mallocs, frees; // published

// A thread runs, or is where it polls.
bool stop, polled[2];

// Ghosts.
bool live[SLOTS];

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

// A run of one slot: the word is read, and stored later.
// C: mspan_take_run
// in: thread
inline take(s, w)
{
	w = word;
	s = 0;
	do
	:: s < SLOTS && (w & BIT(s)) -> s++
	:: else -> break
	od;
	if
	:: s < SLOTS ->
		word = w | BIT(s);
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
	w = word;
	word = w & ~BIT(s)
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
		:: head[me] == NONE && me == 0 -> take(s, w)
		:: MAY_FREE(0) -> release(me, 0, w)
		:: MAY_FREE(1) -> release(me, 1, w)
		:: MAY_FREE(2) -> release(me, 2, w)
		:: publish_reused(me)
		fi
	:: stop ->
		polled[me] = true;
		!stop;
		polled[me] = false
	:: n == 0 && !stop -> break
	od;
	polled[me] = true
}

// C: free_slot
// in: flush
inline free_list(me)
{
	do
	:: head[me] != NONE ->
		atomic {
			assert(!cached);
			assert(word & BIT(head[me]));
			word = word & ~BIT(head[me]);
			sealed[head[me]] = false;
			head[me] = link[head[me]];
			frees++;
			assert(frees <= mallocs)
		}
	:: else -> break
	od
}

// C: mcache_flush, mcache_retire_slot
// at: MCACHE_RETIRE_SLOT
inline flush(me)
{
	publish_reused(me);
	if
	:: me == 0 ->
		mallocs = mallocs + taken;
		taken = 0;
		cached = false
	:: else
	fi
}

// mcache_flush_all; then what marking and statistics rely on.
// C: mcache_flush_all
active proctype stopper()
{
	byte s;

	run thread(0);
	run thread(1);
	stop = true;
	polled[0] && polled[1];
	flush(1);
#ifdef LISTS_FIRST
	cached = false;
	free_list(1);
#endif
	flush(0);
	free_list(0);
#ifndef LIST_FORGOTTEN
	free_list(1);
#endif
	atomic {
		s = 0;
		do
		:: s < SLOTS ->
			assert(live[s] == ((word >> s) & 1));
			assert(!sealed[s]);
			s++
		:: else -> break
		od;
		assert(mallocs - frees == live[0] + live[1] + live[2]);
		s = 0;
		cached = true
	}
	stop = false
}

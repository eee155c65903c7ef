// bits.pml - the two lines of a span, runs, marks, the flip, sweeping.
//
// Models runtime/spans/mspan.c, runtime/spans/mcache.c, gc/cycle/refill.c,
// gc/mark/grey.h, gc/cycle/cycle.c and gc/cycle/sweep.c.  Two hosts allocate
// from runs.  One host ends, and retires its run itself.  The other one asks
// for a span to be swept.  The cycle stops both, retires their runs, marks and
// flips.  It sweeps in the stop, or leaves that for later, as gc/cycle/cycle.c
// does.  A second sweeper works beside all of them, even in the stop.  So the
// model shows the rules for sweeping in the stop and for sweeping beside the
// threads.
//
// A stop is a few variables here (stw.pml shows the real one).  A set of
// partial spans is one bit for each span (lfstack.pml).  Each chunk has one
// span of two slots.
//
// Mutants, each of which must be found:
// mutant REST_KEPT: retiring leaves the rest of a run allocated
// mutant UNFLUSHED: the stopper marks without retiring the runs
// mutant MARK_FREE: marking does not look at the alloc bit
// mutant MARK_OTHER_LINE: marks go to the line of the previous cycle
// mutant SETS_KEPT: the flip leaves spans in the sets
// mutant FLIP_UNSWEPT: the flip does not wait until all is swept
// mutant OLD_LINE_KEPT: sweeping does not clear the old line
// mutant CLAIM_IN_TWO: a claim looks, then stores
// mutant ENSURE_UNWAITED: ensure returns while another thread sweeps
// mutant ENSURE_INACTIVE: ensure sweeps without being counted as active
// mutant ACTIVE_LATE: a sweeper is active only after it took a chunk
// mutant ACTIVE_FIRST: done looks at active, then at the chunks left
// mutant SWEPT_EARLY: sweepgen says swept before the old line is clear
// mutant DIRTY_REUSE: a freed slot is not cleared again
// mutant PUSH_UNCOUNTED: a retired span is pushed before it is counted
// mutant PUSH_UNPUBLISHED: a swept span is pushed before its frees count
// mutant FREE_UNPUBLISHED: pages are freed before their frees are published

#define HOSTS 2
#define STEPS 2 // of host 0; host 1 takes one
#define CYCLES 2
#define SPANS 2
#define SLOTS 2
#define ALL 3 // slot mask
#define NONE 255

#define BIT(slot) (1 << (slot))
#define COUNT(bits) (((bits) & 1) + ((bits) >> 1))
// epoch_alloc_line, epoch_mark_line.
#define ALLOC_LINE(g) (((g) >> 1) & 1)
#define MARK_LINE(g) (1 - ALLOC_LINE(g))
#define LINE(i, s) line[(i) * SPANS + (s)]

// struct epoch, struct linewords.
byte gen = 2;
byte line[2 * SPANS];

// struct mspan; used is its pageword.
bool used[SPANS];
byte sweepgen[SPANS];
byte alloc_count[SPANS];
bool cached[SPANS];
bool needzero[SPANS];
bool partial[SPANS]; // in the set of mcentral

// struct rt_mcache.
byte span[HOSTS] = NONE;
byte cur[HOSTS], limit[HOSTS]; // slots
byte next_bit[HOSTS];
byte nalloc[HOSTS];

// sweep of gc/cycle/sweep.c, and statistics.
byte left, sweepers; // sweepers: sweep.active
short counted; // mallocs - frees

// The stop.
bool stopping;
bool is_stopped[HOSTS];

// Ghosts.
byte root[SPANS];  // objects that the program reaches
byte object[SPANS]; // objects handed to the program and not freed
byte dirty[SPANS]; // slots whose memory is not zero

// ---- runtime/spans/mspan.c, runtime/spans/mcache.c ----

// free_rest, mspan_free_slots.  change_bits loads the lineword and stores it.
// C: free_rest, mspan_free_slots, change_bits
// at: MCACHE_RETIRE_SLOT_REST
inline free_rest(p, word)
{
#ifndef REST_KEPT
	word = LINE(ALLOC_LINE(gen), span[p]);
	atomic {
		do
		:: cur[p] < limit[p] ->
			limit[p]--;
			assert(word & BIT(limit[p]));
			word = word & ~BIT(limit[p]);
			nalloc[p]--
		:: else -> break
		od;
		LINE(ALLOC_LINE(gen), span[p]) = word;
		word = 0;
		cur[p] = 0;
		limit[p] = 0
	}
#else
	atomic { cur[p] = 0; limit[p] = 0 }
#endif
}

// count_slot: the load and the store of alloc_count, which has one owner.
// C: count_slot
// at: MCACHE_RETIRE_SLOT
inline count_slot(p, word)
{
	word = alloc_count[span[p]];
	atomic {
		alloc_count[span[p]] = word + nalloc[p];
		counted = counted + nalloc[p];
		nalloc[p] = 0;
		word = 0;
		// A reader never finds more objects than slots.
		assert(counted <= SLOTS * (used[0] + used[1]))
	}
}

// retire, mcentral_push.
// C: retire, mcentral_push
// in: retire
inline retire_span(p)
{
	atomic {
		cached[span[p]] = false;
		if
		:: alloc_count[span[p]] < SLOTS ->
			assert(!partial[span[p]]);
			partial[span[p]] = true
		:: else
		fi
	}
}

// mcache_retire_slot, mcache_flush.
// C: mcache_retire_slot, mcache_flush
// at: MCACHE_RETIRE_SLOT_REST, MCACHE_RETIRE_SLOT
inline retire(p, word)
{
	free_rest(p, word);
#ifdef PUSH_UNCOUNTED
	retire_span(p);
	count_slot(p, word);
#else
	count_slot(p, word);
	retire_span(p);
#endif
	span[p] = NONE
}

// mcache_next: mspan_find_run, clearing, mspan_take_run.  The cursor's copy of
// the lineword is up to date, because no other thread changes it meanwhile.
// C: mcache_next, mspan_find_run, mspan_take_run
// at: MCACHE_NEXT_RUN, MCACHE_NEXT_NEAR
inline next_run(p, word)
{
	atomic {
		word = LINE(ALLOC_LINE(gen), span[p]);
		do
		:: next_bit[p] < SLOTS && (word & BIT(next_bit[p])) ->
			next_bit[p]++
		:: else -> break
		od;
		cur[p] = next_bit[p];
		do
		:: next_bit[p] < SLOTS && !(word & BIT(next_bit[p])) ->
			word = word | BIT(next_bit[p]);
			if
			:: needzero[span[p]] ->
				dirty[span[p]] = dirty[span[p]] &
						 ~BIT(next_bit[p])
			:: else
			fi;
			next_bit[p]++;
			nalloc[p]++
		:: else -> break
		od
	}
	atomic {
		limit[p] = next_bit[p];
		LINE(ALLOC_LINE(gen), span[p]) = word;
		word = 0
	}
}

// mcache_set_span.
// C: mcache_set_span
// in: refill
inline set_span(p, s)
{
	assert(used[s] && sweepgen[s] == gen && !cached[s]);
	assert(alloc_count[s] < SLOTS);
	cached[s] = true;
	span[p] = s;
	next_bit[p] = 0
}

// mheap_alloc_small.  The linewords of free pages are 0, so none is cleared.
// C: mheap_alloc_small
// in: refill
inline fresh_span(p, s)
{
	assert(LINE(0, s) == 0 && LINE(1, s) == 0);
	assert(object[s] == 0 && root[s] == 0 && !partial[s]);
	used[s] = true;
	sweepgen[s] = gen;
	alloc_count[s] = 0;
	set_span(p, s)
}

// mcache_take, and what the program does with an object: it writes to it.  The
// run is used upwards here, and downwards in C: no rule depends on that.
// C: mcache_take
// in: refill
inline bump(p)
{
	atomic {
		assert(!(object[span[p]] & BIT(cur[p])));
		assert(!(dirty[span[p]] & BIT(cur[p])));
		object[span[p]] = object[span[p]] | BIT(cur[p]);
		root[span[p]] = root[span[p]] | BIT(cur[p]);
		dirty[span[p]] = dirty[span[p]] | BIT(cur[p]);
		cur[p]++
	}
}

// mcache_next, then refill_small if that gets no run.
// C: mcache_next, refill_small, mcentral_pop
// at: MCACHE_NEXT_RUN, MCACHE_NEXT_NEAR
inline refill(p, word)
{
	if
	:: span[p] != NONE -> next_run(p, word)
	:: else
	fi;
	if
	:: cur[p] == limit[p] ->
		if
		:: span[p] != NONE -> retire(p, word)
		:: else
		fi;
		if // mcentral_pop
		:: atomic { partial[0] -> partial[0] = false; set_span(p, 0) }
		:: atomic { partial[1] -> partial[1] = false; set_span(p, 1) }
		:: atomic {
			!partial[0] && !partial[1] ->
			if
			:: !used[0] -> fresh_span(p, 0)
			:: !used[1] -> fresh_span(p, 1)
			:: else
			fi
		}
		fi;
		if
		:: span[p] != NONE -> next_run(p, word)
		:: else
		fi
	:: else
	fi
}

// ---- gc/cycle/sweep.c ----

// claim sets ours to whether the caller has the span now.
// C: claim
// at: SWEEP_CLAIM
inline claim(s, ours)
{
#ifdef CLAIM_IN_TWO
	ours = (sweepgen[s] == gen - 2);
	if
	:: ours -> sweepgen[s] = gen - 1
	:: else
	fi
#else
	atomic {
		ours = (sweepgen[s] == gen - 2);
		if
		:: ours -> sweepgen[s] = gen - 1
		:: else
		fi
	}
#endif
}

// C: push_partial
// in: sweep_span
inline push_swept(s)
{
	if
	:: alloc_count[s] > 0 && alloc_count[s] < SLOTS ->
		assert(!partial[s]);
		partial[s] = true
	:: else
	fi
}

// mheap_free, arena_withdraw.
// C: mheap_free, arena_withdraw
// in: sweep_span
inline free_dead(s)
{
	if
	:: alloc_count[s] == 0 ->
		assert(!cached[s] && sweepgen[s] == gen);
		used[s] = false
	:: else
	fi
}

// C: publish
// in: sweep_span
inline count_frees(freed)
{
	atomic {
		counted = counted - freed;
		assert(counted >= 0); // no free before its malloc
		freed = 0
	}
}

// sweep_lines, sweep_span, publish.  freed is the number of frees that are not
// yet published.
// C: sweep_lines, sweep_span, publish
// at: SWEEP_SPAN, SWEEP_SPAN_SWEPT, SWEEP_PUBLISH, SWEEP_PUBLISH_COUNTED
inline sweep_span(s, freed)
{
#ifdef SWEPT_EARLY
	sweepgen[s] = gen;
#endif
	atomic {
		// The old alloc line, which no other thread writes.
		freed = LINE(MARK_LINE(gen), s);
		// "found pointer to free object", "bad span state".
		assert(!(LINE(ALLOC_LINE(gen), s) & ~freed));
		assert(COUNT(freed) == alloc_count[s] && !cached[s]);
#ifndef OLD_LINE_KEPT
		LINE(MARK_LINE(gen), s) = 0;
#endif
		freed = COUNT(freed) - COUNT(LINE(ALLOC_LINE(gen), s))
	}
	atomic {
		alloc_count[s] = alloc_count[s] - freed;
#ifndef DIRTY_REUSE
		needzero[s] = needzero[s] | (freed != 0);
#endif
		sweepgen[s] = gen;
#ifdef PUSH_UNPUBLISHED
		push_swept(s)
#endif
	}
#ifdef FREE_UNPUBLISHED
	if
	:: alloc_count[s] == 0 -> atomic { free_dead(s) }; count_frees(freed)
	:: else -> count_frees(freed); atomic { push_swept(s) }
	fi
#else
	count_frees(freed);
	atomic {
#ifndef PUSH_UNPUBLISHED
		push_swept(s);
#endif
		free_dead(s)
	}
#endif
}

// sweep_chunk; took is set to whether there was one.
// C: sweep_chunk, sweep_one, chunk_sweep
// at: SWEEP_ONE, SWEEP_ONE_TAKEN
inline sweep_chunk(s, ours, took)
{
#ifndef ACTIVE_LATE
	sweepers++;
#endif
	atomic {
		took = (left > 0);
		if
		:: took -> left--; s = left
		:: else
		fi
	}
#ifdef ACTIVE_LATE
	sweepers++;
#endif
	if
	:: took && used[s] ->
		claim(s, ours);
		if
		:: ours -> sweep_span(s, ours)
		:: else
		fi
	:: else
	fi;
	atomic { sweepers--; s = 0; ours = 0 }
}

// sweep_ensure.
// C: sweep_ensure
// at: SWEEP_ENSURE, SWEEP_ENSURE_CLAIMED, SWEEP_ENSURE_WAIT
inline sweep_ensure(s, ours)
{
	if
	:: sweepgen[s] == gen
	:: else ->
#ifndef ENSURE_INACTIVE
		sweepers++;
#endif
		claim(s, ours);
		if
		:: ours -> sweep_span(s, ours)
		:: else
		fi;
#ifndef ENSURE_INACTIVE
		sweepers--;
#endif
		ours = 0;
#ifndef ENSURE_UNWAITED
		sweepgen[s] == gen
#endif
	fi;
	assert(sweepgen[s] == gen && LINE(MARK_LINE(gen), s) == 0)
}

// sweep_all sweeps, then waits until sweep_done.  It may also only wait, while
// the other sweeper works.
// C: sweep_all, sweep_done
// at: SWEEP_ALL_WAIT, SWEEP_DONE
inline sweep_all(s, ours, took)
{
	if
	:: took = true
	:: !stopping -> took = false
	fi;
	do
	:: took -> sweep_chunk(s, ours, took)
	:: else -> break
	od;
#ifdef ACTIVE_FIRST
	sweepers == 0;
	left == 0
#else
	left == 0;
	sweepers == 0
#endif
}

// ---- processes ----

// The host is stopped as long as a stop is wanted.
// C: proc_park
// at: PROC_BLOCK, PROC_UNBLOCK
inline poll(p)
{
	if
	:: stopping ->
		is_stopped[p] = true;
		atomic { !stopping -> is_stopped[p] = false }
	:: else
	fi
}

// C: stw_stop
// at: NOTE_WAIT
inline stop_hosts()
{
	stopping = true;
	is_stopped[0] && is_stopped[1]
}

// C: mcache_take, refill_small, sweep_ensure, attach_undo
// in: refill
proctype Host(byte p)
{
	byte i, s, word;

	for (i : p + 1 .. STEPS) {
		poll(p);
		if
		:: true ->
			if
			:: cur[p] == limit[p] -> refill(p, word)
			:: else
			fi;
			if
			:: cur[p] < limit[p] -> bump(p)
			:: else
			fi
		:: p == 0 -> break // with the rest of a run, perhaps
		:: p == 1 && root[0] != 0 -> sweep_ensure(s, word) // s is 0
		fi
	}
	// Host 0 detaches, attach_undo: mcache_flush.  Host 1 is stopped, as in
	// a region, and leaves the flush to the stopper.
	if
	:: p == 0 && span[p] != NONE -> retire(p, word)
	:: else
	fi;
	is_stopped[p] = true
}

// mspan_check, verify_heap with the runs retired; recount.
// C: mspan_check, verify_heap
// in: Cycle
inline check_heap(s)
{
	s = 0;
	do
	:: s < SPANS ->
		assert(!cached[s]);
		if
		:: used[s] ->
			assert(sweepgen[s] == gen);
			assert(alloc_count[s] ==
			       COUNT(LINE(ALLOC_LINE(gen), s)));
			assert(LINE(ALLOC_LINE(gen), s) == object[s]);
			assert(partial[s] ==
			       (alloc_count[s] < SLOTS))
		:: else ->
			assert(LINE(ALLOC_LINE(gen), s) == 0);
			assert(!partial[s])
		fi;
		assert(LINE(MARK_LINE(gen), s) == 0);
		s++
	:: else -> s = 0; break
	od;
	assert(counted == COUNT(object[0]) + COUNT(object[1]))
}

// grey_word for every slot.  If a slot is a root, a word points to it.  A stale
// word may point to any other slot.
// C: grey_word
// in: Cycle
inline mark(s, slot)
{
	s = 0;
	do
	:: s < SPANS ->
		slot = 0;
		do
		:: slot < SLOTS ->
			if // the program drops an object, or not
			:: root[s] = root[s] & ~BIT(slot)
			:: true
			fi;
			if
			:: root[s] & BIT(slot)
			:: !(root[s] & BIT(slot)) -> goto no_word
			:: !(root[s] & BIT(slot)) // a stale word
			fi;
			if
#ifdef MARK_FREE
			:: true ->
#else
			:: LINE(ALLOC_LINE(gen), s) & BIT(slot) ->
#endif
#ifdef MARK_OTHER_LINE
				LINE(ALLOC_LINE(gen), s) =
				    LINE(ALLOC_LINE(gen), s) | BIT(slot)
			:: else
#else
				LINE(MARK_LINE(gen), s) =
				    LINE(MARK_LINE(gen), s) | BIT(slot)
#ifndef MARK_FREE
			:: else
#endif
#endif
			fi;
no_word:
			slot++
		:: else -> slot = 0; break
		od;
		s++
	:: else -> s = 0; break
	od
}

// flip of gc/cycle/cycle.c; unmarked objects are no objects any more.
// C: flip
// at: CYCLE_FLIP
inline flip()
{
#ifndef SETS_KEPT
	partial[0] = false;
	partial[1] = false;
#endif
	gen = gen + 2;
	left = SPANS;
	object[0] = LINE(ALLOC_LINE(gen), 0);
	object[1] = LINE(ALLOC_LINE(gen), 1);
	assert(!(root[0] & ~object[0]) && !(root[1] & ~object[1]))
}

// cycle_begin: collect_stopped in a stop.  rt_gc may sweep the rest of the
// previous cycle while the hosts run; then the stop finds nothing to sweep.
// C: cycle_begin, collect_stopped
// at: CYCLE_FLIP
proctype Cycle()
{
	byte cycle, p, s, slot, word;
	bool took;

next_cycle:
	if
	:: true
	:: stop_hosts()
	fi;
#ifndef FLIP_UNSWEPT
sweep_rest:
	sweep_all(s, word, took);
	atomic {
		assert(!used[0] || sweepgen[0] == gen);
		assert(!used[1] || sweepgen[1] == gen)
	}
#endif
	if
	:: stopping
	:: else ->
		stop_hosts();
#ifndef FLIP_UNSWEPT
		goto sweep_rest
#endif
	fi;
#ifndef UNFLUSHED
	// mcache_flush_all: hosts are stopped, and sweepers are done.
	do
	:: p < HOSTS ->
		if
		:: span[p] != NONE -> retire(p, word)
		:: else
		fi;
		p++
	:: else -> p = 0; break
	od;
#endif
	atomic { check_heap(s) }
	if
	:: cycle < CYCLES ->
		atomic {
			cycle++;
			mark(s, slot);
			flip()
		}
		if
		:: sweep_all(s, word, took)
		:: true // the hosts run on beside the sweepers
		fi;
		stopping = false;
		goto next_cycle
	:: else -> stopping = false
	fi
}

// C: sweep_help
// in: sweep_chunk
proctype Sweeper()
{
	byte s, word;
	bool took;

end:
	do
	:: left > 0 -> sweep_chunk(s, word, took)
	od
}

init
{
	atomic { run Host(0); run Host(1); run Cycle(); run Sweeper() }
}

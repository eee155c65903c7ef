// marking.pml - how several markers share their work, and find its end.
//
// Models gc/mark/work.c, grey_set, grey_keep and grey_publish of
// gc/mark/grey.h, drain_stack and look_around of gc/mark/drain.c, and mark_all,
// mark_help and finish of gc/mark/mark.c.  An opener marks twice, the second
// time in two rounds, as after an overflow.  Two helpers come at any time, or
// not at all: late in a marking, in the next one, or between the two.
//
// One object of the second marking has RT_KIND_SERIAL: the marker that marks it
// leaves it to the opener, by an offer.
//
// All mark bits are in one markword.  A stack, and a range, is a set of
// objects; the highest is the newest.  All that happens under work.lock is one
// step, because no other marker looks at it meanwhile.  A note is a bit, which
// is cleared, slept on and woken as in the C code.  Any marker that waits may
// be given work, whereas the C code chooses the newest.  A sleep without an end
// is a state without a way out, which spin reports.
//
// Mutants, each of which must be found:
// mutant KEPT_WAITING: a marker waits before it has published its marks
// mutant KEPT_TWICE: what two markers counted is not subtracted again
// mutant KEPT_PLAIN: marks are published by a plain store
// mutant PLAIN_ALWAYS: mark bits are stored by a marker that is not alone
// mutant ALONE_BUSY: a marker with nothing to give is alone, even beside others
// mutant TAKE_ALONE: a marker takes work while another one is alone
// mutant GIVE_ALONE: a marker that gives words goes on with plain stores
// mutant JOBS_ALONE: a marker that gives a job goes on with plain stores
// mutant GIVE_TWICE: a marker that is given work stays on the list
// mutant BUSY_LATE: a marker that is given work is busy when it wakes up
// mutant WAKE_EARLY: a marker is woken before it has its words
// mutant NOTE_LATE: a marker clears its note when others can find it
// mutant OVER_LEFT: marking ends without a look at what is left
// mutant OVER_BUSY: marking ends without a look at which marker is busy
// mutant OVER_SILENT: the opener is not told that nothing is left
// mutant CLOSE_SILENT: no marker learns that marking was closed
// mutant CLOSE_CHAIN: a marker that learns of the close wakes no other
// mutant CLOSE_OPEN: closing leaves the marking open
// mutant LATE_TAKES: a marker takes from a marking that it has not joined
// mutant JOIN_TWICE: a helper leaves when nothing is left, and joins again
// mutant OFFER_LATE: a marker waits for work before it has offered
// mutant OFFER_IDLE: a marker that offers is not busy
// mutant OFFER_SILENT: an opener that waits is not told of an offer
// mutant OFFER_LEFT: the opener waits without a look at the offers
// mutant OFFER_ALONE: a marker offers, and goes on with plain stores
// mutant TAKEN_SILENT: a marker is not told that its offer was taken
// mutant SERIAL_KEPT: the mark of a serial object is kept back

#define MARKERS 3 // the opener is 0
#define OPENER 0
#define MARKINGS 2

// Objects are bits.  The first marking has one job, and the object 0.  In the
// second, both jobs lead to 1, a large object: what it leads to, 0 and 2, is a
// range.  So a marker that took the range may be alone when it finds 2, the
// serial object.  It then has 0 left, to which 2 leads as well.  The second
// round begins with 3 and 4.
#define ALL (marking == 1 -> 1 : 7)
#define SECOND 24
#define SMALL 1 // objects whose marks are kept back
#define LARGE 2 // objects that leave a range
#define SERIAL (marking == 1 -> 0 : 4) // objects that the opener traces
#define ROOTS (marking == 1 -> 1 : 2)
#define CHILDREN(x)                                                            \
	(marking == 1 -> 0 :                                                   \
	 ((x) == 1 -> 4 : ((x) == 2 -> 5 : ((x) == 4 -> 1 : 0))))
#define NEWEST(s)                                                              \
	((s) & 16 -> 16 :                                                      \
	 ((s) & 8 -> 8 : ((s) & 4 -> 4 : ((s) & 2 -> 2 : 1))))
#define OLDEST(s) ((s) & -(s))

// enum work_next.
#define WAIT 0
#define JOB 1
#define WORDS 2
#define OVER 3
#define OFFERS 4

// work.
byte ranges;  // what they lead to
byte waiters; // markers, as bits
byte offers;  // markers, as bits
byte next_job, njobs;
byte busy;
byte marking; // number
bool open;
bool alone;

// struct work.
bool w_alone[MARKERS];
bool w_busy[MARKERS];
byte w_marking[MARKERS];
byte got[MARKERS];
byte next_over[MARKERS]; // 1 + the marker to wake after a close
bool woken[MARKERS];	 // note

byte mark; // the markword
byte kept[MARKERS]; // marks of it that only the marker sees
byte passed[MARKERS]; // objects that the opener will trace

// Ghosts.
byte counted;	      // objects counted once or three times, by all markers
byte again;	      // objects counted two or three times
byte traced;	      // serial objects
byte stack[MARKERS];  // local to each, but for assertions
bool joined[MARKERS]; // this marking
bool late[MARKERS];   // BUSY_LATE

#define BIT(i) (1 << (i))
#define LEFT (next_job < njobs || ranges != 0)

#ifdef OVER_BUSY
#define NO_BUSY true
#else
#define NO_BUSY (busy == 0)
#endif

// note_wake of a marker, if there is one; to is its number plus 1.
// C: wake
// at: WAKE
inline wake(to)
{
	if
	:: to != 0 -> atomic { woken[to - 1] = true; to = 0 }
	:: else
	fi
}

// C: set_busy
// in: work_get
inline set_busy(me)
{
	busy++;
	alone = (busy == 1);
	w_alone[me] = alone;
	w_busy[me] = true
}

// C: set_idle
// in: work_get
inline set_idle(me)
{
	assert(stack[me] == 0);
	if
	:: w_alone[me] -> w_alone[me] = false; alone = false
	:: else
	fi;
	w_busy[me] = false;
	busy--
}

#ifdef BUSY_LATE
#define COUNT_BUSY(to) late[to] = true
#else
#define COUNT_BUSY(to) set_busy(to)
#endif
#ifdef GIVE_TWICE
#define REMOVE(to) skip
#else
#define REMOVE(to) waiters = waiters & ~BIT(to)
#endif

// C: take_waiter, remove_waiter
// in: work_share
inline take_waiter(me, to)
{
	if
	:: waiters & BIT(0) -> to = 1
	:: waiters & BIT(1) -> to = 2
	:: waiters & BIT(2) -> to = 3
	:: waiters == 0 -> to = 0
	fi;
	if
	:: to != 0 ->
		REMOVE(to - 1);
		alone = false;
		w_alone[me] = false;
		COUNT_BUSY(to - 1)
	:: else
	fi
}

// C: assign, cut_piece
// in: work_get
inline assign(to)
{
	assert(joined[to] && stack[to] == 0);
	if
	:: ranges != 0 ->
		stack[to] = ranges;
		ranges = 0
	:: else ->
		stack[to] = ROOTS;
		next_job++
	fi;
	got[to] = JOB
}

// C: give_left
// in: work_share
inline give_left(me, to)
{
	if
	:: LEFT ->
#ifdef JOBS_ALONE
		if
		:: w_alone[me] && waiters != 0 ->
			take_waiter(me, to);
			w_alone[me] = true
		:: else -> take_waiter(me, to)
		fi;
#else
		take_waiter(me, to);
#endif
		if
		:: to != 0 -> assign(to - 1)
		:: else
		fi
	:: else -> to = 0
	fi
}

// C: take_over, tell_opener
// in: work_get
inline take_over()
{
	got[OPENER] = OVER;
	set_busy(OPENER)
}

#ifdef NOTE_LATE
#define CLEAR_BEFORE(me) skip
#define CLEAR_AFTER(me) woken[me] = false
#else
#define CLEAR_BEFORE(me) woken[me] = false
#define CLEAR_AFTER(me) skip
#endif

// C: add_waiter
// in: work_get
inline add_waiter(me)
{
	CLEAR_BEFORE(me);
	got[me] = WAIT;
	waiters = waiters | BIT(me)
}

// C: take_or_wait
// in: work_get
inline take_or_wait(me, to)
{
	if
#ifdef LATE_TAKES
	:: !open -> got[me] = OVER
#else
	:: !open || w_marking[me] != marking -> got[me] = OVER
#endif
#ifndef OFFER_LEFT
	:: open && w_marking[me] == marking && me == OPENER && offers != 0 ->
		got[me] = OFFERS;
		set_busy(me)
#define NO_OFFERS (me != OPENER || offers == 0)
#else
#define NO_OFFERS true
#endif
#ifdef LATE_TAKES
	:: open && NO_OFFERS ->
#else
	:: open && w_marking[me] == marking && NO_OFFERS ->
#endif
		if
#ifdef OVER_LEFT
		:: me == OPENER && NO_BUSY -> take_over()
		:: !alone && LEFT && (me != OPENER || busy != 0) ->
#else
#ifdef TAKE_ALONE
		:: LEFT ->
#else
		:: !alone && LEFT ->
#endif
#endif
			assign(me);
			set_busy(me);
			give_left(me, to)
		:: else ->
			if
			:: me == OPENER && NO_BUSY -> take_over()
#ifdef JOIN_TWICE
			:: me != OPENER && NO_BUSY ->
				got[me] = OVER
#else
			:: me != OPENER && NO_BUSY ->
				if
#ifndef OVER_SILENT
				:: waiters & BIT(OPENER) ->
					waiters = waiters & ~BIT(OPENER);
					take_over();
					to = OPENER + 1
#endif
				:: else
				fi;
				add_waiter(me)
#endif
			:: else -> add_waiter(me)
			fi
		fi
	fi
}

// work_get returns when there is something for the marker, or marking is over.
// C: work_get, wait_turn
// at: WORK_GET, WAKE
inline work_get(me, to)
{
	atomic {
		to = 0;
		if
		:: w_busy[me] -> set_idle(me)
		:: else
		fi;
		take_or_wait(me, to);
		sleeps = (got[me] == WAIT)
	}
	wake(to);
	if
	:: sleeps ->
		CLEAR_AFTER(me);
		atomic {
			woken[me] ->
#ifdef BUSY_LATE
			if
			:: late[me] -> late[me] = false; set_busy(me)
			:: else
			fi;
#endif
			assert(got[me] != WAIT);
			if
#ifndef CLOSE_CHAIN
			:: got[me] == OVER && me != OPENER ->
				to = next_over[me];
				next_over[me] = 0
#endif
			:: else
			fi
		}
		wake(to)
	:: else
	fi;
	atomic { sleeps = false }
}

// work_share.  Half of a stack is its oldest object.
// C: work_share, give_words, move_full, move_words
// at: WORK_SHARE, GIVE_WORDS, WAKE
inline work_share(me, to)
{
	atomic {
		give_left(me, to);
		if
		:: to == 0 && stack[me] != 0 ->
#ifdef GIVE_ALONE
			sleeps = w_alone[me];
#endif
			take_waiter(me, to);
#ifdef GIVE_ALONE
			w_alone[me] = sleeps;
			sleeps = false;
#endif
			if
			:: to != 0 -> gives = true
			:: else
			fi
		:: true // a stack may be too small to cut
		fi;
		if
#ifdef ALONE_BUSY
		:: to == 0 -> alone = true; w_alone[me] = true
#else
		:: to == 0 && busy == 1 -> alone = true; w_alone[me] = true
#endif
		:: else
		fi
	}
#ifdef WAKE_EARLY
	atomic { woken[to - (to != 0)] = woken[to - (to != 0)] || (to != 0) }
#endif
	if
	:: gives ->
		atomic {
			assert(stack[to - 1] == 0 && got[to - 1] == WAIT);
			stack[to - 1] = OLDEST(stack[me]);
			stack[me] = stack[me] & ~OLDEST(stack[me]);
			got[to - 1] = WORDS;
			gives = false
		}
	:: else
	fi;
	wake(to)
}

// What the opener does with a serial object, once.
// C: trace_first
// in: set
inline trace_serial(objects)
{
	assert(!(traced & (objects)));
	traced = traced | (objects);
	stack[OPENER] = stack[OPENER] | CHILDREN(objects)
}

// claim deals with a new object: it is counted, and its words are pushed, or
// become a range.
// C: grey_word, work_add_range, trace_object
// in: set
inline claim(me, x)
{
	assert(open && w_marking[me] == marking);
	again = again ^ (counted & x);
	counted = counted ^ x;
	if
	:: x & LARGE -> // work_add_range
		ranges = ranges | CHILDREN(x)
	:: (x & SERIAL) && me != OPENER -> passed[me] = passed[me] | x
	:: (x & SERIAL) && me == OPENER -> trace_serial(x)
	:: else -> stack[me] = stack[me] | CHILDREN(x)
	fi
}

// grey_set, by a plain store, or by a store in one step with the load.
// C: grey_set, grey_set_once
// at: GREY_SET
inline set(me, x, old)
{
	mark = old | x;
	if
	:: !(old & x) -> claim(me, x)
	:: else
	fi;
	x = 0;
	old = 0
}

// grey_publish, and uncount.
// C: grey_publish, grey_publish_all, uncount
// at: GREY_PUBLISH
inline publish(me, old)
{
	atomic {
		old = mark & kept[me];
#ifndef KEPT_TWICE
		again = again ^ (old & ~counted);
		counted = counted ^ old;
#endif
#ifdef KEPT_PLAIN
		old = mark
	}
	atomic {
		mark = old | kept[me];
#else
		mark = mark | kept[me];
#endif
		kept[me] = 0;
		old = 0
	}
}

// A marker offers what it has kept for the opener, and sleeps.
// C: trace_pass, work_offer, wake_opener, take_opener
// at: WORK_OFFER, WAKE
inline offer(me, to)
{
	atomic {
		woken[me] = false;
		offers = offers | BIT(me);
#ifdef OFFER_IDLE
		w_busy[me] = false;
		w_alone[me] = false;
		busy--;
#endif
#ifndef OFFER_SILENT
		if
		:: waiters & BIT(OPENER) ->
			waiters = waiters & ~BIT(OPENER);
#ifndef OFFER_ALONE
			alone = false;
			w_alone[me] = false;
#endif
			got[OPENER] = OFFERS;
			set_busy(OPENER);
			to = OPENER + 1
		:: else
		fi
#endif
	}
	wake(to);
	atomic {
		woken[me] -> passed[me] = 0
#ifdef OFFER_IDLE
		;
		busy++;
		w_busy[me] = true
#endif
	}
}

#define TAKE(i)                                                                \
	if                                                                     \
	:: taken & BIT(i) -> trace_serial(passed[i])                                \
	:: else                                                                \
	fi
#ifdef TAKEN_SILENT
#define TAKEN(i) skip
#else
#define TAKEN(i)                                                               \
	if                                                                     \
	:: taken & BIT(i) -> woken[i] = true                                   \
	:: else                                                                \
	fi
#endif

// C: trace_passed, work_offers, work_taken
// at: WAKE
inline take_offers(taken)
{
	atomic {
		taken = offers;
		offers = 0;
		TAKE(1);
		TAKE(2)
	}
	atomic {
		TAKEN(1);
		TAKEN(2);
		taken = 0
	}
}

#ifdef PLAIN_ALWAYS
#define STORES(me) true
#else
#define STORES(me) w_alone[me]
#endif

#ifdef SERIAL_KEPT
#define KEPT (SMALL | SERIAL)
#else
#define KEPT SMALL
#endif

// C: grey_word, grey_keep, grey_settle
// in: set
inline mark_one(me, x, old)
{
	if
	:: STORES(me) ->
		atomic {
			x = NEWEST(stack[me]);
			stack[me] = stack[me] & ~x;
			old = mark
		}
		atomic { set(me, x, old) }
	:: !STORES(me) && !(NEWEST(stack[me]) & KEPT) -> // grey_set_once
		atomic {
			x = NEWEST(stack[me]);
			stack[me] = stack[me] & ~x;
			old = mark;
			set(me, x, old)
		}
	:: !STORES(me) && (NEWEST(stack[me]) & KEPT) -> // grey_keep
		if
		:: kept[me] != 0 -> publish(me, old) // as for another word
		:: true
		fi;
		atomic {
			x = NEWEST(stack[me]);
			stack[me] = stack[me] & ~x;
			if
			:: !((mark | kept[me]) & x) ->
				kept[me] = kept[me] | x;
				claim(me, x)
			:: else
			fi;
			x = 0
		}
	fi
}

// finish: drain_stack, look_around at times, work_get.
// C: finish, drain_stack, look_around, work_wanted
// at: WORK_GET, WORK_SHARE
inline finish(me, to, x, old)
{
	do
	:: stack[me] != 0 -> mark_one(me, x, old)
	:: w_busy[me] && waiters != 0 &&
	   (stack[me] != 0 || LEFT || !w_alone[me]) ->
		work_share(me, to)
	:: me == OPENER && offers != 0 -> take_offers(x)
	:: passed[me] != 0 -> offer(me, to) // or sooner, when the list is full
	:: stack[me] == 0 && kept[me] != 0 -> publish(me, old)
#ifdef KEPT_WAITING
	:: stack[me] == 0 && passed[me] == 0 ->
#elif defined(OFFER_LATE)
	:: stack[me] == 0 && kept[me] == 0 ->
#else
	:: stack[me] == 0 && kept[me] == 0 && passed[me] == 0 ->
#endif
		work_get(me, to);
		if
		:: got[me] == OVER -> break
		:: got[me] == OFFERS -> take_offers(x)
		:: else
		fi
	od
}

// check_over asserts what must hold when work_get tells the opener that marking
// is over.
// C: none
inline check_over(what)
{
	assert(mark == what && counted == what && again == 0);
	assert(kept[0] == 0 && kept[1] == 0 && kept[2] == 0);
	assert(!LEFT && offers == 0 && traced == SERIAL);
	assert(stack[0] == 0 && stack[1] == 0 && stack[2] == 0);
	assert(busy == 1 && w_busy[OPENER] && !w_busy[1] && !w_busy[2]);
	assert(w_alone[OPENER] && !(waiters & BIT(OPENER)))
}

// work_close: the waiting markers form a chain, and its first is woken.
// C: close_waiters
// in: Opener
inline close_waiters(to)
{
	to = 0;
	if
	:: waiters & BIT(1) -> got[1] = OVER; to = 2
	:: else
	fi;
	if
	:: waiters & BIT(2) -> got[2] = OVER; next_over[2] = to; to = 3
	:: else
	fi;
	waiters = 0
}

// begin.
// C: begin
// in: Helper
inline begin(me)
{
	assert(!joined[me]);
	joined[me] = true;
	w_marking[me] = marking;
	w_busy[me] = false;
	w_alone[me] = false;
	got[me] = WAIT
}

// mark_all.
// C: mark_all, work_open, work_close
// at: WORK_OPEN, WORK_CLOSE
proctype Opener()
{
	byte to, x, old;
	bool sleeps, gives;

	do
	:: marking == MARKINGS -> break
	:: marking < MARKINGS ->
		// work_open.
		atomic {
			assert(!open && busy == 0 && waiters == 0 && !LEFT);
			mark = 0; // as after a flip
			counted = 0;
			traced = 0;
			next_job = 0;
			marking++;
			njobs = marking;
			open = true;
			joined[0] = false;
			joined[1] = false;
			joined[2] = false;
			begin(OPENER);
			set_busy(OPENER)
		}
		finish(OPENER, to, x, old);
		atomic { check_over(ALL) }
		if
		:: marking == MARKINGS ->
			stack[OPENER] = SECOND;
			finish(OPENER, to, x, old);
			atomic { check_over(ALL + SECOND) }
		:: else
		fi;
		// work_close.
		atomic {
			assert(busy == 1 && w_busy[OPENER]);
			set_idle(OPENER);
#ifndef CLOSE_SILENT
			close_waiters(to);
#endif
#ifndef CLOSE_OPEN
			open = false
#endif
		}
		wake(to)
	od
}

// mark_help, as often as there are markings.
// C: mark_help, work_join
// at: WORK_JOIN, CREW_CALL, CREW_WAIT
proctype Helper(byte me)
{
	byte to, x, old, tries;
	bool sleeps, gives;

	do
	:: tries < MARKINGS ->
		tries++;
		// work_join.
		atomic {
#ifdef JOIN_TWICE
			if
			:: open -> begin(me); x = 1
#else
			if
			:: open && w_marking[me] != marking ->
				begin(me);
				x = 1
#endif
			:: else
			fi
		}
		if
		:: x == 1 -> x = 0; finish(me, to, x, old)
		:: else
		fi
	:: break
	od
}

init
{
	atomic {
		run Helper(1);
		run Helper(2);
		run Opener()
	}
}

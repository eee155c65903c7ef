// marking.pml - how several markers share their work, and find its end.
//
// Stands for gc/work.c, for gcgrey_set, gcgrey_keep and gcgrey_publish of
// gc/grey.h, and for gcmark_all, gcmark_help, finish, drain and look_around of
// gc/mark.c.  An opener marks
// twice, the second time in two rounds, as after an overflow.  Two helpers
// come when they like, or not at all: late in a marking, in the next one, or
// between the two.
//
// All mark bits lie in one word.  A stack, and what was given, is a set of
// objects; the highest is the newest.  What happens under work.lock is one
// step, since nobody else looks at it meanwhile; system calls are steps of
// their own.  A spin that ends is a sleep that does not begin.  A sleep that
// nobody ends is a state without a way out, which spin reports.
//
// Mutants, each of which must be found:
// mutant KEPT_WAITING: a marker waits before it has published its marks
// mutant KEPT_TWICE: what two markers counted is not taken back
// mutant KEPT_PLAIN: marks are published by a plain store
// mutant PLAIN_ALWAYS: mark bits are stored by a marker that is not alone
// mutant ALONE_GIVEN: alone is who is the only busy one, whatever was given
// mutant ALONE_BUSY: alone is who finds nothing given, whoever is busy
// mutant TAKE_ALONE: others take while one is alone
// mutant GIVE_ALONE: who gives goes on with plain stores
// mutant JOBS_ALONE: who lets others take jobs goes on with plain stores
// mutant BUSY_LATE: who takes is counted as busy after the lock was let go
// mutant OVER_GIVEN: over does not look at what was given
// mutant OVER_JOBS: over does not look at jobs
// mutant OVER_BUSY: over does not look at who is busy
// mutant GIVE_SILENT: nobody is told of what was given
// mutant OVER_SILENT: nobody is told that nothing is left
// mutant CLOSE_SILENT: nobody is told that marking was closed
// mutant CLOSE_OPEN: closing leaves the marking open
// mutant LATE_TAKES: a marker takes from a marking that it has not joined
// mutant JOIN_TWICE: a helper leaves when nothing is left, and joins again
// mutant WAITING_LATE: a late marker lowers the count of the next marking
// mutant SLEEP_UNCOMPARED: a sleep without a second look at changes
// mutant SLEEPERS_LATE: a marker counts itself a sleeper when it has slept

#define MARKERS 3 // the opener is 0
#define OPENER 0
#define MARKINGS 2

// Objects are bits.  The first marking has one job and the object 0; of the
// second, the jobs lead to 0 and 1, and to 2, and its second round begins with
// 3 and 4.
#define ALL (marking == 1 -> 1 : 7)
#define SECOND 24
#define SMALL 4 // objects whose marks are kept back
#define ROOTS(job) (marking == 1 -> 1 : ((job) == 0 -> 3 : 4))
#define CHILDREN(x) (marking == 1 -> 0 : ((x) == 1 -> 4 : ((x) == 2 -> 5 : 0)))
#define NEWEST(s)                                                              \
	((s) & 16 -> 16 :                                                      \
	 ((s) & 8 -> 8 : ((s) & 4 -> 4 : ((s) & 2 -> 2 : 1))))
#define OLDEST(s) ((s) & -(s))

// enum gcwork_next.
#define WAIT 0
#define JOB 1
#define WORDS 2
#define OVER 3

// work.
byte given;
byte next_job, njobs;
byte busy;
byte marking; // number
bool open;
bool alone;
byte sleepers;
byte waiting;
bool moved[MARKERS]; // changes is not what the marker has seen

// struct gcwork.
bool w_alone[MARKERS];
bool w_busy[MARKERS];
byte w_marking[MARKERS];

byte mark; // the word of mark bits
byte kept[MARKERS]; // marks of it that only the marker sees

// Ghosts.
byte counted;	      // objects counted once or three times, by all markers
byte again;	      // objects counted two or three times
byte stack[MARKERS];  // local to each, but for assertions
bool joined[MARKERS]; // this marking
bool asleep[MARKERS]; // in the kernel
byte waking;	      // markers on their way to a wake

#define JOBS_LEFT (next_job < njobs)

#ifdef OVER_BUSY
#define IS_BUSY 0
#else
#define IS_BUSY (busy != 0)
#endif
#ifdef OVER_JOBS
#define ANY_JOBS 0
#else
#define ANY_JOBS JOBS_LEFT
#endif
#ifdef OVER_GIVEN
#define ANY_GIVEN 0
#else
#define ANY_GIVEN (given != 0)
#endif
#define NOTHING_LEFT (!IS_BUSY && !ANY_JOBS && !ANY_GIVEN)

#ifdef ALONE_GIVEN
#define ALONE (busy == 1)
#else
#ifdef ALONE_BUSY
#define ALONE (given == 0)
#else
#define ALONE (busy == 1 && given == 0)
#endif
#endif

// changed; the wake is the marker's next step.
// C: changed
// in: wake_all
inline changed(wake)
{
	moved[0] = true;
	moved[1] = true;
	moved[2] = true;
	if
	:: sleepers != 0 && !wake -> wake = true; waking++
	:: else
	fi
}

// unlock, when wake is set: oscall_futex_wake.
// C: unlock
// at: WORK_UNLOCK
inline wake_all(wake)
{
	if
	:: wake ->
		atomic {
			asleep[0] = false;
			asleep[1] = false;
			asleep[2] = false;
			waking--;
			wake = false
		}
	:: else
	fi
}

// C: set_busy
// in: gcwork_get
inline set_busy(me)
{
	busy++;
	alone = ALONE;
	assert(!alone || given == 0); // given is for the taking
	w_alone[me] = alone;
	w_busy[me] = true
}

// C: set_waiting
// in: gcwork_get
inline set_waiting(me, wake)
{
	assert(stack[me] == 0);
	if
	:: w_alone[me] -> w_alone[me] = false; alone = false
	:: else
	fi;
	w_busy[me] = false;
	busy--;
	if
#ifndef OVER_SILENT
	:: NOTHING_LEFT -> changed(wake)
#endif
	:: else
	fi
}

#ifdef BUSY_LATE
#define COUNT_BUSY(me) late = true
#else
#define COUNT_BUSY(me) set_busy(me)
#endif

// take.
// C: take
// in: gcwork_get
inline take(me, next, late)
{
	if
#ifdef LATE_TAKES
	:: !open -> next = OVER
#else
	:: !open || w_marking[me] != marking -> next = OVER
#endif
	:: else ->
		if
		:: me == OPENER && NOTHING_LEFT -> set_busy(me); next = OVER
#ifdef JOIN_TWICE
		:: me != OPENER && NOTHING_LEFT -> next = OVER
#endif
		:: else ->
			if
#ifndef TAKE_ALONE
			:: alone -> next = WAIT
			:: !alone && JOBS_LEFT ->
#else
			:: JOBS_LEFT ->
#endif
				assert(joined[me]);
				stack[me] = ROOTS(next_job);
				next_job++;
				COUNT_BUSY(me);
				next = JOB
#ifndef TAKE_ALONE
			:: !alone && !JOBS_LEFT && given != 0 ->
#else
			:: !JOBS_LEFT && given != 0 ->
#endif
				assert(joined[me]);
				stack[me] = NEWEST(given); // one buffer
				given = given & ~NEWEST(given);
				COUNT_BUSY(me);
				next = WORDS
			:: else -> next = WAIT
			fi
		fi
	fi
}

// The end of wait_turn.
// C: wait_turn
// in: gcwork_get
inline stop_waiting(me, next)
{
	if
#ifdef WAITING_LATE
	:: next != WAIT -> assert(waiting != 0); waiting--
#else
	:: next != WAIT && w_marking[me] == marking ->
		assert(waiting != 0);
		waiting--
#endif
	:: else
	fi
}

#ifdef SLEEPERS_LATE
#define SLEEPER_BEFORE skip
#define SLEEPER_AFTER sleepers++; sleepers--
#else
#define SLEEPER_BEFORE sleepers++
#define SLEEPER_AFTER sleepers--
#endif

// gcwork_get: until there is something for the marker.
// C: gcwork_get, wait_turn, wait_change
// at: GCWORK_GET, WAIT_CHANGE, WORK_UNLOCK
inline gcwork_get(me, next, wake, late)
{
	atomic {
		if
		:: w_busy[me] -> set_waiting(me, wake)
		:: else
		fi;
		take(me, next, late);
		if
		:: next == WAIT -> waiting++; moved[me] = false
		:: else
		fi
	}
	wake_all(wake);
	do
	:: next != WAIT -> break
	:: next == WAIT ->
		// wait_change: has it changed while the marker spun?
		atomic {
			if
			:: moved[me] ->
				take(me, next, late);
				stop_waiting(me, next);
				moved[me] = false;
				awake = true
			:: else -> SLEEPER_BEFORE
			fi
		}
		if
		:: awake -> awake = false
		:: else ->
			// oscall_futex_wait compares and sleeps in one step.
#ifdef SLEEP_UNCOMPARED
			asleep[me] = true;
#else
			atomic {
				if
				:: !moved[me] -> asleep[me] = true
				:: else
				fi
			}
#endif
			atomic {
				!asleep[me] ->
				SLEEPER_AFTER;
				take(me, next, late);
				stop_waiting(me, next);
				moved[me] = false
			}
		fi
	od;
#ifdef BUSY_LATE
	atomic {
		if
		:: late -> set_busy(me); late = false
		:: else
		fi
	}
#endif
}

// gcwork_share.  Half of a stack is its oldest word.
// C: gcwork_share
// at: GCWORK_SHARE
inline gcwork_share(me, wake, chain)
{
	atomic {
		// A stack may be too small to cut, or no buffer be had.
		if
		:: stack[me] != 0 ->
			chain = OLDEST(stack[me]);
			stack[me] = stack[me] & ~chain
		:: true
		fi;
		given = given | chain;
		if
		:: chain != 0 || (w_alone[me] && JOBS_LEFT) ->
			alone = false;
#ifdef GIVE_ALONE
			w_alone[me] = w_alone[me] && chain != 0;
#else
#ifdef JOBS_ALONE
			w_alone[me] = w_alone[me] && chain == 0;
#else
			w_alone[me] = false;
#endif
#endif
#ifndef GIVE_SILENT
			changed(wake)
#endif
		:: else ->
			if
			:: ALONE && !JOBS_LEFT ->
				alone = true;
				w_alone[me] = true
			:: else
			fi
		fi;
		chain = 0
	}
	wake_all(wake)
}

// What follows for an object that is new: it is counted, and its words are
// pushed.
// C: gcgrey_count
// in: set
inline claim(me, x)
{
	assert(open && w_marking[me] == marking);
	again = again ^ (counted & x);
	counted = counted ^ x;
	stack[me] = stack[me] | CHILDREN(x)
}

// gcgrey_set, by a plain store or one that nobody comes between.
// C: gcgrey_set, gcgrey_set_once
// at: GCGREY_SET
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

// gcgrey_publish, and uncount.
// C: gcgrey_publish, gcgrey_publish_all, uncount
// at: GCGREY_PUBLISH
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

#ifdef PLAIN_ALWAYS
#define STORES(me) true
#else
#define STORES(me) w_alone[me]
#endif

// C: gcgrey_word, gcgrey_keep
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
	:: !STORES(me) && !(NEWEST(stack[me]) & SMALL) -> // gcgrey_set_once
		atomic {
			x = NEWEST(stack[me]);
			stack[me] = stack[me] & ~x;
			old = mark;
			set(me, x, old)
		}
	:: !STORES(me) && (NEWEST(stack[me]) & SMALL) -> // gcgrey_keep
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

// finish: drain, look_around at times, gcwork_get.
// C: finish, drain, look_around
// at: GCWORK_GET, GCWORK_SHARE
inline finish(me, next, wake, late, x, old)
{
	next = WAIT;
	do
	:: stack[me] != 0 -> mark_one(me, x, old)
	:: w_busy[me] && waiting != 0 &&
	   (stack[me] != 0 || JOBS_LEFT || !w_alone[me]) ->
		gcwork_share(me, wake, x)
	:: stack[me] == 0 && kept[me] != 0 -> publish(me, old)
#ifdef KEPT_WAITING
	:: stack[me] == 0 ->
#else
	:: stack[me] == 0 && kept[me] == 0 ->
#endif
		gcwork_get(me, next, wake, late);
		if
		:: next == OVER -> break
		:: else
		fi
	od
}

// What has to hold when gcwork_get returns over to the opener.
// C: none
inline check_over(what)
{
	assert(mark == what && counted == what && again == 0);
	assert(kept[0] == 0 && kept[1] == 0 && kept[2] == 0);
	assert(given == 0 && !JOBS_LEFT);
	assert(stack[0] == 0 && stack[1] == 0 && stack[2] == 0);
	assert(busy == 1 && w_busy[OPENER] && !w_busy[1] && !w_busy[2]);
	assert(w_alone[OPENER])
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
	w_alone[me] = false
}

// gcmark_all.
// C: gcmark_all, gcwork_open, gcwork_close
// at: GCWORK_OPEN, GCWORK_CLOSE
proctype Opener()
{
	byte next, x, old, round;
	bool wake, late, awake;

	do
	:: marking == MARKINGS -> break
	:: marking < MARKINGS ->
		// gcwork_open.
		atomic {
			assert(!open && busy == 0 && given == 0);
			mark = 0; // as after a flip
			counted = 0;
			next_job = 0;
			marking++;
			njobs = marking;
			open = true;
			waiting = 0;
			joined[0] = false;
			joined[1] = false;
			joined[2] = false;
			begin(OPENER);
			set_busy(OPENER)
		}
		finish(OPENER, next, wake, late, x, old);
		atomic { check_over(ALL) }
		if
		:: marking == MARKINGS ->
			stack[OPENER] = SECOND;
			finish(OPENER, next, wake, late, x, old);
			atomic { check_over(ALL + SECOND) }
		:: else
		fi;
		// gcwork_close.
		atomic {
			assert(busy == 1 && w_busy[OPENER]);
#ifdef CLOSE_SILENT
			w_busy[OPENER] = false;
			w_alone[OPENER] = false;
			alone = false;
			busy--;
#else
			set_waiting(OPENER, wake);
#endif
#ifndef CLOSE_OPEN
			open = false
#endif
		}
		wake_all(wake)
	od
}

// gcmark_help, as often as there are markings.
// C: gcmark_help, gcwork_join
// at: GCWORK_JOIN, CREW_CALL, CREW_WAIT
proctype Helper(byte me)
{
	byte next, x, old, tries;
	bool wake, late, awake;

	do
	:: tries < MARKINGS ->
		tries++;
		// gcwork_join.
		atomic {
#ifdef JOIN_TWICE
			if
			:: open -> begin(me); next = WAIT
#else
			if
			:: open && w_marking[me] != marking ->
				begin(me);
				next = WAIT
#endif
			:: else -> next = OVER
			fi
		}
		if
		:: next != OVER -> finish(me, next, wake, late, x, old)
		:: else
		fi
	:: break
	od
}

// Who sleeps, and is not about to be woken, has nothing to take.
// C: none
proctype Sleeping()
{
end:
	atomic {
		waking == 0 && open && !alone && (given != 0 || JOBS_LEFT) &&
		(asleep[0] || (asleep[1] && w_marking[1] == marking) ||
		 (asleep[2] && w_marking[2] == marking)) ->
		assert(false)
	}
}

init
{
	atomic {
		run Helper(1);
		run Helper(2);
		run Opener();
		run Sleeping()
	}
}
